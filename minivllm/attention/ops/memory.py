"""Reading ahead.

A processor fetches ahead by itself while it reads on and on, but it cannot know which block of a
block table comes next.  So kernels ask for the next block while they compute with this one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # comes with numba
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from minivllm.attention.ops.jit import EXACT, jit

_CACHE_LINE = 16  # numbers of 4 bytes


@jit(EXACT)
def fetch(block: NDArray[np.float32]) -> None:
    """Ask for a block ``(block_size, head_size)`` of keys or values, and do not wait for it."""
    for t in range(block.shape[0]):
        for d in range(0, block.shape[1], _CACHE_LINE):
            fetch_line(block, t, d)


def fetch_line(block: NDArray[np.float32], t: int, d: int) -> None:
    """Ask for the cache line of ``block[t, d]``; without the compiler, do nothing."""


@overload(fetch_line, strict=False)  # type: ignore[untyped-decorator]
def _compile_fetch_line(block: Any, t: Any, d: Any) -> Callable[..., None]:
    return lambda block, t, d: _prefetch(block, t, d)


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, block: Any, t: Any, d: Any) -> Any:
    """LLVM's instruction ``prefetch``: to read, into the second cache, data."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        byte, integer = ir.IntType(8), ir.IntType(32)
        offset = builder.mul(args[1], builder.extract_value(array.strides, 0))
        offset = builder.add(offset, builder.mul(args[2], array.itemsize))
        place = builder.gep(builder.bitcast(array.data, byte.as_pointer()), [offset])
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte.as_pointer()],
            ir.FunctionType(ir.VoidType(), [byte.as_pointer(), integer, integer, integer]))
        builder.call(instruction, [place, integer(0), integer(2), integer(1)])
        return context.get_dummy_value()

    return types.void(block, types.int64, types.int64), generate
