"""An array that notes which slots of a KV cache are read.

Taking a part of it reads nothing yet; calculating with it does.
"""

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

# What gives another view of the same elements.
_VIEWS = ("T",)
_VIEW_METHODS = ("reshape", "transpose", "swapaxes", "squeeze", "ravel", "flatten", "copy",
                 "astype", "view")


class RecordingArray(NDArrayOperatorsMixin):
    """A KV cache, ``(2, num_blocks, num_kv_heads, block_size, head_size)``, or a part of one.

    Parameters
    ----------
    values : ndarray
        The numbers.
    slots : ndarray of int64, same shape
        The slot to which each number belongs.
    touched : set of int
        Slots that have been read; all parts of one cache share it.
    """

    def __init__(self, values: NDArray[np.float32], slots: NDArray[np.int64],
                 touched: set[int]) -> None:
        self.values = values
        self.slots = slots
        self.touched = touched

    @classmethod
    def of_cache(cls, kv_cache: NDArray[np.float32]) -> "RecordingArray":
        """Return a whole cache that nobody has read yet."""
        num_blocks, block_size = kv_cache.shape[1], kv_cache.shape[3]
        slots = np.arange(num_blocks * block_size).reshape(1, num_blocks, 1, block_size, 1)
        return cls(kv_cache, np.broadcast_to(slots, kv_cache.shape), set())

    def read(self) -> NDArray[np.float32]:
        """Note all slots of this part as read and return its numbers."""
        self.touched.update(np.unique(self.slots).tolist())
        return self.values

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            key = tuple(_plain(part) for part in key)
        part = RecordingArray(np.asarray(self.values[key]), np.asarray(self.slots[key]),
                              self.touched)
        return part.read()[()] if part.values.ndim == 0 else part

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ValueError("paged_attention only reads the KV cache; it must not write to it")

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.read(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        plain = {name: _plain(value) for name, value in kwargs.items()}
        return function(*map(_plain, args), **plain)

    def __getattr__(self, name: str) -> Any:
        if name in _VIEWS:
            return RecordingArray(getattr(self.values, name), getattr(self.slots, name),
                                  self.touched)
        if name in _VIEW_METHODS:
            return lambda *args, **kwargs: self._view(name, args, kwargs)
        if name in ("shape", "ndim", "size", "dtype"):
            return getattr(self.values, name)
        return getattr(self.read(), name)

    def _view(self, name: str, args: Any, kwargs: Any) -> "RecordingArray":
        slots = self.slots if name in ("astype", "view") else getattr(self.slots, name)(*args,
                                                                                        **kwargs)
        return RecordingArray(getattr(self.values, name)(*args, **kwargs), slots, self.touched)


def _plain(value: Any) -> Any:
    """Return what NumPy can calculate with, noting what is read for it."""
    if isinstance(value, RecordingArray):
        return value.read()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return value
