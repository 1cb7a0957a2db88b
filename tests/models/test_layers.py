"""Layers against their formulas in float64."""

import math

import numpy as np
import pytest

from minivllm.model_executor.layers.activation import SiluAndMul, get_act_fn
from minivllm.model_executor.layers.layernorm import LayerNorm, RMSNorm
from minivllm.model_executor.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
)
from minivllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

RNG = np.random.default_rng(0)


def random_floats(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def test_rms_norm():
    norm, x = RMSNorm(8, eps=1e-3), random_floats(5, 8)
    norm.weight[:] = random_floats(8)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide ** 2).mean(axis=1, keepdims=True) + 1e-3) * norm.weight
    np.testing.assert_allclose(norm(x), expected, atol=1e-6)


def test_layer_norm():
    norm, x = LayerNorm(8, eps=1e-3), random_floats(5, 8) + 3
    norm.weight[:], norm.bias[:] = random_floats(8), random_floats(8)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(norm(x), scaled * norm.weight + norm.bias, atol=1e-6)


@pytest.mark.parametrize(("name", "formula"), [
    ("silu", lambda x: x / (1 + math.exp(-x))),
    ("relu", lambda x: max(x, 0)),
    ("gelu", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    ("gelu_new", lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
     / 2),
    ("quick_gelu", lambda x: x / (1 + math.exp(-1.702 * x)))])
def test_activations(name, formula):
    x = np.linspace(-9, 9, 101, dtype=np.float32)
    np.testing.assert_allclose(get_act_fn(name)(x), [formula(float(v)) for v in x], atol=2e-6)


@pytest.mark.parametrize("name", ["silu", "quick_gelu"])
@pytest.mark.filterwarnings("error")
def test_activations_far_from_zero(name):
    x = np.array([-1000, 1000], np.float32)
    np.testing.assert_array_equal(get_act_fn(name)(x), [0, 1000])


def test_an_unknown_activation_lists_the_known_ones():
    with pytest.raises(ValueError, match="'mish' is not supported.*silu"):
        get_act_fn("mish")


def test_silu_and_mul():
    x = random_floats(3, 10)
    np.testing.assert_array_equal(SiluAndMul()(x), get_act_fn("silu")(x[:, :5]) * x[:, 5:])


def test_a_merged_layer_is_its_parts_side_by_side():
    layer, x = MergedColumnParallelLinear(6, [4, 3], bias=True), random_floats(2, 6)
    layer.weight[:], layer.bias[:] = random_floats(7, 6), random_floats(7)
    first = x @ layer.weight[:4].T + layer.bias[:4]
    second = x @ layer.weight[4:].T + layer.bias[4:]
    np.testing.assert_allclose(layer(x), np.hstack([first, second]), atol=1e-6)


def test_qkv_sizes_with_shared_key_heads():
    layer = QKVParallelLinear(hidden_size=6, head_size=4, total_num_heads=4, total_num_kv_heads=2)
    layer.weight[:], layer.bias[:] = 0, np.arange(32)
    q, k, v = layer.project(random_floats(1, 6))
    assert (q.shape, k.shape, v.shape) == ((1, 16), (1, 8), (1, 8))
    np.testing.assert_array_equal(np.hstack([q, k, v])[0], np.arange(32))


def test_an_embedding_is_a_lookup():
    layer = VocabParallelEmbedding(5, 3)
    layer.weight[:] = random_floats(5, 3)
    np.testing.assert_array_equal(layer(np.array([4, 0, 4])), layer.weight[[4, 0, 4]])
