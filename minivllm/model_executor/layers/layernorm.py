"""Normalisation layers (mirrors ``vllm/model_executor/layers/layernorm.py``)."""

import numpy as np

from minivllm.model_executor.custom_op import CustomOp
from minivllm.model_executor.module import Array, Module, empty_weight
from minivllm.threads import share


class RMSNorm(CustomOp):
    """Divide each row by its root mean square, then scale (Zhang and Sennrich, 2019).

    Attributes
    ----------
    weight : (hidden_size,) float32
    variance_epsilon : float
        Added to the mean square.
    """

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        self.weight = empty_weight(hidden_size)
        self.variance_epsilon = np.float32(eps)

    def __call__(self, x: Array) -> Array:
        """Normalise the last axis of `x`, of shape ``(..., hidden_size)``."""
        if self.kernels is not None:
            rows = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
            out = np.empty(rows.shape, dtype=np.float32)
            share(rows.size, self.kernels.rms_norm, rows, self.weight, self.variance_epsilon, out)
            return out.reshape(x.shape)
        mean_square = np.einsum("...i,...i->...", x, x) / np.float32(x.shape[-1])
        scale = 1 / np.sqrt(mean_square + self.variance_epsilon)
        normed: Array = x * scale[..., None]
        normed *= self.weight
        return normed


class LayerNorm(Module):
    """Shift each row to mean 0 and scale it to variance 1, then scale and shift.

    Attributes
    ----------
    weight, bias : (hidden_size,) float32
    """

    def __init__(self, hidden_size: int, eps: float = 1e-5) -> None:
        self.weight = empty_weight(hidden_size)
        self.bias = empty_weight(hidden_size)
        self.variance_epsilon = np.float32(eps)

    def __call__(self, x: Array) -> Array:
        """Normalise each row of `x`, of shape ``(num_tokens, hidden_size)``."""
        centred: Array = x - x.mean(axis=-1, keepdims=True)
        variance = np.einsum("ij,ij->i", centred, centred) / np.float32(x.shape[-1])
        centred *= (1 / np.sqrt(variance + self.variance_epsilon))[:, None]
        centred *= self.weight
        centred += self.bias
        return centred
