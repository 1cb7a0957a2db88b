"""Rotary position embeddings (mirrors ``vllm/model_executor/layers/rotary_embedding.py``).

A head's vector is seen as ``rotary_dim // 2`` pairs (i, i + rotary_dim // 2), each turned by the
token's position times a frequency of its own (Su et al., 2021).  The scalings below change the
frequencies so that a model can read longer texts than it was trained on.  All is in float32, as
in the models' training code: a more exact angle would give other logits.

Left out: the interleaved pairs of GPT-J, and ``longrope``.
"""

import math
from collections.abc import Callable, Mapping
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.custom_op import CustomOp
from minivllm.model_executor.module import Array
from minivllm.threads import share

Scaling = Mapping[str, Any]


class RotaryEmbedding(CustomOp):
    """Turns queries and keys by their positions.

    Parameters
    ----------
    head_size : int
    angles : (max_position, rotary_dim // 2) float32
        Of each position and pair.
    magnitude : float
        Scales what is turned (YaRN; else 1).
    """

    def __init__(self, head_size: int, angles: Array, magnitude: float = 1.0) -> None:
        self.head_size = head_size
        # No weights, so not public.
        self._cos = np.cos(angles) * np.float32(magnitude)
        self._sin = np.sin(angles) * np.float32(magnitude)

    def __call__(self, positions: NDArray[np.int64], query: Array,
                 key: Array) -> tuple[Array, Array]:
        """Return turned copies of query and key.

        Parameters
        ----------
        positions : (num_tokens,) int64
        query : (num_tokens, num_heads * head_size) float32
        key : (num_tokens, num_kv_heads * head_size) float32
        """
        return self._turn(positions, query), self._turn(positions, key)

    def _turn(self, positions: NDArray[np.int64], flat: Array) -> Array:
        x = flat.reshape(len(flat), -1, self.head_size)  # (num_tokens, heads, head_size)
        if self.kernels is not None:
            out = np.empty(x.shape, dtype=np.float32)
            share(x.size, self.kernels.rotary_embedding, positions, np.ascontiguousarray(x),
                  self._cos, self._sin, out)
            return out.reshape(flat.shape)
        cos = self._cos[positions][:, None]  # (num_tokens, 1, rotary_dim // 2)
        sin = self._sin[positions][:, None]
        half = cos.shape[-1]
        left, right, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
        turned = np.empty(x.shape, dtype=np.float32)
        turned[..., :half] = left * cos - right * sin
        turned[..., half:2 * half] = right * cos + left * sin
        turned[..., 2 * half:] = rest
        return turned.reshape(flat.shape)


def _frequencies(rotary_dim: int, base: float) -> NDArray[np.float64]:
    """Return ``base ** (-2 i / rotary_dim)`` for each pair i, ``(rotary_dim // 2,)``."""
    exponents = np.arange(0, rotary_dim, 2) / rotary_dim
    return np.asarray(base ** -exponents, dtype=np.float64)


def _angles(num_positions: int, frequencies: NDArray[np.float64]) -> Array:
    """Return position times frequency, ``(num_positions, rotary_dim // 2)``."""
    positions = np.arange(num_positions, dtype=np.float32)
    return np.outer(positions, frequencies.astype(np.float32))


def _default(head_size: int, rotary_dim: int, max_position: int, base: float,
             scaling: Scaling) -> RotaryEmbedding:
    frequencies = _frequencies(rotary_dim, base)
    return RotaryEmbedding(head_size, _angles(max_position, frequencies))


def _linear(head_size: int, rotary_dim: int, max_position: int, base: float,
            scaling: Scaling) -> RotaryEmbedding:
    """All frequencies divided by the factor: positions move closer together (Chen et al., 2023)."""
    factor = scaling["factor"]
    frequencies = _frequencies(rotary_dim, base) / factor
    return RotaryEmbedding(head_size, _angles(int(max_position * factor), frequencies))


