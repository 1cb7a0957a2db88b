"""Small helpers that every floor may use (mirrors ``vllm/utils.py``)."""

import enum


class Device(enum.Enum):
    """Where a block lives: the GPU pool is what attention reads, the CPU pool is the swap area."""

    GPU = enum.auto()
    CPU = enum.auto()


class Counter:
    """Hands out 0, 1, 2, ...: ids of sequences and requests."""

    def __init__(self, start: int = 0) -> None:
        self.counter = start

    def __next__(self) -> int:
        value = self.counter
        self.counter += 1
        return value

    def reset(self) -> None:
        """Start again at 0."""
        self.counter = 0


def cdiv(a: int, b: int) -> int:
    """Return ``a / b`` rounded up: how many boxes of size `b` hold `a` things.

    >>> cdiv(9, 4)
    3
    """
    return -(-a // b)


class InternalError(RuntimeError):
    """A promise of the engine to itself is broken: a bug in minivllm, not in its input."""
