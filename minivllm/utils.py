"""Small helpers that every floor may use (mirrors ``vllm/utils.py``)."""

import ctypes
import enum
import importlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from types import FrameType, ModuleType
from typing import Any, TypeVar, get_args

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


# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Let the C library keep the memory of arrays that are dropped, for new ones.

    Each step makes and drops arrays of megabytes.  By default their memory goes back to the system
    every time, and a fresh page costs more than the arithmetic on it.  Arrays of 32 MiB and more,
    such as KV pools, still do, and so does what is more than 128 MiB at the top of the heap.  Who
    has set glibc's own variables knows better.  (vLLM's advice for CPUs is another malloc.)
    """
    if sys.platform != "linux" or any(name.startswith("MALLOC_") for name in os.environ):
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # not in every C library
        libc.mallopt(_M_MMAP_THRESHOLD, 32 << 20)
        libc.mallopt(_M_TRIM_THRESHOLD, 128 << 20)


def cdiv(a: int, b: int) -> int:
    """Return ``a / b`` rounded up: how many boxes of size `b` hold `a` things.

    >>> cdiv(9, 4)
    3
    """
    return -(-a // b)


def whole_number(name: str, value: Any) -> int:
    """Return `value`, of Python or NumPy, as an int.

    Raises
    ------
    ValueError
        If it is something else, such as True, 2.0 or "2"; says that it is `name`.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, got {value!r}.")
    return int(value)


def number(name: str, value: Any) -> float:
    """Return `value`, of Python or NumPy, as a number; NaN and True are a ValueError like text."""
    try:
        as_float = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        as_float = math.nan
    if isinstance(value, bool) or math.isnan(as_float):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    return value if isinstance(value, int | float) else as_float


def of_kind(name: str, value: Any, annotation: Any) -> Any:
    """Return an argument as what it is annotated with: bool, int, float, str, or one or None.

    >>> of_kind("seed", None, int | None)
    >>> of_kind("top_p", "0.9", float)
    Traceback (most recent call last):
    ValueError: top_p must be a number, got '0.9'.
    """
    kinds = get_args(annotation) or (annotation,)
    if value is None and type(None) in kinds:
        return None
    if int in kinds:
        return whole_number(name, value)
    if float in kinds:
        return number(name, value)
    if bool in kinds and not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}.")
    if str in kinds and not isinstance(value, str):
        raise ValueError(f"{name} must be a str, got {value!r}.")
    return value


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


class HeldInterrupts:
    """Lets Ctrl-C wait for the end of a piece of work that must not stay half done.

    It takes effect at the end of the ``with`` block, or at once inside of `let_through`, which is
    for what takes long and can be undone.  Outside of the main thread, where Python delivers no
    signals, this does nothing.
    """

    def __enter__(self) -> "HeldInterrupts":
        self._came = self._let_through = False
        self._handler: Any = None
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            self._deliver()

    def let_through(self) -> "_LetThrough":
        """Return a context in which Ctrl-C takes effect at once."""
        return _LetThrough(self)

    def _note(self, signal_number: int, frame: FrameType | None) -> None:
        self._came = True
        if self._let_through:
            self._deliver()

    def _deliver(self) -> None:
        if self._came:
            # What is raised now is cleaned up after, which must not be interrupted either.
            self._came = self._let_through = False
            self._handler(signal.SIGINT, None)


class _LetThrough:
    def __init__(self, held: HeldInterrupts) -> None:
        self._held = held

    def __enter__(self) -> None:
        self._held._let_through = True
        self._held._deliver()

    def __exit__(self, *exc: object) -> None:
        self._held._let_through = False
