"""Kernels that threads share without Python between them.

To hand a task to another thread in Python takes as long as a small product, or the attention of
some sequences.  So threads that wait for their next task keep looking at a *board*, an array
``(BOARD_SIZE,)`` of int64: whoever has work puts it there, and all take parts of it until none is
left.  Who looks late takes what is left, and who is asleep takes nothing.
"""

from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from minivllm.attention.ops.instructions import (
    exchange,
    fetch_and_add,
    floats_at,
    integers_at,
    read_afresh,
)
from minivllm.attention.ops.jit import EXACT, jit
from minivllm.attention.ops.paged_attn import Floats, Ints, paged_attention
from minivllm.attention.ops.products import linear
from minivllm.threads import get_pool, is_worth_sharing

Board = NDArray[np.int64]

# Where the numbers of a board are, those that several threads change at every piece of work on
# cache lines of their own.  (The pool's counters are on the first.)
TAKEN = 16  # 1 while somebody's work is on the board
UNTAKEN_PARTS, UNFINISHED_PARTS = 32, 48
WORK = 64  # which kernel; behind it are the addresses and shapes of its arrays

# Kernels.
PRODUCT, ATTENTION = 0, 1

# Few enough that each is worth taking, and many enough that no thread waits long for the last one.
# (Numbers of NumPy: for each int that it knows, Numba would compile a version of the kernel.)
NUM_PARTS = np.int64(8)
WHOLE = np.int64(0), np.int64(1)  # part 0 of 1

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
    _share(len(x) * weight.size, linear, multiply_together, x, weight, out)


def attend(query: Floats, kv_cache: Floats, block_tables: Ints, seq_lens: Ints, window: int,
           out: Floats) -> None:
    """Attend from the last token of each sequence, on all threads that are awake.

    Parameters
    ----------
    query, out : (num_seqs, num_heads, head_size) float32
        The query is scaled.  Contiguous, as are the others.
    kv_cache : (2, num_blocks, num_kv_heads, block_size, head_size) float32
    block_tables : (num_seqs, max_blocks) int32
    seq_lens : (num_seqs,) int32
    window : int
        How many tokens a token sees, itself included.
    """
    longest = block_tables.shape[1] * kv_cache.shape[3]
    _share(query.size * longest, paged_attention, attend_together, query, kv_cache, block_tables,
           seq_lens, window, out)


def _share(work: int, kernel: Callable[..., object], together: Callable[..., bool],
           *args: object) -> None:
    pool = get_pool()
    if pool.num_threads == 1 or not is_worth_sharing(work):
        kernel(*WHOLE, *args)
    elif numba.config.DISABLE_JIT:
        pool.run(kernel, *args)
    elif not together(pool.board, *args):
        pool.wake()


@jit(EXACT)
def multiply_together(board: Board, x: Floats, weight: Floats, out: Floats) -> bool:
    """Do as `multiply` says, and return whether anybody helped or has the board."""
    if exchange(board, TAKEN, 1) == 1:
        linear(*WHOLE, x, weight, out)
        return True
    board[WORK] = PRODUCT
    board[WORK + 1], board[WORK + 2] = x.ctypes.data, weight.ctypes.data
    board[WORK + 3] = out.ctypes.data
    board[WORK + 4], board[WORK + 5] = x.shape
    board[WORK + 6] = len(weight)
    return work_together(board)


@jit(EXACT)
def multiply_part(board: Board, part: int) -> None:
    """Compute a part of the product on the board."""
    num_tokens, input_size, output_size = board[WORK + 4], board[WORK + 5], board[WORK + 6]
    x = numba.carray(floats_at(board[WORK + 1]), (num_tokens, input_size))
    weight = numba.carray(floats_at(board[WORK + 2]), (output_size, input_size))
    out = numba.carray(floats_at(board[WORK + 3]), (num_tokens, output_size))
    linear(part, NUM_PARTS, x, weight, out)


