"""Kernels of the layers around attention (mirrors ``csrc/layernorm_kernels.cu`` and others).

Each computes what the layer of its name in `minivllm.model_executor.layers` defines in NumPy, in
one pass over the rows instead of one for each operation.  They are called on every thread of a
pool with the same arguments, and each takes an equal share of the rows.  Only `multiply`, for the
layers' products with few tokens, is called once and shares its work itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.ops.board import multiply as multiply
from minivllm.attention.ops.jit import EXACT, REORDERED, jit
from minivllm.attention.ops.paged_attn import exp_minus

Floats = NDArray[np.float32]


@jit(REORDERED)
def rms_norm(thread: int, num_threads: int, x: Floats, weight: Floats, eps: float,
             out: Floats) -> None:
    """Divide each row of x by its root mean square, and scale by the weight."""
    num_rows, size = x.shape
    for r in range(num_rows * thread // num_threads, num_rows * (thread + 1) // num_threads):
        total = np.float32(0)
        for i in range(size):
            total += x[r, i] * x[r, i]
        scale = np.float32(1 / math.sqrt(total / np.float32(size) + eps))
        for i in range(size):
            out[r, i] = x[r, i] * scale * weight[i]


@jit(EXACT)
def silu_and_mul(thread: int, num_threads: int, x: Floats, out: Floats) -> None:
    """Put ``silu(gate) * up`` of rows that hold gate and up side by side into `out`.

    With ``e = exp(-|gate|)``, which cannot overflow, the sigmoid is 1 / (1 + e) or e / (1 + e).
    """
    num_rows, size = out.shape
    for r in range(num_rows * thread // num_threads, num_rows * (thread + 1) // num_threads):
        gates, ups, row = x[r, :size], x[r, size:], out[r]
        for i in range(size):
            row[i] = -abs(gates[i])
        exp_minus(row, np.float32(0))
        for i in range(size):
            numerator = gates[i] if gates[i] > np.float32(0) else gates[i] * row[i]
            row[i] = numerator / (np.float32(1) + row[i]) * ups[i]


@jit(EXACT)
def rotary_embedding(thread: int, num_threads: int, positions: NDArray[np.int64], x: Floats,
                     cos: Floats, sin: Floats, out: Floats) -> None:
    """Turn the heads ``(num_tokens, num_heads, head_size)`` by their positions into `out`."""
    num_tokens, num_heads, head_size = x.shape
    half = cos.shape[1]
    for t in range(num_tokens * thread // num_threads, num_tokens * (thread + 1) // num_threads):
        c, s = cos[positions[t]], sin[positions[t]]
        for h in range(num_heads):
            for i in range(half):
                left, right = x[t, h, i], x[t, h, half + i]
                out[t, h, i] = left * c[i] - right * s[i]
                out[t, h, half + i] = right * c[i] + left * s[i]
            for i in range(2 * half, head_size):
                out[t, h, i] = x[t, h, i]
