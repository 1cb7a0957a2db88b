"""Products of few tokens with a weight, which threads share without Python between them.

To hand a task to another thread in Python takes as long as a small product.  So threads that wait
for their next task keep looking at a *board*, an array ``(BOARD_SIZE,)`` of int64: whoever has a
product puts it there, and all take parts of it until none is left.  Who looks late takes what is
left, and who is asleep takes nothing.
"""

import numba
import numpy as np
from numpy.typing import NDArray

from minivllm.attention.ops.instructions import exchange, fetch_and_add, floats_at, read_afresh
from minivllm.attention.ops.jit import EXACT, REORDERED, jit
from minivllm.threads import get_pool, is_worth_sharing

Floats = NDArray[np.float32]
Board = NDArray[np.int64]

# Where the numbers of a board are, those that several threads change at every product on cache
# lines of their own.  (The pool's counters are on the first.)
TAKEN = 16  # 1 while somebody's product is on the board
UNTAKEN_PARTS, UNFINISHED_PARTS = 32, 48
PRODUCT = 64  # six numbers: addresses of x, weight and out; tokens, input size, output size

# Rows of each of three streams of a weight that all tokens are multiplied with before the next.
ROWS_AT_ONCE = 64

# Few enough that each is worth taking, and many enough that no thread waits long for the last one.
NUM_PARTS = 8

# About five milliseconds: more than passes between two products, also when a step lies between.
_TRIES = 700_000
# About thirty microseconds: in that time a thread gets from the counter out of Python.
_TRIES_MORE = 4_000


def multiply(x: Floats, weight: Floats, out: Floats) -> None:
    """Put ``x @ weight.T`` into `out`, on all threads that are awake.

    Parameters
    ----------
    x : (num_tokens, input_size) float32
        Few tokens.
    weight : (output_size, input_size) float32
    out : (num_tokens, output_size) float32
        Contiguous, as are the others.
    """
    pool = get_pool()
    if pool.num_threads == 1 or not is_worth_sharing(len(x) * weight.size):
        linear(0, 1, x, weight, out)
    elif numba.config.DISABLE_JIT:
        pool.run(linear, x, weight, out)
    elif not multiply_together(pool.board, x, weight, out):
        pool.wake()


@jit(REORDERED)
def linear(part: int, num_parts: int, x: Floats, weight: Floats, out: Floats) -> None:
    """Put the products with one of `num_parts` equal groups of the weight's rows into `out`.

    Shapes are those of `multiply`.  A weight is read from memory once, as three streams that begin
    a third of the part apart.  Where rows are no multiple of three, or tokens of four, some are
    computed twice.  (BLAS rearranges a weight first, which pays with many tokens.)
    """
    num_tokens = len(x)
    first, last = len(weight) * part // num_parts, len(weight) * (part + 1) // num_parts
    third = (last - first + 2) // 3
    second_stream, third_stream = min(first + third, last - third), last - third
    for begin in range(0, third, ROWS_AT_ONCE):
        end = min(begin + ROWS_AT_ONCE, third)
        tokens_at_once = 4 if num_tokens >= 4 else 1
        for t in range(0, num_tokens, tokens_at_once):
            t = min(t, num_tokens - tokens_at_once)
            for i in range(begin, end):
                a, b, c = first + i, second_stream + i, third_stream + i
                if tokens_at_once == 4:
                    put_12_products(x, t, weight, a, b, c, out)
                else:
                    put_3_products(x, t, weight, a, b, c, out)


@jit(REORDERED)
def put_3_products(x: Floats, t: int, weight: Floats, a: int, b: int, c: int,
                   out: Floats) -> None:
    """Put the products of token t with rows a, b and c of the weight into `out`."""
    token, row_a, row_b, row_c = x[t], weight[a], weight[b], weight[c]
    sum_a = sum_b = sum_c = np.float32(0)
    for i in range(len(token)):
        sum_a += token[i] * row_a[i]
        sum_b += token[i] * row_b[i]
        sum_c += token[i] * row_c[i]
    out[t, a], out[t, b], out[t, c] = sum_a, sum_b, sum_c


