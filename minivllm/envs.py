"""Environment variables that minivllm reads, each in one function (mirrors ``vllm/envs.py``).

Functions, not constants, so that a test may change the environment after the import.
"""

import os
import sys
from pathlib import Path


def attention_backend() -> str | None:
    """Return ``MINIVLLM_ATTENTION_BACKEND``: ``numpy``, ``numba`` or ``auto``."""
    return os.environ.get("MINIVLLM_ATTENTION_BACKEND")


def fast() -> bool:
    """Return False if ``MINIVLLM_FAST=0`` asks for the plain line instead of fast kernels."""
    return os.environ.get("MINIVLLM_FAST", "1") != "0"


def num_threads() -> int:
    """Return how many threads to use for both BLAS and attention.

    ``MINIVLLM_NUM_THREADS`` if set, else the number of cores that this process may use.
    """
    if value := os.environ.get("MINIVLLM_NUM_THREADS"):
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"MINIVLLM_NUM_THREADS must be a positive number, got {value!r}.")
        return int(value)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_dir() -> Path:
    """Return where downloaded models go: ``MINIVLLM_CACHE``, else the platform's cache folder."""
    if value := os.environ.get("MINIVLLM_CACHE"):
        return Path(value)
    try:
        return _platform_cache_dir() / "minivllm"
    except RuntimeError:  # neither HOME nor an account
        raise ValueError("there is no home directory to look for downloaded models in: set "
                         "MINIVLLM_CACHE to a directory of yours.") from None


def _platform_cache_dir() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
