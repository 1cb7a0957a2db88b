"""The matrix product: every path computes the plain line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.attention.ops import layers
from minivllm.attention.ops.products import linear
from minivllm.model_executor.layers import matmul
from minivllm.model_executor.layers.linear import QKVParallelLinear
from minivllm.model_executor.module import empty_aligned, empty_weight, zeros_aligned
from minivllm.threads import ThreadPool


def operands(seed, num_tokens, input_size, output_size):
    rng = np.random.default_rng(seed)
    weight = empty_weight(output_size, input_size)
    weight[:] = rng.standard_normal(weight.shape)
    return rng.standard_normal((num_tokens, input_size), dtype=np.float32), weight


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2 ** 32 - 1), st.integers(1, 13), st.integers(1, 300), st.integers(1, 500),
       st.integers(1, 4))
def test_the_kernel(seed, num_tokens, input_size, output_size, num_threads):
    """Also where neither tokens nor rows divide evenly, or threads are more than rows."""
    x, weight = operands(seed, num_tokens, input_size, output_size)
    out = np.full((num_tokens, output_size), np.nan, np.float32)
    for thread in range(num_threads):
        linear(thread, num_threads, x, weight, out)
    np.testing.assert_allclose(out, x @ weight.T, atol=2e-4)


def test_the_kernel_without_compiler():
    x, weight = operands(0, 5, 8, 10)
    out = np.full((5, 10), np.nan, np.float32)
    for thread in range(2):
        linear.py_func(thread, 2, x, weight, out)
    np.testing.assert_allclose(out, x @ weight.T, atol=1e-5)


def test_threads_share_the_work():
    x, weight = operands(1, 6, 64, 1000)
    out = np.full((6, 1000), np.nan, np.float32)
    ThreadPool(3).run(linear, x, weight, out)
    np.testing.assert_allclose(out, x @ weight.T, atol=1e-4)


class CountingKernels:
    """Kernels that count how often they are asked for a product."""

    def __init__(self):
        self.calls = 0

    def multiply(self, *args):
        self.calls += 1
        layers.multiply(*args)


@pytest.mark.parametrize(("num_tokens", "calls"), [(1, 1), (96, 1), (97, 0)])
def test_few_tokens_take_the_kernel_and_many_blas(num_tokens, calls):
    kernels = CountingKernels()
    x, weight = operands(2, num_tokens, 32, 48)  # little work: one thread does it all
    product = matmul.linear(x, weight, kernels)
    assert kernels.calls == calls
    np.testing.assert_allclose(product, x @ weight.T, atol=1e-4)


@pytest.mark.parametrize("num_tokens", [1, 7, 200])
def test_without_kernels(num_tokens):
    x, weight = operands(3, num_tokens, 256, 2048)
    np.testing.assert_allclose(matmul.linear(x, weight), x @ weight.T, atol=1e-3)


def test_the_plain_line_on_request(monkeypatch):
    monkeypatch.setattr(matmul, "_FAST", False)
    kernels = CountingKernels()
    x, weight = operands(4, 2, 16, 8)
    np.testing.assert_array_equal(matmul.linear(x, weight, kernels), x @ weight.T)
    assert kernels.calls == 0


def test_views_are_welcome():
    """A product of rows that do not lie side by side."""
    x, weight = operands(5, 3, 40, 24)
    np.testing.assert_allclose(matmul.linear(x[:, ::2], empty_copy(weight[:, ::2]), layers),
                               x[:, ::2] @ weight[:, ::2].T, atol=1e-5)


def empty_copy(values):
    copy = empty_weight(*values.shape)
    copy[:] = values
    return copy


def test_merged_layers_use_the_kernel():
    layer = QKVParallelLinear(32, 8, 4, 2, bias=True)
    rng = np.random.default_rng(6)
    layer.weight[:], layer.bias[:] = rng.standard_normal(layer.weight.shape), 1
    layer.kernels = kernels = CountingKernels()
    x = rng.standard_normal((2, 32), dtype=np.float32)
    np.testing.assert_allclose(layer(x), x @ layer.weight.T + 1, atol=1e-5)
    assert kernels.calls == 1


@pytest.mark.parametrize("shape", [(1,), (3, 5), (48, 576)])
@pytest.mark.parametrize("make", [empty_aligned, zeros_aligned])
def test_weights_and_caches_begin_at_a_cache_line(make, shape):
    array = make(*shape)
    assert array.shape == shape
    assert array.flags.c_contiguous
    assert array.ctypes.data % 64 == 0
