"""What an attention backend is, and what it is told about a step.

Mirrors ``vllm/attention/backends/abstract.py``.  There is no padding: the tokens of a step lie
in one flat row, those of prefills first, then one for each decoding sequence.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray


@dataclass
class AttentionMetadata:
    """Where the tokens of a step come from and where their keys and values go.

    A *prefill* is one sequence with `query_len` new tokens after `context_len` tokens whose keys
    and values are in the cache already (earlier chunks, or a cached prefix).  A *decode* is one
    sequence with one new token.  Index i counts sequences: prefills first, then decodes.

    Attributes
    ----------
    backend : type of AttentionBackend
        Who computes attention in this step.
    num_prefills : int
        Number of prefill sequences.
    num_prefill_tokens : int
        Tokens of all prefills.
    num_decode_tokens : int
        Decoding sequences, one token each.
    slot_mapping : (num_tokens,) int64
        ``block_number * block_size + offset`` of each token; -1: do not store, it is there.
    seq_lens : (num_seqs,) int32
        Tokens of each sequence after this step: context and query.
    context_lens : (num_seqs,) int32
        Tokens of each sequence in the cache before this step.
    query_start_loc : (num_prefills + 1,) int32
        Tokens ``query_start_loc[i]`` up to ``query_start_loc[i + 1]`` are prefill i's.
    block_tables : (num_seqs, max_blocks) int32
        GPU block numbers, padded with 0, never read past `seq_lens`.
    """

    backend: "type[AttentionBackend]"
    num_prefills: int
    num_prefill_tokens: int
    num_decode_tokens: int
    slot_mapping: NDArray[np.int64]
    seq_lens: NDArray[np.int32]
    context_lens: NDArray[np.int32]
    query_start_loc: NDArray[np.int32]
    block_tables: NDArray[np.int32]


class AttentionBackend(ABC):
    """Reads and writes the paged KV cache of one layer.

    A layer's cache is one C-contiguous float32 array
    ``(2, num_blocks, num_kv_heads, block_size, head_size)``: keys at [0], values at [1].
    """

    @staticmethod
    def get_kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int,
                           head_size: int) -> tuple[int, ...]:
        """Return the shape of one layer's cache."""
        return (2, num_blocks, num_kv_heads, block_size, head_size)

    @staticmethod
    def get_layer_kernels() -> ModuleType | None:
        """Return kernels for the layers around attention; None: they stay in NumPy."""
        return None

    @staticmethod
    @abstractmethod
    def reshape_and_cache(key: NDArray[np.float32], value: NDArray[np.float32],
                          kv_cache: NDArray[np.float32],
                          slot_mapping: NDArray[np.int64]) -> None:
        """Store key and value ``(num_tokens, num_kv_heads, head_size)`` in their slots."""

    @staticmethod
    @abstractmethod
    def prefill_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                          metadata: AttentionMetadata, scale: float,
                          sliding_window: int | None, out: NDArray[np.float32]) -> None:
        """Attend from each prefill's new tokens to its context and, causally, to themselves.

        `query` and `out`: ``(num_prefill_tokens, num_heads, head_size)``.  The new tokens' keys
        and values are in the cache already.
        """

    @staticmethod
    @abstractmethod
    def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                        block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                        scale: float, sliding_window: int | None,
                        out: NDArray[np.float32]) -> None:
        """Attend from each decoding sequence's one token to all its tokens.

        `query` and `out`: ``(num_decode_tokens, num_heads, head_size)``; `block_tables` and
        `seq_lens` are those of the decodes only.
        """

    @staticmethod
    def swap_blocks(source: NDArray[np.float32], destination: NDArray[np.float32],
                    source_to_destination: list[tuple[int, int]]) -> None:
        """Copy blocks from one pool's cache to the other's."""
        if source_to_destination:
            sources, destinations = zip(*source_to_destination, strict=True)
            destination[:, list(destinations)] = source[:, list(sources)]

    @staticmethod
    def copy_blocks(kv_caches: list[NDArray[np.float32]],
                    source_to_destination: list[tuple[int, int]]) -> None:
        """Copy blocks within each layer's cache, all read before any is written."""
        if source_to_destination:
            sources, destinations = zip(*source_to_destination, strict=True)
            for kv_cache in kv_caches:
                kv_cache[:, list(destinations)] = kv_cache[:, list(sources)]