@jit(REORDERED)
def put_12_products(x: Floats, t: int, weight: Floats, a: int, b: int, c: int,
                    out: Floats) -> None:
    """Put the products of four tokens, from t on, with rows a, b and c of the weight into `out`.

    Twelve sums, three numbers of the rows and one of a token fill the 16 vector registers of AVX2:
    each number that is loaded is used three or four times.
    """
    row_a, row_b, row_c = weight[a], weight[b], weight[c]
    t0, t1, t2, t3 = x[t], x[t + 1], x[t + 2], x[t + 3]
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = np.float32(0)
    for i in range(len(row_a)):
        a0 += t0[i] * row_a[i]
        b0 += t0[i] * row_b[i]
        c0 += t0[i] * row_c[i]
        a1 += t1[i] * row_a[i]
        b1 += t1[i] * row_b[i]
        c1 += t1[i] * row_c[i]
        a2 += t2[i] * row_a[i]
        b2 += t2[i] * row_b[i]
        c2 += t2[i] * row_c[i]
        a3 += t3[i] * row_a[i]
        b3 += t3[i] * row_b[i]
        c3 += t3[i] * row_c[i]
    out[t, a], out[t + 1, a], out[t + 2, a], out[t + 3, a] = a0, a1, a2, a3
    out[t, b], out[t + 1, b], out[t + 2, b], out[t + 3, b] = b0, b1, b2, b3
    out[t, c], out[t + 1, c], out[t + 2, c], out[t + 3, c] = c0, c1, c2, c3


@jit(EXACT)
def multiply_together(board: Board, x: Floats, weight: Floats, out: Floats) -> bool:
    """Put ``x @ weight.T`` into `out`, and return whether anybody helped or has the board.

    Who has taken a part finishes it, so the wait at the end is short as long as threads are not
    more than free cores.  Compiled code is not interrupted by Ctrl-C, and must not be here: helpers
    still write into `out`.
    """
    if exchange(board, TAKEN, 1) == 1:
        linear(0, 1, x, weight, out)
        return True
    board[PRODUCT], board[PRODUCT + 1] = x.ctypes.data, weight.ctypes.data
    board[PRODUCT + 2] = out.ctypes.data
    board[PRODUCT + 3], board[PRODUCT + 4] = x.shape
    board[PRODUCT + 5] = len(weight)
    exchange(board, UNFINISHED_PARTS, NUM_PARTS)
    exchange(board, UNTAKEN_PARTS, NUM_PARTS)
    num_mine = 0
    while take_part(board):
        num_mine += 1
    while read_afresh(board, UNFINISHED_PARTS) > 0:
        pass
    exchange(board, TAKEN, 0)
    return num_mine < NUM_PARTS


@jit(EXACT)
def take_part(board: Board) -> bool:
    """Compute a part of the product on the board, and return whether one was left."""
    if read_afresh(board, UNTAKEN_PARTS) <= 0:
        return False
    part = fetch_and_add(board, UNTAKEN_PARTS, -1) - 1
    if part < 0:  # others were faster
        return False
    # The product stays on the board until the part that is taken here is finished.
    num_tokens, input_size, output_size = board[PRODUCT + 3], board[PRODUCT + 4], board[PRODUCT + 5]
    x = numba.carray(floats_at(board[PRODUCT]), (num_tokens, input_size))
    weight = numba.carray(floats_at(board[PRODUCT + 1]), (output_size, input_size))
    out = numba.carray(floats_at(board[PRODUCT + 2]), (num_tokens, output_size))
    linear(part, NUM_PARTS, x, weight, out)
    fetch_and_add(board, UNFINISHED_PARTS, -1)
    return True


@jit(EXACT)
def wait_awake(board: Board, index: int, value: int) -> None:
    """Return when ``board[index]`` is no longer `value`, or after a while; help with products.

    It returns a little later: the thread that has counted still holds Python's lock, the GIL, and
    who has to wait for that one falls asleep after all.
    """
    tries = 0
    while tries < _TRIES and read_afresh(board, index) == value:
        tries = 0 if take_part(board) else tries + 1
    for _ in range(_TRIES_MORE):
        read_afresh(board, index)
