"""The attention backend that defines what attention is: gather, matmul, softmax, matmul.

Its place in vLLM: ``vllm/attention/backends/torch_sdpa.py``.  For each sequence the blocks of its
table are gathered into one contiguous array, and from there on nothing is paged any more.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionBackend, AttentionMetadata

# Queries of a prefill that are attended at once: bounds the (tile, context) array of scores.
QUERY_TILE = 128


class NumpyAttentionBackend(AttentionBackend):
    """Paged attention in NumPy."""

    @staticmethod
    def reshape_and_cache(key: NDArray[np.float32], value: NDArray[np.float32],
                          kv_cache: NDArray[np.float32],
                          slot_mapping: NDArray[np.int64]) -> None:
        """Store keys and values in their slots."""
        stored = slot_mapping >= 0
        blocks, offsets = np.divmod(slot_mapping[stored], kv_cache.shape[3])
        kv_cache[0, blocks, :, offsets] = key[stored]  # (num_stored, num_kv_heads, head_size)
        kv_cache[1, blocks, :, offsets] = value[stored]

    @staticmethod
    def prefill_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                          metadata: AttentionMetadata, scale: float,
                          sliding_window: int | None, out: NDArray[np.float32]) -> None:
        """Attend from each prefill's new tokens, a tile of them at a time."""
        for i in range(metadata.num_prefills):
            first_row, last_row = metadata.query_start_loc[i:i + 2]
            context_len = metadata.context_lens[i]
            for row in range(first_row, last_row, QUERY_TILE):
                rows = slice(row, min(row + QUERY_TILE, last_row))
                positions = context_len + np.arange(rows.start, rows.stop) - first_row
                out[rows] = attend(query[rows], positions, kv_cache, metadata.block_tables[i],
                                   scale, sliding_window)

    @staticmethod
    def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                        block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                        scale: float, sliding_window: int | None,
                        out: NDArray[np.float32]) -> None:
        """Attend from the last token of each sequence."""
        for i, seq_len in enumerate(seq_lens):
            position = np.array([seq_len - 1])
            out[i:i + 1] = attend(query[i:i + 1], position, kv_cache, block_tables[i], scale,
                                  sliding_window)


def attend(query: NDArray[np.float32], positions: NDArray[np.int64],
           kv_cache: NDArray[np.float32], block_table: NDArray[np.int32], scale: float,
           sliding_window: int | None) -> NDArray[np.float32]:
    """Attend from some consecutive tokens of one sequence to all tokens that they may see.

    Parameters
    ----------
    query : (num_queries, num_heads, head_size) float32
    positions : (num_queries,) int64
        Of the queries in their sequence, ascending.
    kv_cache : (2, num_blocks, num_kv_heads, block_size, head_size) float32
    block_table : (max_blocks,) int32
    scale : float
    sliding_window : int or None

    Returns
    -------
    (num_queries, num_heads, head_size) float32
    """
    num_queries, _, head_size = query.shape
    num_kv_heads = kv_cache.shape[2]
    window = sliding_window or positions[-1] + 1
    start = max(0, positions[0] - window + 1)
    keys, values = gather(kv_cache, block_table, start, positions[-1] + 1)
    key_positions = np.arange(start, positions[-1] + 1)
    distance = positions[:, None] - key_positions  # (num_queries, num_keys)
    visible = (distance >= 0) & (distance < window)

    # Query heads that share a key head stand beside each other.
    grouped = query.reshape(num_queries, num_kv_heads, -1, head_size).transpose(1, 2, 0, 3)
    scores = grouped @ keys[:, None].swapaxes(2, 3)  # (num_kv_heads, group, num_queries, num_keys)
    scores = np.where(visible, scores * np.float32(scale), np.float32(-np.inf))
    weights = softmax(scores)
    output = weights @ values[:, None]  # (num_kv_heads, group, num_queries, head_size)
    by_query: NDArray[np.float32] = output.transpose(2, 0, 1, 3).reshape(query.shape)
    return by_query


def gather(kv_cache: NDArray[np.float32], block_table: NDArray[np.int32], start: int,
           stop: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return keys and values of tokens `start` up to `stop` of a sequence, contiguous.

    Each has shape ``(num_kv_heads, stop - start, head_size)``.
    """
    block_size, head_size = kv_cache.shape[3:]
    first = start // block_size
    table = block_table[first:-(-stop // block_size)]
    blocks = kv_cache[:, table].swapaxes(1, 2)  # (2, num_kv_heads, blocks, block_size, head_size)
    flat = blocks.reshape(2, blocks.shape[1], -1, head_size)
    keys, values = flat[:, :, start - first * block_size:stop - first * block_size]
    return keys, values


def softmax(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return exp of the scores, normalised to sum 1 over the last axis."""
    weights: NDArray[np.float32] = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights
