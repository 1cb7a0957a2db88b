"""Kernels of paged attention (mirrors ``vllm/attention/ops/paged_attn.py`` and ``csrc/attention``).

Loops that compute what `minivllm.attention.backends.numpy_backend` defines.  In a decode the work
is to read keys and values: `paged_attention` reads each once, where it lies, `KEY_TILE` tokens at a
time, and keeps for each query the highest score so far and the sum of the exponentials (Milakov and
Gimelshein, 2018).  `minivllm.attention.ops.prefix_prefill` does it for prompts.

In all loops ``t`` counts tokens, ``d`` places in a head, and ``r`` rows: a row is the query of one
token and one query head; rows that share a key head read its keys and values together.
"""

import math

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.ops.instructions import fetch_line, larger
from minivllm.attention.ops.jit import EXACT, REORDERED, jit

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

# Tokens that a decode attends to at a time: so many that keys and values of a head, and their
# scores, stay in the fast caches.
KEY_TILE = 128

CACHE_LINE = 16  # numbers of 4 bytes

# Below every score but minus infinity; unlike that one it can be subtracted from any.
LOWEST = np.float32(np.finfo(np.float32).min)


@jit(EXACT)
def reshape_and_cache(key: Floats, value: Floats, kv_cache: Floats,
                      slot_mapping: NDArray[np.int64]) -> None:
    """Store keys and values ``(num_tokens, num_kv_heads, head_size)`` in their slots.

    `kv_cache` is ``(2, num_blocks, num_kv_heads, block_size, head_size)``, `slot_mapping`
    ``(num_tokens,)``; -1: do not store.
    """
    block_size = kv_cache.shape[3]
    for t in range(len(slot_mapping)):
        slot = slot_mapping[t]
        if slot >= 0:
            for kv_head in range(key.shape[1]):
                for d in range(key.shape[2]):
                    block, offset = slot // block_size, slot % block_size
                    kv_cache[0, block, kv_head, offset, d] = key[t, kv_head, d]
                    kv_cache[1, block, kv_head, offset, d] = value[t, kv_head, d]


@jit(REORDERED)
def total(weights: Floats) -> float:
    """Return the sum of ``(num_keys,)`` weights."""
    result = np.float32(0)
    for t in range(len(weights)):
        result += weights[t]
    return result  # type: ignore[no-any-return]


@jit(REORDERED)
def maximum(scores: Floats, floor: float) -> float:
    """Return the highest of ``(num_keys,)`` scores, at least `floor`.

    With NaN among them it is any number; `exp_minus` then keeps the NaN.
    """
    result = floor
    for t in range(len(scores)):
        result = larger(result, scores[t])
    return result


@jit(EXACT)
def exponential(x: float) -> float:
    """Return ``exp(x)`` of a float32 number that is at most 0; below -87 it is 0.

    With ``x = n ln 2 + rest``, the exponential of the rest, at most half of ln 2, is a polynomial
    (that of the Cephes library), and ``2 ** n`` is the float32 number whose exponent bits are
    n + 127.  A loop that calls this is vectorised, one that calls ``exp`` is not.  NaN stays NaN.
    """
    kept = np.float32(-87) if x < np.float32(-87) else x
    n = np.rint(kept * np.float32(1.44269504))  # 1 / ln 2
    rest = kept - n * np.float32(0.693359375)  # ln 2 in two parts; this product is exact
    rest = rest + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4) * rest + np.float32(1.3981999507e-3)
    p = p * rest + np.float32(8.3334519073e-3)
    p = p * rest + np.float32(4.1665795894e-2)
    p = p * rest + np.float32(1.6666665459e-1)
    p = p * rest + np.float32(0.5)
    p = p * rest * rest + rest + np.float32(1)
    p = p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0) if x < np.float32(-87) else p  # type: ignore[no-any-return]


@jit(EXACT)
def exp_minus(scores: Floats, highest: float) -> float:
    """Replace ``(num_keys,)`` scores by ``exp(score - highest)`` and return the sum.

    No score may be above `highest`.
    """
    for t in range(len(scores)):
        scores[t] = exponential(scores[t] - highest)
    return total(scores)


