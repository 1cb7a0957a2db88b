"""Exercise 02: attention that reads through block tables.

Read README.md, complete `paged_attention`, then run ``minivllm exercises check 02``.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend


class MyBackend(NumpyAttentionBackend):
    """The real NumPy backend, with the method missing that decoding calls."""

    @staticmethod
    def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                        block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                        scale: float, sliding_window: int | None,
                        out: NDArray[np.float32]) -> None:
        """Attend from each sequence's newest token to all its tokens; write into `out`.

        query, out : (num_seqs, num_heads, head_size)
        kv_cache : (2, num_blocks, num_kv_heads, block_size, head_size), keys at [0], values at [1]
        block_tables : (num_seqs, max_blocks), padded with 0
        seq_lens : (num_seqs,)
        scale : what scores are multiplied with
        sliding_window : always None here
        """
        raise NotImplementedError("paged_attention is missing")
