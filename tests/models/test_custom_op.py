"""Kernels of layers compute what the layers define in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.attention.ops import layers
from minivllm.model_executor.custom_op import use_kernels
from minivllm.model_executor.layers.activation import SiluAndMul
from minivllm.model_executor.layers.layernorm import RMSNorm
from minivllm.model_executor.layers.rotary_embedding import get_rope
from minivllm.threads import ThreadPool
from tests.models.harness import CHECKPOINTS, Driver, golden, load_tiny

quick = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2 ** 32 - 1)


def both(layer, *args):
    """Return what a layer computes in NumPy, and by its kernel."""
    use_kernels(layer, None)
    native = layer(*args)
    use_kernels(layer, layers)
    assert layer.kernels is layers
    return native, layer(*args)


@quick
@given(seeds, st.integers(1, 600), st.integers(1, 600))
def test_rms_norm(seed, num_rows, size):
    rng = np.random.default_rng(seed)
    norm = RMSNorm(size, eps=1e-5)
    norm.weight[:] = rng.standard_normal(size)
    native, compiled = both(norm, rng.standard_normal((num_rows, size), dtype=np.float32) * 3)
    np.testing.assert_allclose(compiled, native, rtol=1e-5, atol=1e-6)


@quick
@given(seeds, st.integers(1, 300), st.integers(1, 300))
def test_silu_and_mul(seed, num_rows, size):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((num_rows, 2 * size), dtype=np.float32) * 20
    native, compiled = both(SiluAndMul(), x)
    np.testing.assert_allclose(compiled, native, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("error")
def test_silu_far_from_zero_and_of_nan():
    x = np.array([[-1e4, -88, 88, 1e4, np.nan, 2, 2, 2, 2, 2]], np.float32)
    native, compiled = both(SiluAndMul(), x)
    np.testing.assert_allclose(compiled, native, atol=1e-5)
    np.testing.assert_allclose(compiled[0, :4], [0, 0, 176, 2e4], atol=1e-5)


@quick
@given(seeds, st.integers(1, 200), st.integers(1, 4), st.sampled_from([2, 8, 20, 64]),
       st.sampled_from([0.5, 1]))
def test_rotary_embedding(seed, num_tokens, num_heads, head_size, fraction):
    rng = np.random.default_rng(seed)
    rope = get_rope(head_size, max(2, int(head_size * fraction) // 2 * 2), 256, 10000.0)
    # Views into one array, as the merged projection returns them.
    q, k = np.split(rng.standard_normal((num_tokens, (num_heads + 1) * head_size),
                                        dtype=np.float32), [num_heads * head_size], axis=1)
    positions = rng.integers(0, 256, num_tokens)
    native, compiled = both(rope, positions, q, k)
    for expected, got in zip(native, compiled, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_rows_are_shared_without_gaps():
    """More threads than rows, and rows that do not divide evenly."""
    x, weight = np.ones((7, 4), np.float32), np.ones(4, np.float32)
    for num_threads in (1, 2, 3, 9):
        out = np.full_like(x, np.nan)
        ThreadPool(num_threads).run(layers.rms_norm, x, weight, np.float32(0), out)
        np.testing.assert_array_equal(out, 1)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_golden_models_with_kernels(name):
    model = load_tiny(name)
    use_kernels(model, NumbaAttentionBackend.get_layer_kernels())
    driver = Driver(model, NumbaAttentionBackend, num_blocks=128)
    prompts = golden(name)["prompts"]
    seqs = [driver.add(len(prompt["prompt_token_ids"]) + 32) for prompt in prompts]
    driver.step([(seq, prompt["prompt_token_ids"])
                 for seq, prompt in zip(seqs, prompts, strict=True)])
    outputs = [[] for _ in prompts]
    for seq, prompt in zip(seqs, prompts, strict=True):
        np.testing.assert_allclose(seq.last_logits(model), prompt["last_logits"], atol=2e-4)
    for _ in range(32):
        for seq, output in zip(seqs, outputs, strict=True):
            output.append(int(seq.last_logits(model).argmax()))
        driver.step([(seq, output[-1:]) for seq, output in zip(seqs, outputs, strict=True)])
    assert outputs == [prompt["output_token_ids"] for prompt in prompts]


def test_the_plain_line_on_request(monkeypatch):
    model = load_tiny("llama-mha")
    use_kernels(model, layers)
    assert model.model.norm.kernels is layers
    monkeypatch.setenv("MINIVLLM_FAST", "0")
    use_kernels(model, layers)
    assert model.model.norm.kernels is None
    assert NumpyAttentionBackend.get_layer_kernels() is None
