"""The attention backend of compiled loops (its place in vLLM: ``flash_attn.py`` beside it).

`minivllm.attention.backends.numpy_backend` says what is computed, `minivllm.attention.ops` how.
"""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionBackend, AttentionMetadata
from minivllm.attention.ops import board, layers
from minivllm.attention.ops.jit import is_compiled
from minivllm.attention.ops.paged_attn import paged_attention, reshape_and_cache
from minivllm.attention.ops.prefix_prefill import context_attention
from minivllm.attention.ops.products import linear
from minivllm.threads import BOARD_SIZE, share, wait_awake_with

_EVERYTHING = 1 << 30  # a window that hides nothing

# Queries in a tile of a prefill, of all heads that share a key head: more make longer loops, fewer
# stay in the second cache.
_ROWS_AT_ONCE = 384

# So few new tokens are attended from like decodes.
_FEW_TOKENS = 4


class NumbaAttentionBackend(AttentionBackend):
    """Paged attention in Numba, on all cores."""

    @staticmethod
    def warm_up() -> None:
        """Compile the kernels, or load them from the cache, by a batch of one token."""
        kernels = [paged_attention, context_attention, reshape_and_cache, linear, layers.rms_norm,
                   layers.silu_and_mul, layers.rotary_embedding, board.multiply_together,
                   board.attend_together, board.wait_awake]
        if not all(is_compiled(kernel) for kernel in kernels):
            print("Compiling kernels, which takes ten to twenty seconds ...", file=sys.stderr)
        token = np.ones((1, 1, 1), np.float32)
        row = np.ones((1, 2), np.float32)
        kv_cache = np.zeros((2, 1, 1, 1, 1), np.float32)
        table, lens = np.zeros((1, 1), np.int32), np.ones(1, np.int32)
        if not numba.config.DISABLE_JIT:
            own = np.zeros(BOARD_SIZE, np.int64)
            board.multiply_together(own, row, row, np.ones((1, 1), np.float32))
            board.attend_together(own, token, kv_cache, table, lens, _EVERYTHING, token.copy())
            board.wait_awake(own, 0, 1)
            wait_awake_with(board.wait_awake)
        linear(0, 1, row, row, np.ones((1, 1), np.float32))
        layers.rms_norm(0, 1, row, row[0], np.float32(1), row)
        layers.silu_and_mul(0, 1, row, np.ones((1, 1), np.float32))
        heads = np.ones((1, 1, 2), np.float32)
        layers.rotary_embedding(0, 1, np.zeros(1, np.int64), heads, row[:, :1].copy(),
                                row[:, :1].copy(), heads.copy())
        NumbaAttentionBackend.reshape_and_cache(token, token, kv_cache, np.zeros(1, np.int64))
        paged_attention(0, 1, token, kv_cache, table, lens, _EVERYTHING, token.copy())
        context_attention(token, kv_cache, table[0], 0, 0, _EVERYTHING)

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
        tiles, num_kv_heads = [], kv_cache.shape[2]
        for prompt in prompts_of(metadata):
            if prompt.num_queries > _FEW_TOKENS:
                step = tokens_at_once(query.shape[1] // num_kv_heads)
                tiles += [(prompt, first, kv_head)
                          for first in range(0, prompt.num_queries, step)
                          for kv_head in range(num_kv_heads)]
                continue
            # As many decodes: copying the context would take longer than reading it again.
            lens = prompt.context_len + 1 + np.arange(prompt.num_queries, dtype=np.int32)
            NumbaAttentionBackend.paged_attention(
                query[prompt.rows], kv_cache, np.tile(prompt.block_table, (len(lens), 1)), lens,
                scale, sliding_window, out[prompt.rows])
        if tiles:
            longest = metadata.block_tables.shape[1] * kv_cache.shape[3]
            # Of a prompt the last tiles first: they see the most tokens, and so nobody waits long
            # for the thread that has the last one.
            share(query.size * longest, attend_from_tiles, reversed(tiles), query, kv_cache,
                  np.float32(scale), sliding_window or _EVERYTHING, out)

    @staticmethod
    def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                        block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                        scale: float, sliding_window: int | None,
                        out: NDArray[np.float32]) -> None:
        """Attend from the last token of each sequence."""
        # Addresses are handed over, so kind and order of the numbers must be right.
        result = np.ascontiguousarray(out, np.float32)  # the same array, as a rule
        board.attend(np.ascontiguousarray(query * np.float32(scale), np.float32),
                     np.ascontiguousarray(kv_cache, np.float32),
                     np.ascontiguousarray(block_tables, np.int32),
                     np.ascontiguousarray(seq_lens, np.int32),
                     sliding_window or _EVERYTHING, result)
        if result is not out:
            out[:] = result


class Prompt(NamedTuple):
    """Where the new tokens of a prefill are in the batch, and how many came before them."""

    first_row: int
    num_queries: int
    context_len: int
    block_table: NDArray[np.int32]

    @property
    def rows(self) -> slice:
        """Its rows of the batch."""
        return slice(self.first_row, self.first_row + self.num_queries)


def prompts_of(metadata: AttentionMetadata) -> Iterator[Prompt]:
    """Return the prefills of a batch."""
    for i in range(metadata.num_prefills):
        first_row, last_row = metadata.query_start_loc[i:i + 2].tolist()
        yield Prompt(first_row, last_row - first_row, int(metadata.context_lens[i]),
                     metadata.block_tables[i])


def attend_from_tiles(thread: int, num_threads: int, tiles: Iterator[tuple[Prompt, int, int]],
                      query: NDArray[np.float32], kv_cache: NDArray[np.float32], scale: float,
                      window: int, out: NDArray[np.float32]) -> None:
    """Take tiles until none of those that threads share is left.

    A tile is a prompt, the first of the tokens whose queries it has, and a key head.  All threads
    take from one iterator, over a list, which Python's lock keeps whole; a token sees `window`
    tokens.
    """
    num_heads, num_kv_heads = query.shape[1], kv_cache.shape[2]
    group = num_heads // num_kv_heads
    for prompt, first, kv_head in tiles:
        last = min(first + tokens_at_once(group), prompt.num_queries)
        rows = slice(prompt.first_row + first, prompt.first_row + last)
        heads = slice(kv_head * group, (kv_head + 1) * group)
        scaled = np.ascontiguousarray(query[rows, heads] * scale)  # (tokens, group, head_size)
        out[rows, heads] = context_attention(scaled, kv_cache, prompt.block_table, kv_head,
                                             prompt.context_len + first, window)


def tokens_at_once(group: int) -> int:
    """Return how many tokens' queries a tile has, of `group` query heads for a key head."""
    return max(1, _ROWS_AT_ONCE // group)
