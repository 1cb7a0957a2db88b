"""Kernels in awkward surroundings: no compiler, no place for the cache, after a fork."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from minivllm.attention.backends import numba_backend
from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.attention.ops import paged_attn, prefix_prefill, products
from tests.attention.batches import dense, make_batch, run

ROOT = Path(__file__).parent.parent.parent
COMPARE = """
import numpy as np
from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.ops import paged_attn
from tests.attention.batches import dense, make_batch, run
batch = make_batch(4, 2, 8, 4, query_lens=[5, 1], context_lens=[6, 9], window=7)
np.testing.assert_allclose(run(NumbaAttentionBackend, batch)[0], dense(batch), atol=1e-5)
"""


def run_python(code, cwd=ROOT, **env):
    base = {key: value for key, value in os.environ.items()
            if not key.startswith(("NUMBA_", "MINIVLLM_", "HOME", "XDG_"))}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=base | env, text=True,
                          capture_output=True, check=False)


def test_without_the_compiler_kernels_are_plain_functions():
    code = (COMPARE + "\nassert type(paged_attn.attend).__name__ == 'function'"
            "\nNumbaAttentionBackend.warm_up()")
    result = run_python(code, NUMBA_DISABLE_JIT="1")
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_nowhere_to_keep_compiled_code(tmp_path):
    """A read-only installation without HOME compiles in each process, and says so once."""
    shutil.copytree(ROOT / "minivllm", tmp_path / "minivllm",
                    ignore=shutil.ignore_patterns("__pycache__", "assets"))
    shutil.copytree(ROOT / "tests" / "attention", tmp_path / "tests" / "attention")
    # Files where directories would have to be made: even a superuser cannot write there.
    for directory in (tmp_path / "minivllm").rglob("ops"):
        (directory / "__pycache__").write_text("", encoding="utf-8")
    (tmp_path / "home").write_text("", encoding="utf-8")
    result = run_python(COMPARE, cwd=tmp_path, HOME=str(tmp_path / "home"))
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("compiled kernels cannot be kept") == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_makes_its_own_threads():
    batch = make_batch(9, 3, 64, 16, query_lens=[200], context_lens=[100])
    expected = run(NumbaAttentionBackend, batch)[0]
    pid = os.fork()
    if pid == 0:
        same = np.array_equal(run(NumbaAttentionBackend, batch)[0], expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_any_number_of_parts_gives_the_same_numbers_in_decode():
    """Threads share sequences and heads out, they do not split sums."""
    batch = make_batch(6, 3, 16, 8, query_lens=[1, 1, 1], context_lens=[10, 250, 0])
    _, cache = run(NumbaAttentionBackend, batch)
    results = []
    for num_parts in (1, 2, 5):
        out = np.full_like(batch.query, np.nan)
        for part in range(num_parts):
            paged_attn.paged_attention(
                part, num_parts, batch.query * np.float32(batch.scale), cache,
                batch.metadata.block_tables, batch.metadata.seq_lens, 1 << 30, out)
        results.append(out)
    np.testing.assert_allclose(results[0], dense(batch), atol=1e-5)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_tiles_may_be_done_in_any_order(monkeypatch):
    batch = make_batch(6, 3, 16, 8, query_lens=[270, 1, 33, 6], context_lens=[10, 50, 0, 400])
    forwards, _ = run(NumbaAttentionBackend, batch)

    def backwards(work, function, tiles, *args):
        function(0, 1, iter(list(tiles)[::-1]) if function is attend_from_tiles else tiles, *args)

    attend_from_tiles = numba_backend.attend_from_tiles
    monkeypatch.setattr(numba_backend, "share", backwards)
    np.testing.assert_allclose(forwards, dense(batch), atol=1e-5)
    np.testing.assert_array_equal(run(NumbaAttentionBackend, batch)[0], forwards)


def test_more_query_heads_share_a_key_head_than_a_tile_has_rows():
    batch = make_batch(400, 1, 4, 4, query_lens=[6], context_lens=[3])
    np.testing.assert_allclose(run(NumbaAttentionBackend, batch)[0], dense(batch), atol=1e-5)


def test_one_compiled_version_of_each_kernel_serves_all_batches():
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    for window in (None, 7):
        for query_lens in ([1, 40], [3], [9, 9]):
            run(NumbaAttentionBackend, make_batch(4, 2, 8, 4, query_lens,
                                                  [20] * len(query_lens), window=window))
    for kernel in (prefix_prefill.context_attention, paged_attn.paged_attention,
                   paged_attn.reshape_and_cache, products.linear):
        assert len(kernel.signatures) <= 1, kernel.signatures


def test_heads_of_a_sequence_may_be_in_several_parts():
    batch = make_batch(6, 3, 8, 4, query_lens=[1] * 150, context_lens=list(range(50, 200)),
                       window=30)
    _, cache = run(NumbaAttentionBackend, batch)
    tables, lens = batch.metadata.block_tables, batch.metadata.seq_lens
    alone = np.full_like(batch.query, np.nan)
    for i in range(150):
        one = slice(i, i + 1)
        NumbaAttentionBackend.paged_attention(batch.query[one], cache, tables[one], lens[one],
                                              batch.scale, 30, alone[one])
    np.testing.assert_allclose(alone, dense(batch), atol=1e-5)
    for num_parts in (1, 2, 5):
        together = np.full_like(batch.query, np.nan)
        for part in range(num_parts):
            paged_attn.paged_attention(
                part, num_parts, batch.query * np.float32(batch.scale), cache, tables, lens, 30,
                together)
        np.testing.assert_array_equal(alone, together)


def test_a_tile_of_a_window_reads_only_what_it_sees():
    """Blocks that no query of the tile sees may be anything."""
    batch = make_batch(2, 1, 8, 4, query_lens=[3], context_lens=[200], window=9)
    batch.kv_cache[:, batch.metadata.block_tables[0, :47]] = np.nan  # tokens 0 to 187
    for backend in (NumpyAttentionBackend, NumbaAttentionBackend):
        np.testing.assert_allclose(run(backend, batch)[0], dense(batch), atol=1e-5)


@pytest.mark.parametrize("length", [1, 7, 8, 33, 1000])
def test_maximum_and_exponentials_are_those_of_numpy(length):
    scores = np.random.default_rng(length).uniform(-40, 40, length).astype(np.float32)
    highest = np.float32(paged_attn.maximum(scores, np.float32(-np.inf)))
    assert highest == scores.max()
    assert paged_attn.maximum(scores, np.float32(41)) == 41
    expected = np.exp((scores - highest).astype(float))
    total = paged_attn.exp_minus(scores, highest)
    np.testing.assert_allclose(scores, expected, rtol=3e-7, atol=1e-37)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)


def test_the_exponential_of_what_is_no_number_and_of_what_is_very_small():
    scores = np.array([np.nan, -np.inf, -1e30, -88, 0], np.float32)
    total = paged_attn.exp_minus(scores, np.float32(0))
    assert np.isnan(scores[0]) and np.isnan(total)
    np.testing.assert_allclose(scores[1:], [0, 0, 0, 1], atol=1e-37)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_reading_ahead_is_in_the_compiled_code():
    """It changes no number, so nothing else would miss it."""
    attend = numba.njit(paged_attn.attend.py_func)  # what comes from the disk cannot be looked at
    attend(np.ones((2, 8), np.float32), 5, np.ones((2, 2, 1, 4, 8), np.float32),
           np.arange(2, dtype=np.int32), 0, 1, 9)
    assert "llvm.prefetch" in next(iter(attend.inspect_llvm().values()))


@pytest.mark.filterwarnings("ignore:overflow")
def test_scores_of_minus_infinity_weigh_nothing():
    """Products overflow in a whole tile of keys before there is a finite score."""
    batch = make_batch(2, 1, 4, 16, query_lens=[8], context_lens=[200])
    batch.query[:] = 3e38
    for t in range(200):
        block = batch.metadata.block_tables[0, t // 16]
        batch.kv_cache[0, block, :, t % 16] = -3e38
    batch.key[:] = 1e-38
    tables, lens = np.tile(batch.metadata.block_tables, (8, 1)), np.arange(201, 209, dtype=np.int32)
    expected, cache = run(NumpyAttentionBackend, batch)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(run(NumbaAttentionBackend, batch)[0], expected, atol=1e-5)
    decoded = np.full_like(expected, np.nan)
    NumbaAttentionBackend.paged_attention(batch.query, cache, tables, lens, batch.scale, None,
                                          decoded)
    np.testing.assert_allclose(decoded, expected, atol=1e-5)
