"""Exercise 02: an answer."""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend


class MyBackend(NumpyAttentionBackend):
    """The real NumPy backend, with the method written as loops."""

    @staticmethod
    def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                        block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                        scale: float, sliding_window: int | None,
                        out: NDArray[np.float32]) -> None:
        """Walk the tokens of each sequence, block after block."""
        num_seqs, num_heads, head_size = query.shape
        block_size = kv_cache.shape[3]
        group = num_heads // kv_cache.shape[2]
        for i in range(num_seqs):
            for head in range(num_heads):
                scores = np.empty(seq_lens[i], dtype=np.float32)
                for p in range(seq_lens[i]):
                    block = block_tables[i, p // block_size]
                    key = kv_cache[0, block, head // group, p % block_size]  # (head_size,)
                    scores[p] = query[i, head] @ key * scale
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                total = np.zeros(head_size, dtype=np.float32)
                for p in range(seq_lens[i]):
                    block = block_tables[i, p // block_size]
                    value = kv_cache[1, block, head // group, p % block_size]  # (head_size,)
                    total += weights[p] * value
                out[i, head] = total
