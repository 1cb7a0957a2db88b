"""What layers are made of: the little of ``torch.nn.Module`` that a model needs.

A module keeps its weights (arrays) and its parts (other modules, or lists of them) as attributes.
Their names, joined by dots, are the names of tensors in a checkpoint.  What PyTorch modules do in
``forward`` is ``__call__`` here.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

_LINE = 16  # float32 numbers of a cache line


class Module:
    """A layer or a model."""

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """Yield this module as `prefix` and every part with its dotted name, each once.

        A part that is reachable by two names (a tied head) keeps the first.
        """
        seen: set[int] = set()
        for name, module in self._walk(prefix):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def _walk(self, prefix: str) -> Iterator[tuple[str, "Module"]]:
        yield prefix, self
        for name, value in vars(self).items():
            parts = value if isinstance(value, list) else [value]
            for i, part in enumerate(parts):
                if isinstance(part, Module):
                    path = f"{name}.{i}" if isinstance(value, list) else name
                    yield from part._walk(f"{prefix}.{path}" if prefix else path)

    def parameters(self) -> Iterator[tuple[str, Array]]:
        """Yield name and array of this module's own weights: its public array attributes."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and not name.startswith("_"):
                yield name, value


def empty_aligned(*shape: int) -> Array:
    """Return an array that begins where a cache line does.

    NumPy's own begin at any multiple of 16 bytes: then every second vector of 32 bytes lies in
    two cache lines of 64, and takes twice as long to load.
    """
    return _from_line(np.empty(math.prod(shape) + _LINE, dtype=np.float32), shape)


def zeros_aligned(*shape: int) -> Array:
    """Return an array of zeros that begins where a cache line does; see `empty_aligned`."""
    return _from_line(np.zeros(math.prod(shape) + _LINE, dtype=np.float32), shape)


def _from_line(room: Array, shape: tuple[int, ...]) -> Array:
    start = -room.ctypes.data // room.itemsize % _LINE
    return room[start:start + math.prod(shape)].reshape(shape)


def empty_weight(*shape: int) -> Array:
    """Return an array for a weight; it takes memory only as the checkpoint is copied into it."""
    return empty_aligned(*shape)
