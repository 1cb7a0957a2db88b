"""Activation functions (mirrors ``vllm/model_executor/layers/activation.py``)."""

import math
from collections.abc import Callable

import numpy as np

from minivllm.model_executor.custom_op import CustomOp
from minivllm.model_executor.module import Array
from minivllm.threads import share


def silu(x: Array) -> Array:
    """Return ``x * sigmoid(x)``."""
    return _times_sigmoid(x, x)


def relu(x: Array) -> Array:
    """Return x where it is positive, else 0."""
    positive: Array = np.maximum(x, np.float32(0))
    return positive


def gelu_new(x: Array) -> Array:
    """Return GELU with the tanh approximation of GPT-2."""
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    result: Array = np.float32(0.5) * x * (1 + np.tanh(inner))
    return result


def gelu(x: Array) -> Array:
    """Return exact GELU: x times the probability that a normal variable is below x."""
    erf = np.vectorize(math.erf, otypes=[np.float32])
    result: Array = np.float32(0.5) * x * (1 + erf(x * np.float32(math.sqrt(0.5))))
    return result


def quick_gelu(x: Array) -> Array:
    """Return ``x * sigmoid(1.702 x)``."""
    return _times_sigmoid(x, np.float32(1.702) * x)


def _times_sigmoid(x: Array, y: Array) -> Array:
    """Return ``x * sigmoid(y)``; where ``exp(-y)`` overflows to infinity, that is 0."""
    with np.errstate(over="ignore"):
        result: Array = x / (1 + np.exp(-y))
    return result


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": silu,
    "swish": silu,
    "relu": relu,
    "gelu": gelu,
    "gelu_new": gelu_new,
    "gelu_fast": gelu_new,
    "gelu_pytorch_tanh": gelu_new,
    "quick_gelu": quick_gelu,
}


def get_act_fn(name: str) -> Callable[[Array], Array]:
    """Return the activation that a ``config.json`` calls `name`.

    Raises
    ------
    ValueError
        If there is none of this name.
    """
    if name not in _ACTIVATIONS:
        raise ValueError(f"activation function {name!r} is not supported; supported are "
                         f"{', '.join(_ACTIVATIONS)}.")
    return _ACTIVATIONS[name]


class SiluAndMul(CustomOp):
    """The gate of a Llama MLP."""

    def __call__(self, x: Array) -> Array:
        """Return ``silu(gate) * up`` of rows that hold gate and up side by side.

        Parameters
        ----------
        x : (num_tokens, 2 * intermediate_size) float32

        Returns
        -------
        (num_tokens, intermediate_size) float32
        """
        half = x.shape[1] // 2
        if self.kernels is not None:
            out = np.empty((len(x), half), dtype=np.float32)
            share(8 * x.size, self.kernels.silu_and_mul, np.ascontiguousarray(x), out)
            return out
        gated = silu(x[:, :half])
        gated *= x[:, half:]
        return gated