@jit(EXACT)
def exponentiate(scores: Floats, r: int, highest: Floats, totals: Floats, sums: Floats) -> None:
    """Turn the ``(num_keys,)`` scores of row r into weights ``exp(score - highest)``.

    `highest` and `totals` are ``(num_rows,)``, `sums` is ``(num_rows, head_size)``.  When the
    highest score of the row rises, what was added up with the old one is scaled down.
    """
    old, new = highest[r], maximum(scores, highest[r])
    if new > old:
        highest[r] = new
        factor = math.exp(old - new)
        totals[r] *= factor
        for d in range(sums.shape[1]):
            sums[r, d] *= factor
    totals[r] += exp_minus(scores, highest[r])


@jit(EXACT)
def fetch(block: Floats) -> None:
    """Ask for some tokens' ``(num_tokens, head_size)`` keys or values, and do not wait for them.

    A processor fetches ahead by itself while it reads on and on, but it cannot know which block of
    a block table comes next.  So kernels ask for the next block while they compute with a full one.
    """
    for line in range(block.size // CACHE_LINE):
        fetch_line(block, line * CACHE_LINE)


@jit(REORDERED)
def put_scores(rows: Floats, keys: Floats, num_keys: int, following: Floats, scores: Floats,
               column: int) -> None:
    """Put the products of all rows with the first keys of a block into `scores`, from `column` on.

    `rows` is ``(num_rows, head_size)``, `keys` and `following`, those of the next block, are
    ``(block_size, head_size)``, `scores` is ``(num_rows, KEY_TILE or block_size)``.  Four keys at a
    time, so that each number of a row is loaded once for them, and meanwhile four of the
    `following` block are fetched.
    """
    zero = np.float32(0)
    fours = num_keys - num_keys % 4
    for t in range(0, fours, 4):
        fetch(following[t:t + 4])
        for r in range(len(rows)):
            s0, s1, s2, s3 = zero, zero, zero, zero
            for d in range(rows.shape[1]):
                s0 += rows[r, d] * keys[t, d]
                s1 += rows[r, d] * keys[t + 1, d]
                s2 += rows[r, d] * keys[t + 2, d]
                s3 += rows[r, d] * keys[t + 3, d]
            scores[r, column + t] = s0
            scores[r, column + t + 1] = s1
            scores[r, column + t + 2] = s2
            scores[r, column + t + 3] = s3
    for r in range(len(rows)):
        for t in range(fours, num_keys):
            s0 = zero
            for d in range(rows.shape[1]):
                s0 += rows[r, d] * keys[t, d]
            scores[r, column + t] = s0


@jit(EXACT)
def add_values(weights: Floats, column: int, values: Floats, num_values: int, following: Floats,
               sums: Floats) -> None:
    """Add the first values of a block, times their weights from `column` on, to each row's sum.

    Shapes are those of `put_scores`; `sums` is ``(num_rows, head_size)``.  Four values at a time,
    so that each sum is loaded and stored once for them, and meanwhile four of the `following` block
    are fetched.
    """
    fours = num_values - num_values % 4
    for t in range(0, fours, 4):
        fetch(following[t:t + 4])
        for r in range(len(sums)):
            w0, w1 = weights[r, column + t], weights[r, column + t + 1]
            w2, w3 = weights[r, column + t + 2], weights[r, column + t + 3]
            for d in range(sums.shape[1]):
                sums[r, d] = (sums[r, d] + w0 * values[t, d] + w1 * values[t + 1, d]
                              + w2 * values[t + 2, d] + w3 * values[t + 3, d])
    for r in range(len(sums)):
        for t in range(fours, num_values):
            w0 = weights[r, column + t]
            for d in range(sums.shape[1]):
                sums[r, d] += w0 * values[t, d]


@jit(REORDERED)
def attend(rows: Floats, seq_len: int, kv_cache: Floats, block_table: Ints, first_head: int,
           last_head: int, window: int) -> Floats:
    """Return the weighted mean of values for each row; each sees the last `window` tokens.

    Parameters
    ----------
    rows : ((last_head - first_head) * group, head_size) float32
        Scaled queries of one token, `group` for each key head from `first_head` up to `last_head`.
    kv_cache : (2, num_blocks, num_kv_heads, block_size, head_size) float32
    block_table : (max_blocks,) int32

    Returns
    -------
    ((last_head - first_head) * group, head_size) float32
    """
    block_size, group = kv_cache.shape[3], len(rows) // (last_head - first_head)
    last_block = (seq_len - 1) // block_size
    blocks_at_once = max(1, KEY_TILE // block_size)
    weights = np.empty((len(rows), blocks_at_once * block_size), np.float32)
    sums = np.zeros(rows.shape, np.float32)
    totals = np.zeros(len(rows), np.float32)
    highest = np.empty(len(rows), np.float32)
    highest[:] = LOWEST
    for first in range(max(0, seq_len - window) // block_size, last_block + 1, blocks_at_once):
        last = min(first + blocks_at_once - 1, last_block)
        start = first * block_size  # the token whose key is in column 0 of weights
        for block in range(first, last + 1):
            t = block * block_size
            # After the last keys come the first values.
            following = kv_cache[np.int64(block == last),
                                 block_table[block + 1 if block < last else first]]
            for i in range(last_head - first_head):
                head, r = first_head + i, i * group
                put_scores(rows[r:r + group], kv_cache[0, block_table[block], head],
                           min(block_size, seq_len - t), following[head], weights[r:r + group],
                           t - start)
        end = min(seq_len - start, weights.shape[1])
        begin = max(0, seq_len - start - window)
        weights[:, :begin] = 0
        for r in range(len(rows)):
            exponentiate(weights[r, begin:end], r, highest, totals, sums)
        for block in range(first, last + 1):
            t = block * block_size
            # After the last values come the next keys.
            following = kv_cache[np.int64(block < last), block_table[min(block + 1, last_block)]]
            for i in range(last_head - first_head):
                head, r = first_head + i, i * group
                add_values(weights[r:r + group], t - start, kv_cache[1, block_table[block], head],
                           min(block_size, seq_len - t), following[head], sums[r:r + group])
    for r in range(len(rows)):
        for d in range(rows.shape[1]):
            sums[r, d] /= totals[r]
    return sums


@jit(REORDERED)
def paged_attention(part: int, num_parts: int, query: Floats, kv_cache: Floats,
                    block_tables: Ints, seq_lens: Ints, window: int, out: Floats) -> None:
    """Attend from the last token of each sequence; compute one of `num_parts` parts of it.

    Parts have equally many keys, to within those that one key head sees in one sequence.  Where
    possible the key heads of a sequence are together: they lie side by side in a block.

    Parameters
    ----------
    part, num_parts : int
    query, out : (num_seqs, num_heads, head_size) float32
        The query is scaled.
    kv_cache : (2, num_blocks, num_kv_heads, block_size, head_size) float32
    block_tables : (num_seqs, max_blocks) int32
    seq_lens : (num_seqs,) int32
    window : int
        How many tokens a token sees, itself included.
    """
    num_kv_heads = kv_cache.shape[2]
    group = query.shape[1] // num_kv_heads
    num_keys = 0  # of all sequences and heads
    for seq in range(len(seq_lens)):
        num_keys += min(seq_lens[seq], window) * num_kv_heads
    begin, end = num_keys * part // num_parts, num_keys * (part + 1) // num_parts
    before = 0  # keys of the sequences before
    for seq in range(len(seq_lens)):
        # The heads whose first key is in this part.
        num_seen = min(seq_lens[seq], window)
        first_head = min(max(0, (begin - before + num_seen - 1) // num_seen), num_kv_heads)
        last_head = min(max(0, (end - before + num_seen - 1) // num_seen), num_kv_heads)
        before += num_seen * num_kv_heads
        if first_head == last_head:
            continue
        first_row = first_head * group
        means = attend(query[seq, first_row:last_head * group], seq_lens[seq], kv_cache,
                       block_tables[seq], first_head, last_head, window)
        for r in range(len(means)):
            for d in range(means.shape[1]):
                out[seq, first_row + r, d] = means[r, d]
