"""Layers that may be compiled (mirrors ``vllm/model_executor/custom_op.py``).

vLLM's `CustomOp` chooses among a native form in PyTorch and those of its devices.  Here a layer
is defined in NumPy, and computed by a kernel if its model has been given kernels.
"""

from types import ModuleType

from minivllm import envs
from minivllm.model_executor.module import Module


class CustomOp(Module):
    """A layer with a kernel of the same name.

    Attributes
    ----------
    kernels : module or None
        Where the kernel is; None: NumPy.
    """

    kernels: ModuleType | None = None


def use_kernels(model: Module, kernels: ModuleType | None) -> None:
    """Let the layers of a model be computed by kernels, unless ``MINIVLLM_FAST=0``."""
    for _, layer in model.named_modules():
        if isinstance(layer, CustomOp):
            layer.kernels = kernels if envs.fast() else None
