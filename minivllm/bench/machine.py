"""The machine that a measurement was made on, and what it can do at most."""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minivllm import envs
from minivllm.threads import get_pool
from minivllm.version import __version__

Floats = NDArray[np.float32]

_READ_FLOATS = 1 << 26  # 256 MiB: far more than any cache holds
_SGEMM_SIZE = 1536


@dataclass(frozen=True)
class Machine:
    """Where a measurement was made.

    Attributes
    ----------
    cpu : str
        Name of the processor.
    num_cores : int
        Cores that the process may use.
    num_threads : int
        Threads that minivllm uses.
    load : float or None
        How many processes wanted a core in the last minute; None where the system does not tell.
        Above the threads of the measurement itself, others were in its way.
    system, python, numpy, minivllm : str
        Versions.
    """

    cpu: str
    num_cores: int
    num_threads: int
    load: float | None
    system: str
    python: str
    numpy: str
    minivllm: str


def describe_machine() -> Machine:
    """Return what this machine is."""
    affinity = getattr(os, "sched_getaffinity", None)
    return Machine(
        cpu=_cpu_name(), num_cores=len(affinity(0)) if affinity else os.cpu_count() or 1,
        num_threads=envs.num_threads(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        system=f"{platform.system()} {platform.release()}", python=platform.python_version(),
        numpy=np.__version__, minivllm=__version__)


def _cpu_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True)
class Limits:
    """What the hardware does at most, all threads of minivllm together.

    Attributes
    ----------
    read_bandwidth : float
        Bytes per second from memory.
    sgemm : float
        Floating point operations per second in a product of large float32 matrices; a multiply
        and an add are two.
    """

    read_bandwidth: float
    sgemm: float

    def seconds(self, num_bytes: float, operations: float) -> float:
        """Return how long reading and computing take at least, if each hides behind the other."""
        return max(num_bytes / self.read_bandwidth, operations / self.sgemm)


def measure_limits(repeat: int = 5) -> Limits:
    """Measure both limits; the fastest of `repeat` runs counts."""
    numbers = np.ones(_READ_FLOATS, dtype=np.float32)
    a = np.ones((_SGEMM_SIZE, _SGEMM_SIZE), dtype=np.float32)
    out = np.empty_like(a)
    return Limits(
        read_bandwidth=numbers.nbytes / _fastest(_read, repeat, numbers),
        sgemm=2 * _SGEMM_SIZE ** 3 / _fastest(_multiply, repeat, a, a, out))


def _fastest(function: Callable[..., None], repeat: int, *args: Floats) -> float:
    """Return the seconds of the fastest of `repeat` calls on all threads."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        get_pool().run(function, *args)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _read(thread: int, num_threads: int, numbers: Floats) -> None:
    share = numbers[len(numbers) * thread // num_threads:
                    len(numbers) * (thread + 1) // num_threads]
    np.dot(share, share)


def _multiply(thread: int, num_threads: int, a: Floats, b: Floats, out: Floats) -> None:
    rows = slice(len(a) * thread // num_threads, len(a) * (thread + 1) // num_threads)
    np.matmul(a[rows], b, out=out[rows])
