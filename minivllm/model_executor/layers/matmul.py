"""The one matrix product of all models (its place in vLLM: ``torch.nn.functional.linear``).

Every fast path sits behind `linear`; ``MINIVLLM_FAST=0`` gives the plain line.
"""

from types import ModuleType

import numpy as np

from minivllm import envs
from minivllm.model_executor.module import Array
from minivllm.threads import share

_FAST = envs.fast()  # read once: a step comes here a hundred times

# With many more tokens than these BLAS is faster than the kernel.
_FEW_TOKENS = 96


def linear(x: Array, weight: Array, kernels: ModuleType | None = None) -> Array:
    """Multiply each row of `x` with a weight.

    Parameters
    ----------
    x : (num_tokens, input_size) float32
    weight : (output_size, input_size) float32
        As checkpoints store it.
    kernels : module, optional
        Where `multiply`, for few tokens, is.

    Returns
    -------
    (num_tokens, output_size) float32
    """
    if not _FAST:
        plain: Array = x @ weight.T  # (num_tokens, input_size) @ (input_size, output_size)
        return plain
    output = np.empty((len(x), len(weight)), dtype=np.float32)
    if kernels is not None and len(x) <= _FEW_TOKENS:
        # It hands addresses over, so it relies on kind and order of the numbers.
        kernels.multiply(np.ascontiguousarray(x, np.float32),
                         np.ascontiguousarray(weight, np.float32), output)
    else:
        share(len(x) * weight.size, _linear_share, x, weight, output)
    return output


def _linear_share(thread: int, num_threads: int, x: Array, weight: Array, output: Array) -> None:
    """Compute one thread's columns of the output.

    The BLAS library could share the work itself, but its threads spin while they wait, on the
    cores that the attention kernels need.
    """
    start = len(weight) * thread // num_threads
    end = len(weight) * (thread + 1) // num_threads
    np.matmul(x, weight[start:end].T, out=output[:, start:end])
