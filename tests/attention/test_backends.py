"""The NumPy backend computes attention; the Numba backend computes the same."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from tests.attention.batches import batches, dense, make_batch, run, run_decode

BACKENDS = [NumpyAttentionBackend, NumbaAttentionBackend]
quick = settings(max_examples=60, deadline=None, derandomize=True,
                 suppress_health_check=[HealthCheck.too_slow])


@quick
@given(batches())
def test_numpy_prefill_is_attention_by_its_formula(batch):
    out, _ = run(NumpyAttentionBackend, batch)
    np.testing.assert_allclose(out, dense(batch), atol=1e-5)


@quick
@given(batches(decodes_only=True))
def test_numpy_decode_is_attention_by_its_formula(batch):
    np.testing.assert_allclose(run_decode(NumpyAttentionBackend, batch), dense(batch), atol=1e-5)


@quick
@given(batches())
def test_numba_prefill_agrees_with_numpy(batch):
    expected, expected_cache = run(NumpyAttentionBackend, batch)
    out, cache = run(NumbaAttentionBackend, batch)
    np.testing.assert_array_equal(cache, expected_cache)
    np.testing.assert_allclose(out, expected, atol=1e-5)


@quick
@given(batches(decodes_only=True))
def test_numba_decode_agrees_with_numpy(batch):
    np.testing.assert_allclose(run_decode(NumbaAttentionBackend, batch),
                               run_decode(NumpyAttentionBackend, batch), atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_work_that_is_shared_between_threads(backend):
    batch = make_batch(9, 3, 64, 16, query_lens=[300, 1, 129], context_lens=[0, 700, 64])
    out, _ = run(backend, batch)
    np.testing.assert_allclose(out, dense(batch), atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_chunks_of_a_prompt_give_what_the_whole_gives(backend):
    whole = make_batch(4, 2, 16, 8, query_lens=[50], context_lens=[0], window=20)
    expected, _ = run(backend, whole)
    first = make_batch(4, 2, 16, 8, query_lens=[50], context_lens=[0], window=20)
    cache = first.kv_cache.copy()
    for start, stop in [(0, 17), (17, 18), (18, 50)]:
        chunk = make_batch(4, 2, 16, 8, query_lens=[stop - start], context_lens=[start], window=20)
        for name in ("query", "key", "value"):
            setattr(chunk, name, getattr(whole, name)[start:stop])
        chunk.metadata.block_tables = whole.metadata.block_tables
        chunk.metadata.slot_mapping = whole.metadata.slot_mapping[start:stop]
        out, _ = run(backend, chunk, cache)
        np.testing.assert_allclose(out, expected[start:stop], atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_slot_minus_one_is_not_stored(backend):
    batch = make_batch(2, 1, 4, 4, query_lens=[6], context_lens=[0])
    _, full = run(backend, batch)
    batch.metadata.slot_mapping[[0, 3]] = -1
    cache = batch.kv_cache.copy()
    backend.reshape_and_cache(batch.key, batch.value, cache, batch.metadata.slot_mapping)
    changed = ~np.isnan(cache).all(axis=(0, 2, 4))  # (num_blocks, block_size)
    assert changed.sum() == 4
    np.testing.assert_array_equal(cache[:, changed.nonzero()[0], :, changed.nonzero()[1]],
                                  full[:, changed.nonzero()[0], :, changed.nonzero()[1]])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("where", ["query", "key", "value"])
def test_nan_is_not_hidden(backend, where):
    batch = make_batch(2, 2, 8, 4, query_lens=[140], context_lens=[9])
    getattr(batch, where)[0] = np.nan
    out, _ = run(backend, batch)
    assert np.isnan(out[0]).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_scores_far_apart_do_not_overflow(backend):
    batch = make_batch(2, 2, 8, 4, query_lens=[200], context_lens=[0])
    batch.query *= 1e4
    out, _ = run(backend, batch)
    np.testing.assert_allclose(out, dense(batch), atol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_copy_blocks_reads_all_before_it_writes(backend):
    caches = [np.arange(2 * 4 * 1 * 2 * 3, dtype=np.float32).reshape(2, 4, 1, 2, 3) + i
              for i in range(2)]
    before = [cache.copy() for cache in caches]
    backend.copy_blocks(caches, [(0, 1), (1, 2)])
    for old, new in zip(before, caches, strict=True):
        np.testing.assert_array_equal(new[:, [0, 1, 2, 3]], old[:, [0, 0, 1, 3]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_swap_blocks_moves_between_pools(backend):
    gpu = np.random.default_rng(0).random((2, 4, 1, 2, 3), dtype=np.float32)
    cpu = np.zeros((2, 3, 1, 2, 3), np.float32)
    backend.swap_blocks(gpu, cpu, [(3, 0), (1, 2)])
    np.testing.assert_array_equal(cpu[:, [0, 2]], gpu[:, [3, 1]])
    assert not cpu[:, 1].any()
