"""Small helpers that every floor may use (mirrors ``vllm/utils.py``)."""

import enum
import importlib
import sys
import time
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


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


class MissingExtraError(ImportError):
    """A package of the ``models`` extra is needed and not installed."""


def import_extra(module: str, purpose: str) -> ModuleType:
    """Import a package of the ``models`` extra where it is needed.

    Raises
    ------
    MissingExtraError
        Which says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{purpose} need the package {module.partition('.')[0]!r}, which "
                                "is not installed: pip install 'minivllm[models]'") from error


def track(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """Yield `items`, and count them on stderr if that is a terminal and it takes over a second."""
    start = time.monotonic()
    line = ""
    try:
        for done, item in enumerate(items):
            if sys.stderr.isatty() and time.monotonic() - start > 1:
                line = f"{title}: {100 * done // total} %"
                print(f"\r{line}", end="", file=sys.stderr, flush=True)
            yield item
    finally:
        if line:
            print(f"\r{' ' * len(line)}\r", end="", file=sys.stderr, flush=True)
