"""The attention backend of compiled loops (its place in vLLM: ``flash_attn.py`` beside it).

`minivllm.attention.backends.numpy_backend` says what is computed, `minivllm.attention.ops` how.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionBackend, AttentionMetadata
from minivllm.attention.ops.jit import is_compiled
from minivllm.attention.ops.paged_attn import attention, reshape_and_cache
from minivllm.logger import init_logger
from minivllm.threads import get_pool

logger = init_logger(__name__)

# Below this many products a kernel is done before another thread has woken up.
_WORTH_SHARING = 1 << 20
_EVERYTHING = 1 << 30


class NumbaAttentionBackend(AttentionBackend):
    """Paged attention in Numba, on all cores."""

    @staticmethod
    def warm_up() -> None:
        """Compile the kernels, or load them from the cache, by a batch of one token."""
        if not (is_compiled(attention) and is_compiled(reshape_and_cache)):
            logger.warning("Compiling attention kernels, which takes some seconds the first time.")
        token = np.ones((1, 1, 1), np.float32)
        kv_cache = np.zeros((2, 1, 1, 1, 1), np.float32)
        NumbaAttentionBackend.reshape_and_cache(token, token, kv_cache, np.zeros(1, np.int64))
        NumbaAttentionBackend.paged_attention(token, kv_cache, np.zeros((1, 1), np.int32),
                                              np.ones(1, np.int32), 1.0, None, token)

    @staticmethod
    def reshape_and_cache(key: NDArray[np.float32], value: NDArray[np.float32],
                          kv_cache: NDArray[np.float32],
                          slot_mapping: NDArray[np.int64]) -> None:
        """Store keys and values in their slots."""
        # Always contiguous, so that one compiled version serves all models and batches.
        reshape_and_cache(np.ascontiguousarray(key), np.ascontiguousarray(value), kv_cache,
                          slot_mapping)

    @staticmethod
    def prefill_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                          metadata: AttentionMetadata, scale: float,
                          sliding_window: int | None, out: NDArray[np.float32]) -> None:
        """Attend from each prefill's new tokens."""
        num_prefills = metadata.num_prefills
        _share(query, kv_cache, metadata.block_tables[:num_prefills],
               metadata.context_lens[:num_prefills], metadata.query_start_loc, scale,
               sliding_window, out)

    @staticmethod
    def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                        block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                        scale: float, sliding_window: int | None,
                        out: NDArray[np.float32]) -> None:
        """Attend from the last token of each sequence."""
        query_start_loc = np.arange(len(seq_lens) + 1, dtype=np.int32)
        _share(query, kv_cache, block_tables, seq_lens - 1, query_start_loc, scale,
               sliding_window, out)


def _share(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
           block_tables: NDArray[np.int32], context_lens: NDArray[np.int32],
           query_start_loc: NDArray[np.int32], scale: float, sliding_window: int | None,
           out: NDArray[np.float32]) -> None:
    """Run the kernel on all threads, or on this one if there is little to do."""
    args: tuple[Any, ...] = (np.ascontiguousarray(query), kv_cache, block_tables, context_lens,
                             query_start_loc, np.float32(scale), sliding_window or _EVERYTHING,
                             out)
    query_lens = np.diff(query_start_loc)
    if query.size * int((context_lens + query_lens).max()) < _WORTH_SHARING:
        attention(0, 1, *args)
    else:
        get_pool().run(attention, *args)
