"""Kernels that threads share: right whoever helps, and nobody waits for ever."""

import os
import threading
import time

import numpy as np
import pytest

from minivllm import threads
from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.ops import board
from minivllm.attention.ops.board import (
    NUM_PARTS,
    TAKEN,
    UNFINISHED_PARTS,
    UNTAKEN_PARTS,
    attend_together,
    multiply,
    multiply_together,
)
from minivllm.threads import BOARD_SIZE, ThreadPool
from tests.attention.batches import dense, make_batch, run

SHAPES = [(1, 576, 960), (3, 576, 576), (8, 300, 1001), (13, 64, 3000)]


@pytest.fixture(params=[1, 2, 4])
def pool(request, monkeypatch):
    """Return a pool of some threads that is everybody's."""
    NumbaAttentionBackend.warm_up()
    monkeypatch.setattr(threads, "_pool", ThreadPool(request.param))
    return threads.get_pool()


def operands(seed, num_tokens, input_size, output_size):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num_tokens, input_size), np.float32)
    weight = rng.standard_normal((output_size, input_size), np.float32)
    return x, weight, np.full((num_tokens, output_size), np.nan, np.float32)


def check(seed, shape):
    x, weight, out = operands(seed, *shape)
    multiply(x, weight, out)
    np.testing.assert_allclose(out, x @ weight.T, atol=2e-4)


def test_products_of_one_after_the_other(pool):
    for seed in range(100):
        check(seed, SHAPES[seed % len(SHAPES)])


def test_several_callers_at_once(pool):
    """One has the board; the others compute alone."""
    errors = []

    def caller(first):
        try:
            for seed in range(first, first + 60):
                check(seed, SHAPES[seed % len(SHAPES)])
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=caller, args=(100 * i,)) for i in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(timeout=60)
    assert errors == []
    assert not any(thread.is_alive() for thread in callers)


def test_products_between_other_tasks(pool):
    seen = []
    for seed in range(50):
        check(seed, SHAPES[seed % len(SHAPES)])
        pool.run(lambda thread, num_threads: seen.append(thread))
    assert sorted(seen) == sorted(list(range(pool.num_threads)) * 50)


def test_who_sleeps_is_not_waited_for_and_is_woken(monkeypatch):
    NumbaAttentionBackend.warm_up()
    monkeypatch.setattr(threads, "_pool", ThreadPool(2))
    x, weight, out = operands(1, *SHAPES[0])
    woken = []
    monkeypatch.setattr(threads.get_pool(), "wake", lambda: woken.append(True))
    deadline = time.monotonic() + 30
    while not woken:  # until nobody helps any more
        assert time.monotonic() < deadline
        time.sleep(0.05)
        multiply(x, weight, out)
    np.testing.assert_allclose(out, x @ weight.T, atol=2e-4)


def test_somebody_helps(monkeypatch):
    """With a large product, a thread that is called comes in time."""
    NumbaAttentionBackend.warm_up()
    monkeypatch.setattr(threads, "_pool", ThreadPool(2))
    x, weight, out = operands(2, 8, 1024, 20_000)
    deadline, helped = time.monotonic() + 30, False
    while not helped and time.monotonic() < deadline:
        threads.get_pool().wake()
        helped = multiply_together(threads.get_pool().board, x, weight, out)
    assert helped
    np.testing.assert_allclose(out, x @ weight.T, atol=5e-4)


def test_the_board_is_empty_afterwards(pool):
    check(3, SHAPES[0])
    assert pool.board[TAKEN] == pool.board[UNFINISHED_PARTS] == 0
    assert pool.board[UNTAKEN_PARTS] <= 0


def test_a_taken_board_is_left_alone():
    own = np.zeros(BOARD_SIZE, np.int64)
    own[TAKEN] = 1
    before = own.copy()
    x, weight, out = operands(4, *SHAPES[2])
    assert multiply_together(own, x, weight, out)
    np.testing.assert_allclose(out, x @ weight.T, atol=2e-4)
    np.testing.assert_array_equal(own, before)


def test_alone_one_takes_all_parts():
    own = np.zeros(BOARD_SIZE, np.int64)
    for seed, rows in enumerate([1, NUM_PARTS - 1, NUM_PARTS, 5 * NUM_PARTS + 3]):
        x, weight, out = operands(seed, 2, 20, rows)
        assert not multiply_together(own, x, weight, out)
        np.testing.assert_allclose(out, x @ weight.T, atol=1e-4)


@pytest.mark.parametrize("num_seqs", [1, 2, 3, 7, 8, 9, 64])
def test_attention_of_some_sequences(pool, num_seqs):
    """The same numbers whoever computes which part, and when somebody else has the board."""
    rng = np.random.default_rng(num_seqs)
    batch = make_batch(6, 3, 16, 4, query_lens=[1] * num_seqs,
                       context_lens=rng.integers(300, 2000, num_seqs).tolist(), window=1500)
    result, cache = run(NumbaAttentionBackend, batch)
    np.testing.assert_allclose(result, dense(batch), atol=1e-5)
    query = batch.query * np.float32(batch.scale)
    for taken in (0, 1):
        own = np.zeros(BOARD_SIZE, np.int64)
        own[TAKEN] = taken
        out = np.full_like(query, np.nan)
        helped = attend_together(own, query, cache, batch.metadata.block_tables,
                                 batch.metadata.seq_lens, 1500, out)
        assert helped == bool(taken)
        np.testing.assert_array_equal(out, result)


def test_attention_of_arrays_of_other_kinds_and_orders(pool):
    """What is handed over as an address must not be taken for something else."""
    batch = make_batch(6, 3, 16, 4, query_lens=[1] * 9, context_lens=range(500, 509))
    expected, cache = run(NumbaAttentionBackend, batch)
    tables, lens = batch.metadata.block_tables, batch.metadata.seq_lens
    room = np.full((9, 8, 32), np.nan, np.float32)
    out = room[:, 1:7, ::2]
    NumbaAttentionBackend.paged_attention(
        batch.query.T.copy().T.astype(np.float64), cache.T.copy().T,
        np.repeat(tables, 2, axis=1).astype(np.int64)[:, ::2], np.repeat(lens, 2)[::2],
        batch.scale, None, out)
    np.testing.assert_allclose(out, expected, atol=1e-6)
    assert np.isnan(room[:, [0, 7]]).all() and np.isnan(room[:, :, 1::2]).all()


def test_attention_between_products(pool):
    """Who is late for one kernel takes a part of the next, with that one's arguments."""
    batches = [make_batch(6, 3, 16, 4, query_lens=[1] * n, context_lens=[100 * n] * n, window=None)
               for n in (3, 8)]
    expected = [dense(batch) for batch in batches]
    for seed in range(100):
        check(seed, SHAPES[seed % len(SHAPES)])
        result, _ = run(NumbaAttentionBackend, batches[seed % 2])
        np.testing.assert_allclose(result, expected[seed % 2], atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_a_board_of_its_own():
    NumbaAttentionBackend.warm_up()
    check(5, SHAPES[0])
    pid = os.fork()
    if pid == 0:
        try:
            check(6, SHAPES[0])
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_if_nothing_is_compiled_python_hands_over(monkeypatch):
    monkeypatch.setattr(threads, "_pool", ThreadPool(2))
    monkeypatch.setattr(board.numba.config, "DISABLE_JIT", 1)
    check(7, SHAPES[0])
    batch = make_batch(4, 2, 16, 4, query_lens=[1] * 9, context_lens=[500] * 9)
    np.testing.assert_allclose(run(NumbaAttentionBackend, batch)[0], dense(batch), atol=1e-5)
