"""Kernels of a prefill's attention compute what their NumPy definitions say."""

import numba
import numpy as np
import pytest

from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.ops import prefix_prefill
from minivllm.attention.ops.paged_attn import CACHE_LINE, LOWEST
from tests.attention.batches import make_batch, run


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("m, n, num_columns", [(4, 3, 1), (64, 120, 384), (120, 66, 48), (8, 0, 5)])
def test_add_product(m, n, num_columns):
    b, sums = random(n, num_columns), random(m, num_columns)
    for a in (random(m, n), random(n, m).T):
        for first in (0, num_columns // 2, num_columns):
            expected = sums + a @ b
            expected[:, :first] = sums[:, :first]
            result = sums.copy()
            prefix_prefill.add_product(a, b, first, result)
            np.testing.assert_allclose(result, expected, atol=1e-4)


@pytest.mark.parametrize("distance, group, window", [
    (0, 1, 1 << 30), (-5, 3, 1 << 30), (7, 2, 4), (-20, 2, 3), (-300, 1, 9), (4000, 1, 9)])
def test_hide(distance, group, window):
    scores = random(12, 10 * group)
    key, query = np.arange(12)[:, None] + distance, np.arange(10 * group) // group
    expected = np.where((key <= query) & (query < key + window), scores, -np.inf)
    prefix_prefill.hide(scores, distance, group, window)
    np.testing.assert_array_equal(scores, expected)


def test_weigh_takes_up_where_it_left_off():
    scores = random(30, 20) * 10
    scores[:10, 3] = scores[12, 5] = -np.inf  # a row that sees nothing yet, and a hidden key
    expected = np.exp((scores - scores.max(axis=0)).astype(float))
    highest, totals, factors = np.full(20, LOWEST), np.zeros(20, np.float32), random(20)
    weights = scores.copy()
    for tile in (slice(0, 10), slice(10, 18), slice(18, 30)):
        prefix_prefill.weigh(weights[tile], highest, totals, factors)
        weights[:tile.start] *= factors
    np.testing.assert_array_equal(highest, scores.max(axis=0))
    np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=1e-37)
    np.testing.assert_allclose(totals, expected.sum(axis=0), rtol=1e-6)


def test_copy_tokens():
    """Those of another tile, before what anybody sees, and after the last one are 0."""
    kv_cache, block_table = random(2, 60, 2, 5, 3), np.random.default_rng(0).permutation(60)
    tokens = kv_cache[:, block_table, 1].reshape(2, 300, 3)
    expected = np.zeros((2, prefix_prefill.KEYS_AT_ONCE, 4), np.float32)
    expected[:, 131 - 128:201 - 128, :3] = tokens[:, 131:201]
    copied = np.zeros((2, prefix_prefill.KEYS_AT_ONCE, 4), np.float32)
    for first, last in ((128, 290), (131, 201)):  # the second must not leave any of the first
        prefix_prefill.copy_tokens(kv_cache, block_table.astype(np.int32), 1, 128, first, last,
                                   *copied)
    np.testing.assert_array_equal(copied, expected)


@pytest.mark.parametrize("group", [1, 3, 16, 17])
def test_columns_begin_at_the_cache_line_of_the_first_row_that_sees(group):
    for distance in range(-5, 100):
        column = prefix_prefill.first_that_sees(distance, group)
        first_row = max(0, distance) * group
        assert column % CACHE_LINE == 0
        assert column <= first_row < column + CACHE_LINE


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_queries_may_lie_in_any_order(order):
    batch = make_batch(6, 2, 8, 4, query_lens=[30], context_lens=[3])
    expected, _ = run(NumbaAttentionBackend, batch)
    back = np.argsort(order)
    batch.query = np.ascontiguousarray(batch.query.transpose(order)).transpose(back)
    np.testing.assert_array_equal(run(NumbaAttentionBackend, batch)[0], expected)


@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (64, 384)])
def test_arrays_begin_at_a_cache_line(shape):
    for _ in range(5):
        array = prefix_prefill.zeros_aligned(*shape)
        assert array.shape == shape and array.ctypes.data % 64 == 0 and not array.any()


@pytest.mark.parametrize("window", [None, 1, 100, 150])
@pytest.mark.parametrize("context_len", [0, 1, 130])
def test_a_token_has_the_same_result_in_any_chunk(context_len, window):
    """To the last bit; chunks of at most four tokens are attended from like decodes instead."""
    whole = make_batch(6, 2, 12, 8, query_lens=[270], context_lens=[context_len], window=window)
    expected, cache = run(NumbaAttentionBackend, whole)
    for start, stop in [(0, 20), (5, 142), (63, 270), (128, 133), (200, 270)]:
        chunk = make_batch(6, 2, 12, 8, [stop - start], [context_len + start], window)
        for name in ("query", "key", "value"):
            setattr(chunk, name, getattr(whole, name)[start:stop])
        chunk.metadata.block_tables = whole.metadata.block_tables
        chunk.metadata.slot_mapping = whole.metadata.slot_mapping[start:stop]
        out, _ = run(NumbaAttentionBackend, chunk, cache)
        np.testing.assert_array_equal(out, expected[start:stop])


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.parametrize("kernel, args", [
    (prefix_prefill.add_product, (random(4, 3), random(3, 9), 0, random(4, 9))),
    (prefix_prefill.weigh, (random(4, 9), random(9), random(9), random(9)))])
def test_loops_are_vectorised(kernel, args):
    """It changes no number, so nothing else would miss it; what comes from the disk is no text."""
    options = {name: kernel.targetoptions[name] for name in ("fastmath", "error_model")}
    compiled = numba.njit(kernel.py_func, **options)
    compiled(*args)
    assert " x float>" in next(iter(compiled.inspect_llvm().values()))
