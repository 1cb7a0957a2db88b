"""The attention backend of compiled loops (its place in vLLM: ``flash_attn.py`` beside it).

`minivllm.attention.backends.numpy_backend` says what is computed, `minivllm.attention.ops` how.
"""

import sys
from array import array
from types import ModuleType

import numba
import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionBackend, AttentionMetadata
from minivllm.attention.ops import layers
from minivllm.attention.ops.jit import is_compiled
from minivllm.attention.ops.paged_attn import attention, reshape_and_cache
from minivllm.attention.ops.waiting import wait_awake
from minivllm.threads import share, wait_awake_with

_EVERYTHING = 1 << 30  # a window that hides nothing


class NumbaAttentionBackend(AttentionBackend):
    """Paged attention in Numba, on all cores."""

    @staticmethod
    def warm_up() -> None:
        """Compile the kernels, or load them from the cache, by a batch of one token."""
        kernels = [attention, reshape_and_cache, layers.linear, layers.rms_norm,
                   layers.silu_and_mul, layers.rotary_embedding, wait_awake]
        if not all(is_compiled(kernel) for kernel in kernels):
            print("Compiling kernels, which takes some seconds the first time.", file=sys.stderr)
        token = np.ones((1, 1, 1), np.float32)
        row = np.ones((1, 2), np.float32)
        if not numba.config.DISABLE_JIT:
            wait_awake(array("q", [0]), 0, 1)
            wait_awake_with(wait_awake)
        layers.linear(0, 1, row, row, np.ones((1, 1), np.float32))
        layers.rms_norm(0, 1, row, row[0], np.float32(1), row)
        layers.silu_and_mul(0, 1, row, np.ones((1, 1), np.float32))
        layers.rotary_embedding(0, 1, np.zeros(1, np.int64), token, row, row, token)
        kv_cache = np.zeros((2, 1, 1, 1, 1), np.float32)
        NumbaAttentionBackend.reshape_and_cache(token, token, kv_cache, np.zeros(1, np.int64))
        NumbaAttentionBackend.paged_attention(token, kv_cache, np.zeros((1, 1), np.int32),
                                              np.ones(1, np.int32), 1.0, None, token)

    @staticmethod
    def get_layer_kernels() -> ModuleType:
        """Return the kernels of the layers around attention."""
        return layers

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
        _attend(query, kv_cache, metadata.block_tables[:num_prefills],
                metadata.context_lens[:num_prefills], metadata.query_start_loc, scale,
                sliding_window, out)

    @staticmethod
    def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                        block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                        scale: float, sliding_window: int | None,
                        out: NDArray[np.float32]) -> None:
        """Attend from the last token of each sequence."""
        query_start_loc = np.arange(len(seq_lens) + 1, dtype=np.int32)
        _attend(query, kv_cache, block_tables, seq_lens - 1, query_start_loc, scale,
                sliding_window, out)


def _attend(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
            block_tables: NDArray[np.int32], context_lens: NDArray[np.int32],
            query_start_loc: NDArray[np.int32], scale: float, sliding_window: int | None,
            out: NDArray[np.float32]) -> None:
    longest = block_tables.shape[1] * kv_cache.shape[3]
    share(query.size * longest, attention, np.ascontiguousarray(query), kv_cache, block_tables,
          context_lens, query_start_loc, np.float32(scale), sliding_window or _EVERYTHING, out)
