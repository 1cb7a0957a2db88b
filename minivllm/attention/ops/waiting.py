"""Waiting awake for another thread.

A thread that sleeps needs some ten microseconds to wake up, as long as a small product takes; so
the threads of a pool look for their next task for a while before they fall asleep.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from minivllm.attention.ops.jit import EXACT, jit

# About a tenth of a millisecond: the time between two products of a step.
_TRIES = 100_000
# Some microseconds: the time that a thread needs to get from the counter out of Python.
_TRIES_MORE = 4_000


@intrinsic  # type: ignore[untyped-decorator]
def read_afresh(typing_context: Any, counters: Any, index: Any) -> Any:
    """Return ``counters[index]`` as it is in memory; the compiler would read it only once."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "acquire", align=8)

    return types.int64(counters, index), generate


@jit(EXACT)
def wait_awake(counters: Any, index: int, value: int) -> None:
    """Return when ``counters[index]`` is no longer `value`, or after a while.

    Not at once: the thread that has counted still holds Python's lock, and who has to wait for that
    one falls asleep after all.
    """
    for _ in range(_TRIES):
        if read_afresh(counters, index) != value:
            break
    for _ in range(_TRIES_MORE):
        read_afresh(counters, index)
