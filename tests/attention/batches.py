"""Random ragged batches over a paged cache, and attention over contiguous float64 arrays."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from minivllm.attention.backends.abstract import AttentionMetadata


@dataclass
class Batch:
    """Queries of some sequences whose keys and values lie in shuffled blocks."""

    query: np.ndarray  # (num_tokens, num_heads, head_size)
    key: np.ndarray  # (num_tokens, num_kv_heads, head_size), of the new tokens
    value: np.ndarray
    kv_cache: np.ndarray  # NaN wherever nothing was stored
    metadata: AttentionMetadata
    contexts: list  # for each sequence keys and values of its context, (2, context, heads, size)
    sliding_window: int | None
    scale: float


@st.composite
def batches(draw, decodes_only=False):
    num_kv_heads = draw(st.integers(1, 3))
    num_heads = num_kv_heads * draw(st.sampled_from([1, 2, 3, 4, 8]))
    head_size = draw(st.sampled_from([1, 4, 6, 8, 16, 20, 64]))
    block_size = draw(st.sampled_from([1, 2, 3, 8, 16, 32, 150]))
    num_seqs = draw(st.integers(1, 4))
    query_lens = [1 if decodes_only else draw(st.integers(1, 70)) for _ in range(num_seqs)]
    context_lens = [draw(st.integers(0, 300)) for _ in range(num_seqs)]
    window = draw(st.none() | st.integers(1, 350))
    seed = draw(st.integers(0, 2 ** 32 - 1))
    return make_batch(num_heads, num_kv_heads, head_size, block_size, query_lens, context_lens,
                      window, seed)


def make_batch(num_heads, num_kv_heads, head_size, block_size, query_lens, context_lens,
               window=None, seed=0):
    rng = np.random.default_rng(seed)
    query_lens, context_lens = np.array(query_lens, np.int32), np.array(context_lens, np.int32)
    seq_lens = query_lens + context_lens
    blocks_of = -(-seq_lens // block_size)
    free = list(rng.permutation(blocks_of.sum() + 2))
    kv_cache = np.full((2, len(free), num_kv_heads, block_size, head_size), np.nan, np.float32)
    tables = np.zeros((len(seq_lens), blocks_of.max()), np.int32)
    slots, contexts = [], []
    for i, seq_len in enumerate(seq_lens):
        tables[i, :blocks_of[i]] = [free.pop() for _ in range(blocks_of[i])]
        position = np.arange(seq_len)
        slot = tables[i, position // block_size].astype(np.int64) * block_size
        slot += position % block_size
        context = random_floats(rng, 2, context_lens[i], num_kv_heads, head_size)
        for t in range(context_lens[i]):
            kv_cache[:, slot[t] // block_size, :, slot[t] % block_size] = context[:, t]
        slots.append(slot[context_lens[i]:])
        contexts.append(context)
    num_tokens = query_lens.sum()
    metadata = AttentionMetadata(
        backend=None, num_prefills=len(seq_lens), num_prefill_tokens=int(num_tokens),
        num_decode_tokens=0, slot_mapping=np.concatenate(slots), seq_lens=seq_lens,
        context_lens=context_lens, block_tables=tables,
        query_start_loc=np.concatenate([[0], np.cumsum(query_lens)]).astype(np.int32))
    return Batch(random_floats(rng, num_tokens, num_heads, head_size),
                 random_floats(rng, num_tokens, num_kv_heads, head_size),
                 random_floats(rng, num_tokens, num_kv_heads, head_size),
                 kv_cache, metadata, contexts, window, head_size ** -0.5)


def random_floats(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def run(backend, batch, cache=None):
    """Store the new tokens, attend from them, and return the output and the cache."""
    cache = batch.kv_cache.copy() if cache is None else cache
    out = np.full_like(batch.query, np.nan)
    backend.reshape_and_cache(batch.key, batch.value, cache, batch.metadata.slot_mapping)
    backend.prefill_attention(batch.query, cache, batch.metadata, batch.scale,
                              batch.sliding_window, out)
    return out, cache


def run_decode(backend, batch):
    """As `run`, for a batch with one new token for each sequence."""
    cache = batch.kv_cache.copy()
    out = np.full_like(batch.query, np.nan)
    backend.reshape_and_cache(batch.key, batch.value, cache, batch.metadata.slot_mapping)
    backend.paged_attention(batch.query, cache, batch.metadata.block_tables,
                            batch.metadata.seq_lens, batch.scale, batch.sliding_window, out)
    return out


def dense(batch):
    """Attention by its formula, one query and one head at a time, over contiguous arrays."""
    out = np.empty(batch.query.shape)
    group = batch.query.shape[1] // batch.key.shape[1]
    starts = batch.metadata.query_start_loc
    for i, context in enumerate(batch.contexts):
        rows = slice(starts[i], starts[i + 1])
        keys = np.concatenate([context[0], batch.key[rows]]).astype(np.float64)
        values = np.concatenate([context[1], batch.value[rows]]).astype(np.float64)
        for row in range(rows.start, rows.stop):
            stop = len(context[0]) + row - rows.start + 1
            start = max(0, stop - (batch.sliding_window or stop))
            for head in range(batch.query.shape[1]):
                kv_head = head // group
                scores = keys[start:stop, kv_head] @ batch.query[row, head] * batch.scale
                weights = np.exp(scores - scores.max())
                out[row, head] = weights @ values[start:stop, kv_head] / weights.sum()
    return out
