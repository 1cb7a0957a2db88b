"""Instructions that Numba has no name for, in the words of LLVM, the compiler behind it.

Without the compiler (``NUMBA_DISABLE_JIT=1``) the first two are functions of Python, and nobody
calls the others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # comes with numba
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

FLOAT, BYTE, INT32 = ir.FloatType(), ir.IntType(8), ir.IntType(32)


def larger(a: float, b: float) -> float:
    """Return the larger of two float32 numbers, of which none is NaN.

    A loop that calls it is vectorised, one that calls ``max`` is not.
    """
    return max(a, b)


@overload(larger, strict=False)  # type: ignore[untyped-decorator]
def _compile_larger(a: Any, b: Any) -> Callable[..., float]:
    return lambda a, b: _maxnum(a, b)


@intrinsic  # type: ignore[untyped-decorator]
def _maxnum(typing_context: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = builder.module.declare_intrinsic(
            "llvm.maxnum", [FLOAT], ir.FunctionType(FLOAT, [FLOAT, FLOAT]))
        return builder.call(function, args, fastmath=("nnan", "nsz"))

    return types.float32(types.float32, types.float32), generate


def fetch_line(block: NDArray[np.float32], i: int) -> None:
    """Ask for the cache line of number i of a contiguous array, and do not wait for it."""


@overload(fetch_line, strict=False)  # type: ignore[untyped-decorator]
def _compile_fetch_line(block: Any, i: Any) -> Callable[..., None]:
    return lambda block, i: _prefetch(block, i)


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, block: Any, i: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.bitcast(_place(context, builder, signature, args), BYTE.as_pointer())
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [BYTE.as_pointer()],
            ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), INT32, INT32, INT32]))
        # 0: to read; 2: into the second cache; 1: data, not code.
        builder.call(function, [place, INT32(0), INT32(2), INT32(1)])
        return context.get_dummy_value()

    return types.void(block, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def read_afresh(typing_context: Any, board: Any, index: Any) -> Any:
    """Return ``board[index]`` as it is in memory; a compiler reads it once, before a loop."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", align=8)

    return types.int64(board, index), generate


def _atomic(operation: str) -> Any:
    """Return a function that changes ``board[index]`` and returns what it was, indivisibly."""
    @intrinsic  # type: ignore[untyped-decorator]
    def change(typing_context: Any, board: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _place(context, builder, signature, args)
            return builder.atomic_rmw(operation, place, args[2], "seq_cst")

        return types.int64(board, types.int64, types.int64), generate

    return change


exchange, fetch_and_add = _atomic("xchg"), _atomic("add")


def _place(context: Any, builder: Any, signature: Any, args: Any) -> ir.Value:
    """Return the address of a number (the second argument) of an array (the first)."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


def _pointer_to(number: Any) -> Any:
    """Return a function that returns a pointer to the numbers of a type at an address."""
    @intrinsic  # type: ignore[untyped-decorator]
    def point(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(number)(types.int64), generate

    return point


floats_at, integers_at = _pointer_to(types.float32), _pointer_to(types.int32)