@jit(EXACT)
def attend_together(board: Board, query: Floats, kv_cache: Floats, block_tables: Ints,
                    seq_lens: Ints, window: int, out: Floats) -> bool:
    """Do as `attend` says, and return whether anybody helped or has the board."""
    if exchange(board, TAKEN, 1) == 1:
        paged_attention(*WHOLE, query, kv_cache, block_tables, seq_lens, window, out)
        return True
    board[WORK] = ATTENTION
    board[WORK + 1], board[WORK + 2] = query.ctypes.data, kv_cache.ctypes.data
    board[WORK + 3], board[WORK + 4] = block_tables.ctypes.data, seq_lens.ctypes.data
    board[WORK + 5] = out.ctypes.data
    board[WORK + 6], board[WORK + 7], board[WORK + 8] = query.shape
    board[WORK + 9], board[WORK + 10], board[WORK + 11] = kv_cache.shape[1:4]
    board[WORK + 12], board[WORK + 13] = block_tables.shape[1], window
    return work_together(board)


@jit(EXACT)
def attend_part(board: Board, part: int) -> None:
    """Compute a part of the attention on the board."""
    num_seqs, num_heads, head_size = board[WORK + 6], board[WORK + 7], board[WORK + 8]
    num_blocks, num_kv_heads, block_size = board[WORK + 9], board[WORK + 10], board[WORK + 11]
    max_blocks, window = board[WORK + 12], board[WORK + 13]
    query = numba.carray(floats_at(board[WORK + 1]), (num_seqs, num_heads, head_size))
    kv_cache = numba.carray(floats_at(board[WORK + 2]),
                            (2, num_blocks, num_kv_heads, block_size, head_size))
    block_tables = numba.carray(integers_at(board[WORK + 3]), (num_seqs, max_blocks))
    seq_lens = numba.carray(integers_at(board[WORK + 4]), (num_seqs,))
    out = numba.carray(floats_at(board[WORK + 5]), (num_seqs, num_heads, head_size))
    paged_attention(part, NUM_PARTS, query, kv_cache, block_tables, seq_lens, window, out)


@jit(EXACT)
def work_together(board: Board) -> bool:
    """Finish the work on the board, and return whether anybody helped.

    Who has taken a part finishes it, so the wait at the end is short as long as threads are not
    more than free cores.  Compiled code is not interrupted by Ctrl-C, and must not be here: helpers
    still write into the caller's array.
    """
    exchange(board, UNFINISHED_PARTS, NUM_PARTS)
    exchange(board, UNTAKEN_PARTS, NUM_PARTS)
    num_mine = 0
    while take_part(board):
        num_mine += 1
    while read_afresh(board, UNFINISHED_PARTS) > 0:
        pass
    exchange(board, TAKEN, 0)
    return num_mine < NUM_PARTS  # type: ignore[no-any-return]


@jit(EXACT)
def take_part(board: Board) -> bool:
    """Compute a part of the work on the board, and return whether one was left."""
    if read_afresh(board, UNTAKEN_PARTS) <= 0:
        return False
    part = fetch_and_add(board, UNTAKEN_PARTS, -1) - 1
    if part < 0:  # others were faster
        return False
    # The work stays on the board until the part that is taken here is finished.
    if board[WORK] == PRODUCT:
        multiply_part(board, part)
    else:
        attend_part(board, part)
    fetch_and_add(board, UNFINISHED_PARTS, -1)
    return True


@jit(EXACT)
def wait_awake(board: Board, index: int, value: int) -> None:
    """Return when ``board[index]`` is no longer `value`, or after a while; help with kernels.

    It returns a little later: the thread that has counted still holds Python's lock, the GIL, and
    who has to wait for that one falls asleep after all.
    """
    tries = 0
    while tries < _TRIES and read_afresh(board, index) == value:
        tries = 0 if take_part(board) else tries + 1
    for _ in range(_TRIES_MORE):
        read_afresh(board, index)
