"""Kernels of a prefill's attention (mirrors ``vllm/attention/ops/prefix_prefill.py``).

A prefill's attention is two matrix products with exponentials between them, a tile of queries and
a tile of keys at a time, so that the scores never leave the caches (FlashAttention, 2022).  What
`minivllm.attention.ops.paged_attn` does with one query for each head, reading keys from memory as
fast as it can, is done here with hundreds of them, computing as fast as it can.

A *row* is the query of one token and one query head; those of a token that share a key head are
neighbours.  Queries, scores and sums are transposed here, a row is a column of theirs: so one
vector instruction takes one number of a key and the same place of 16 queries (8 on an older
processor), and nothing is ever added up across a vector.
"""

import numpy as np

from minivllm.attention.ops.instructions import larger
from minivllm.attention.ops.jit import EXACT, jit
from minivllm.attention.ops.paged_attn import CACHE_LINE, LOWEST, Floats, Ints, exponential

# Tokens whose keys or values are multiplied at a time.  A multiple of 4 and of 3, for `add_product`
# takes them as rows of its first matrix (keys) and as columns of it (values).
STEP = 12

# Tokens that are attended to at a time: so many that scaling the sums takes little time, so few
# that their scores stay in the second cache.
KEYS_AT_ONCE = 10 * STEP


@jit(EXACT)
def round_up(number: int, multiple: int) -> int:
    """Return the next multiple."""
    return (number + multiple - 1) // multiple * multiple