def _dynamic(head_size: int, rotary_dim: int, max_position: int, base: float,
             scaling: Scaling) -> RotaryEmbedding:
    """Positions past the trained length get a larger base, the one that fits their own length.

    Transformers does so when it generates token by token.  It also turns a whole long prompt with
    the base of its last token, and vLLM 0.5 every token with the base of the longest text
    possible; here a token's angle depends on its position alone.
    """
    factor = scaling["factor"]
    angles = _angles(int(max_position * factor), _frequencies(rotary_dim, base))
    for position in range(max_position, len(angles)):
        growth = factor * (position + 1) / max_position - (factor - 1)
        grown = base * growth ** (rotary_dim / (rotary_dim - 2))
        frequencies = _frequencies(rotary_dim, grown).astype(np.float32)
        angles[position] = np.float32(position) * frequencies
    return RotaryEmbedding(head_size, angles)


def _llama3(head_size: int, rotary_dim: int, max_position: int, base: float,
            scaling: Scaling) -> RotaryEmbedding:
    """Slow frequencies divided by the factor, fast ones kept, a smooth passage between."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    frequencies = _frequencies(rotary_dim, base)
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0, 1)  # 1: as it is, 0: divided
    frequencies = kept * frequencies + (1 - kept) * frequencies / scaling["factor"]
    return RotaryEmbedding(head_size, _angles(max_position, frequencies))


def _yarn(head_size: int, rotary_dim: int, max_position: int, base: float,
          scaling: Scaling) -> RotaryEmbedding:
    """As llama3, but the passage is linear in the pair's number, and lengths grow (YaRN, 2023)."""
    factor = scaling["factor"]
    trained = scaling.get("original_max_position_embeddings") or max_position

    def pair_that_turns(times: float) -> float:
        return rotary_dim * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(base))

    first = pair_that_turns(scaling.get("beta_fast") or 32)
    last = pair_that_turns(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rotary_dim - 1)
    width = last - first if last != first else 0.001
    divided = np.clip((np.arange(rotary_dim // 2) - first) / width, 0, 1)  # 0: kept, 1: divided
    frequencies = _frequencies(rotary_dim, base)
    frequencies = (1 - divided) * frequencies + divided * frequencies / factor
    num_positions = max(max_position, int(trained * factor))
    return RotaryEmbedding(head_size, _angles(num_positions, frequencies),
                           _yarn_magnitude(scaling))


def _yarn_magnitude(scaling: Scaling) -> float:
    def of(mscale: float) -> float:
        return 0.1 * mscale * math.log(scaling["factor"]) + 1 if scaling["factor"] > 1 else 1.0

    if scaling.get("attention_factor") is not None:
        return float(scaling["attention_factor"])
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        return of(scaling["mscale"]) / of(scaling["mscale_all_dim"])
    return of(1.0)


_SCALINGS: dict[str, Callable[[int, int, int, float, Scaling], RotaryEmbedding]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
}


def get_rope(head_size: int, rotary_dim: int, max_position: int, base: float,
             rope_scaling: Mapping[str, Any] | None = None) -> RotaryEmbedding:
    """Return the rotary embedding of a model.

    Parameters
    ----------
    head_size : int
    rotary_dim : int
        How much of a head is turned, from its start.
    max_position : int
        ``max_position_embeddings`` of the config.
    base : float
        ``rope_theta``.
    rope_scaling : mapping, optional
        As in ``config.json``: ``rope_type`` and its numbers.

    Raises
    ------
    ValueError
        If the scaling is not supported or lacks a number.
    """
    scaling = dict(rope_scaling or {"rope_type": "default"})
    name = scaling["rope_type"]
    if name not in _SCALINGS:
        raise ValueError(f"rope scaling {name!r} is not supported; supported are "
                         f"{', '.join(_SCALINGS)}.")
    try:
        shared = _build(head_size, rotary_dim, max_position, base, tuple(scaling.items()))
    except KeyError as error:
        raise ValueError(f"rope scaling {name!r} in config.json needs {error}.") from None
    return copy(shared)  # with the same tables


@lru_cache(maxsize=8)
def _build(head_size: int, rotary_dim: int, max_position: int, base: float,
           scaling: tuple[tuple[str, Any], ...]) -> RotaryEmbedding:
    values = dict(scaling)
    return _SCALINGS[values["rope_type"]](head_size, rotary_dim, max_position, base, values)
