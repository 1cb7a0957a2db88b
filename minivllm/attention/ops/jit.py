"""Compiles kernels with Numba.

A kernel is a plain Python function; with ``NUMBA_DISABLE_JIT=1`` it stays one, to be stepped
through in a debugger.  Kernels copy arrays number by number: for ``a[:] = b`` Numba would also
compile what it says where shapes differ, which takes longer than many a kernel.

Compiled code is kept on disk: beside the source, else in the user's cache directory, else where
``NUMBA_CACHE_DIR`` says.  Where nothing of this can be written, each process compiles anew.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from minivllm.logger import init_logger

logger = init_logger(__name__)

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# Fused multiply-add may round differently; NaN and infinity stay what they are.
EXACT = frozenset({"contract"})
# Sums may be taken in any order, so that they can be vectorised.
REORDERED = frozenset({"contract", "reassoc", "nsz"})


def jit(fastmath: frozenset[str]) -> Callable[[Kernel], Kernel]:
    """Return a decorator that compiles a kernel when it is first called."""
    def compile_later(kernel: Kernel) -> Kernel:
        # Dividing by zero gives infinity, as in NumPy: a check would keep loops from being
        # vectorised.
        options = {"nogil": True, "error_model": "numpy", "fastmath": set(fastmath)}
        try:
            return numba.njit(kernel, cache=True, **options)  # type: ignore[no-any-return]
        except RuntimeError as error:
            _warn_once(str(error))
            return numba.njit(kernel, **options)  # type: ignore[no-any-return]

    return compile_later


def is_compiled(kernel: Any) -> bool:
    """Return whether compiled code of the kernel is on disk (that of its source as it was)."""
    if numba.config.DISABLE_JIT:
        return True
    cache, source = kernel.stats.cache_path, Path(kernel.py_func.__code__.co_filename)
    return cache is not None and any(Path(cache).glob(f"{source.stem}.{kernel.__name__}-*.nbi"))


_warned = False


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        logger.warning("compiled kernels cannot be kept (%s): each process compiles anew. Set "
                       "NUMBA_CACHE_DIR to a writable directory.", reason)