@jit(EXACT)
def zeros_aligned(num_rows: int, num_columns: int) -> Floats:
    """Return zeros that begin where a cache line does: no vector then lies in two lines."""
    room = np.zeros(num_rows * num_columns + CACHE_LINE, np.float32)
    start = (CACHE_LINE - room.ctypes.data // 4 % CACHE_LINE) % CACHE_LINE
    return room[start:start + num_rows * num_columns].reshape(num_rows, num_columns)


@jit(EXACT)
def copy_tokens(kv_cache: Floats, block_table: Ints, kv_head: int, start: int, first: int,
                last: int, keys: Floats, values: Floats) -> None:
    """Copy keys and values of tokens from `first` up to `last` out of their blocks.

    `keys` and `values` are ``(KEYS_AT_ONCE, at least head_size)``; token t goes to row
    ``t - start``, and rows of other tokens become 0: a hidden NaN would spoil what it is multiplied
    with.  Columns from `head_size` on are left as they are.
    """
    block_size, head_size = kv_cache.shape[3:]
    for i in range(KEYS_AT_ONCE):
        t = start + i
        if first <= t < last:
            block, offset = block_table[t // block_size], t % block_size
            for d in range(head_size):
                keys[i, d] = kv_cache[0, block, kv_head, offset, d]
                values[i, d] = kv_cache[1, block, kv_head, offset, d]
        else:
            keys[i] = 0
            values[i] = 0


@jit(EXACT)
def add_product(a: Floats, b: Floats, first_column: int, sums: Floats) -> None:
    """Add ``a @ b`` to the sums, from a column on.

    `a` is ``(m, n)``, m a multiple of 4 and n of 3, `b` ``(n, num_columns)``, `sums`
    ``(m, num_columns)``.  Twelve numbers of `a` stay in registers while three rows of `b` and four
    of the sums pass by: what is loaded of `b` is used four times, of the sums three times.
    """
    # Without a sign an index cannot count from the end, and so the loop is vectorised.
    columns = range(np.uint64(first_column), np.uint64(b.shape[1]))
    for i in range(0, a.shape[0], 4):
        for j in range(0, a.shape[1], 3):
            a00, a01, a02 = a[i, j], a[i, j + 1], a[i, j + 2]
            a10, a11, a12 = a[i + 1, j], a[i + 1, j + 1], a[i + 1, j + 2]
            a20, a21, a22 = a[i + 2, j], a[i + 2, j + 1], a[i + 2, j + 2]
            a30, a31, a32 = a[i + 3, j], a[i + 3, j + 1], a[i + 3, j + 2]
            for r in columns:
                b0, b1, b2 = b[j, r], b[j + 1, r], b[j + 2, r]
                sums[i, r] = sums[i, r] + a00 * b0 + a01 * b1 + a02 * b2
                sums[i + 1, r] = sums[i + 1, r] + a10 * b0 + a11 * b1 + a12 * b2
                sums[i + 2, r] = sums[i + 2, r] + a20 * b0 + a21 * b1 + a22 * b2
                sums[i + 3, r] = sums[i + 3, r] + a30 * b0 + a31 * b1 + a32 * b2


@jit(EXACT)
def first_that_sees(distance: int, group: int) -> int:
    """Return the column of the first row that sees a token, or one a little before it.

    No vector from there on lies in two cache lines.  Arguments are those of `hide`.
    """
    return max(0, distance) * group // CACHE_LINE * CACHE_LINE


@jit(EXACT)
def hide(scores: Floats, distance: int, group: int, window: int) -> None:
    """Set the scores of what a row may not see to minus infinity.

    Parameters
    ----------
    scores : (num_keys, num_rows) float32
    distance : int
        Position of the first key less that of the first query in their sequence.
    group : int
        Rows for each token.
    window : int
        How many tokens a token sees, itself included.
    """
    for t in range(len(scores)):
        first_row = max(0, (distance + t) * group)
        last_row = max(0, (distance + t + window) * group)
        scores[t, :first_row] = -np.inf
        scores[t, last_row:] = -np.inf


@jit(EXACT)
def weigh(scores: Floats, highest: Floats, totals: Floats, factors: Floats) -> None:
    """Turn the ``(num_keys, num_rows)`` scores into weights ``exp(score - highest)``.

    `highest` and `totals` ``(num_rows,)`` are brought up to date.  Where the highest score of a row
    has risen, what was added up with the old one is to be scaled by the row's number in `factors`
    ``(num_rows,)``, which is written.  With NaN among the scores of a row `highest` is any number,
    and `exponential` keeps the NaN.
    """
    for r in range(len(highest)):
        factors[r] = highest[r]
    for t in range(len(scores)):
        for r in range(len(highest)):
            highest[r] = larger(highest[r], scores[t, r])
    for r in range(len(highest)):
        factors[r] = exponential(factors[r] - highest[r])
        totals[r] *= factors[r]
    for t in range(len(scores)):
        for r in range(len(highest)):
            scores[t, r] = exponential(scores[t, r] - highest[r])
            totals[r] += scores[t, r]


@jit(EXACT)
def scale(sums: Floats, factors: Floats) -> None:
    """Multiply each column of the ``(head_size, num_rows)`` sums by its factor."""
    for d in range(len(sums)):
        for r in range(len(factors)):
            sums[d, r] *= factors[r]


@jit(EXACT)
def context_attention(query: Floats, kv_cache: Floats, block_table: Ints, kv_head: int,
                      position: int, window: int) -> Floats:
    """Attend from consecutive tokens to all tokens that they may see, with one key head.

    Tiles of keys begin at multiples of `KEYS_AT_ONCE`, so a token's result is the same to the last
    bit wherever the tile of queries that it is in begins (with finite values: NaN and infinity also
    reach a few tokens before theirs).  Sums are divided by the totals at the end, so values of 1e36
    and more may overflow.

    Parameters
    ----------
    query : (num_tokens, group, head_size) float32
        Scaled; the query heads that share the key head.
    kv_cache : (2, num_blocks, num_kv_heads, block_size, head_size) float32
    block_table : (max_blocks,) int32
    position : int
        Of the first token in its sequence.
    window : int
        How many tokens a token sees, itself included.

    Returns
    -------
    (num_tokens, group, head_size) float32
    """
    num_tokens, group, head_size = query.shape
    num_rows = num_tokens * group
    num_columns = round_up(num_rows, CACHE_LINE)  # the last ones are no rows, and go nowhere
    keys = zeros_aligned(KEYS_AT_ONCE, round_up(head_size, 3))
    values = zeros_aligned(KEYS_AT_ONCE, round_up(head_size, 4))
    queries = zeros_aligned(keys.shape[1], num_columns)
    rows = query.reshape(num_rows, head_size)
    for r in range(num_rows):
        for d in range(head_size):
            queries[d, r] = rows[r, d]
    room = zeros_aligned(KEYS_AT_ONCE, num_columns)
    sums = zeros_aligned(values.shape[1], num_columns)
    state = zeros_aligned(3, num_columns)
    highest, totals, factors = state[0], state[1], state[2]
    highest[:] = LOWEST
    begin, end = max(0, position + 1 - window), position + num_tokens  # what anybody sees
    for start in range(begin // KEYS_AT_ONCE * KEYS_AT_ONCE, end, KEYS_AT_ONCE):
        copy_tokens(kv_cache, block_table, kv_head, start, begin, end, keys, values)
        num_keys = min(KEYS_AT_ONCE, round_up(end - start, STEP))
        scores = room[:num_keys]
        scores[:] = 0
        # (num_keys, head_size) @ (head_size, num_columns)
        for i in range(0, num_keys, STEP):
            first_column = first_that_sees(start + i - position, group)
            add_product(keys[i:i + STEP], queries, first_column, scores[i:i + STEP])
        hide(scores, start - position, group, window)
        weigh(scores, highest, totals, factors)
        scale(sums, factors)
        # (head_size, num_keys) @ (num_keys, num_columns)
        for i in range(0, num_keys, STEP):
            first_column = first_that_sees(start + i - position, group)
            add_product(values[i:i + STEP].T, scores[i:i + STEP], first_column, sums)
    means = np.empty((num_rows, head_size), np.float32)
    for r in range(num_rows):
        for d in range(head_size):
            means[r, d] = sums[d, r] / totals[r]
    return means.reshape(query.shape)
