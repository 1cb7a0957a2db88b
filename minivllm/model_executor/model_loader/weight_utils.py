"""Reading safetensors files (mirrors ``vllm/model_executor/model_loader/weight_utils.py``).

A safetensors file is 8 bytes of header length, a JSON header that says where each tensor lies,
and the tensors.  The header is read here, not by the safetensors package: NumPy has no bfloat16,
and memory-mapped pages would count as memory until the file is closed.  So each tensor is read
by itself, in pieces, into float32.

Left out: pickled checkpoints (``.bin``, ``.pt``: they can execute code) and downloads.
"""

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

INDEX_NAME = "model.safetensors.index.json"
# The format's own limit: a longer header is a hostile or broken file.
MAX_HEADER_BYTES = 100_000_000
# Elements read at a time: a tensor is never in memory twice.
CHUNK_SIZE = 1 << 20


def widen_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return bfloat16 values, given as their bits, as float32.

    bfloat16 is the upper half of float32, so this is exact.

    >>> widen_bfloat16(np.array([0x3F80, 0xC020], dtype=np.uint16))
    array([ 1. , -2.5], dtype=float32)
    """
    return (bits.astype(np.uint32) << 16).view(np.float32)


def widen(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return float32 or float16 values as float32."""
    return values.astype(np.float32, copy=False)


# dtype in the file: how NumPy reads it, how it becomes float32.
DTYPES: dict[str, tuple[np.dtype[Any], Callable[[NDArray[Any]], NDArray[np.float32]]]] = {
    "F32": (np.dtype("<f4"), widen),
    "F16": (np.dtype("<f2"), widen),
    "BF16": (np.dtype("<u2"), widen_bfloat16),
}


@dataclass(frozen=True)
class SafetensorsTensor:
    """A tensor in a safetensors file, not read yet; `offset` counts from the file's start."""

    file: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    def read(self) -> NDArray[np.float32]:
        """Read the tensor and widen it to float32.

        Returns
        -------
        ndarray of float32, shape `shape`
            An array of its own: nothing refers to the file.

        Raises
        ------
        ValueError
            If the stored type is none of `DTYPES`.
        """
        if self.dtype not in DTYPES:
            raise ValueError(f"{self.file}: tensor {self.name!r} is stored as {self.dtype}, which "
                             f"cannot be read; convert it to one of {', '.join(DTYPES)}.")
        stored, to_float32 = DTYPES[self.dtype]
        values = np.empty(math.prod(self.shape), dtype=np.float32)
        with open(self.file, "rb") as file:
            file.seek(self.offset)
            for start in range(0, values.size, CHUNK_SIZE):
                piece = values[start:start + CHUNK_SIZE]
                piece[:] = to_float32(np.fromfile(file, dtype=stored, count=piece.size))
        return values.reshape(self.shape)


def safetensors_files(directory: Path) -> list[Path]:
    """Return the safetensors files of a model directory that has no index.

    Raises
    ------
    FileNotFoundError
        If there is none, or no way to tell which one it is.
    """
    if (single := directory / "model.safetensors").exists():
        return [single]
    found = sorted(directory.glob("*.safetensors"))
    if len(found) == 1:
        return found
    if found:
        raise FileNotFoundError(f"{directory} has {len(found)} safetensors files and no "
                                f"{INDEX_NAME} that says what is in which; download it as well.")
    pickled = sorted([*directory.glob("*.bin"), *directory.glob("*.pt*")])
    if pickled:
        raise FileNotFoundError(f"{directory} has its weights in {pickled[0].name} only: a pickle, "
                                "which can execute code and is not read. Convert it to "
                                "safetensors.")
    raise FileNotFoundError(f"{directory} has no weights: no model.safetensors and no "
                            f"{INDEX_NAME}. Download the model again.")


def list_tensors(directory: Path) -> list[SafetensorsTensor]:
    """List the tensors of a model directory; the index, if there is one, decides for each.

    Parameters
    ----------
    directory : Path
        With ``model.safetensors``, or with shards and ``model.safetensors.index.json``.

    Returns
    -------
    list of SafetensorsTensor
        File by file, in the order in which they lie in it.

    Raises
    ------
    FileNotFoundError
        If there are no weights, or a shard is missing.
    ValueError
        If a file is truncated or lies about its contents.
    """
    if not (directory / INDEX_NAME).exists():
        return [tensor for file in safetensors_files(directory) for tensor in read_header(file)]
    weight_map = read_index(directory / INDEX_NAME)
    tensors = []
    for shard in sorted(set(weight_map.values())):
        wanted = {name for name, file in weight_map.items() if file == shard}
        found = [tensor for tensor in read_header(directory / shard) if tensor.name in wanted]
        if missing := wanted - {tensor.name for tensor in found}:
            raise ValueError(f"{directory / shard} lacks tensor {min(missing)!r}, which "
                             f"{INDEX_NAME} places there. Download both again.")
        tensors += found
    return tensors


def read_index(path: Path) -> dict[str, str]:
    """Return the index's map from tensor to shard, after checking it."""
    try:
        index = json.loads(path.read_bytes())
        weight_map = index["weight_map"]
        valid = all(isinstance(shard, str) for shard in weight_map.values())
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        valid = False
    if not valid or not weight_map:
        raise ValueError(f"{path} is no index: it should have a 'weight_map' from tensor names to "
                         "file names. Download it again.")
    for name, shard in weight_map.items():
        if shard != Path(shard).name or not shard.endswith(".safetensors"):
            raise ValueError(f"{path} places tensor {name!r} in {shard!r}, which is not the name "
                             "of a safetensors file beside it.")
        if not (path.parent / shard).exists():
            raise FileNotFoundError(f"{path} places tensor {name!r} in {shard}, but there is no "
                                    "such file. Download the missing shard.")
    return dict(weight_map)


def read_header(path: Path) -> list[SafetensorsTensor]:
    """List the tensors of one file by their offset, after checking that they can be there.

    Raises
    ------
    ValueError
        If the file is shorter than it says, or its header is no safetensors header.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_HEADER_BYTES):
            raise ValueError(f"{path} is no safetensors file, or is truncated: it has {size:,} "
                             f"bytes, and its header should have {length:,}. Download it again.")
        header = file.read(length)
    data_start = 8 + length
    try:
        entries = json.loads(header)
        entries.pop("__metadata__", None)
        tensors = [_parse_entry(path, name, entry, data_start) for name, entry in entries.items()]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} has a broken safetensors header ({error}). Download it "
                         "again.") from error
    tensors.sort(key=lambda pair: pair[0].offset)
    _check_layout(path, tensors, data_start, size)
    return [tensor for tensor, _ in tensors]


def _parse_entry(path: Path, name: str, entry: dict[str, Any],
                 data_start: int) -> tuple[SafetensorsTensor, int]:
    """Return the tensor of one header entry, and where it ends in the file."""
    dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    numbers = [*shape, begin, end]
    if not isinstance(dtype, str) or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError(f"tensor {name!r} has type {dtype!r} and sizes {numbers}")
    if dtype in DTYPES and end - begin != math.prod(shape) * DTYPES[dtype][0].itemsize:
        raise ValueError(f"tensor {name!r} of shape {shape} and type {dtype} cannot take "
                         f"{end - begin} bytes")
    tensor = SafetensorsTensor(path, name, dtype, tuple(shape), data_start + begin)
    return tensor, data_start + end


def _check_layout(path: Path, tensors: list[tuple[SafetensorsTensor, int]], data_start: int,
                  size: int) -> None:
    """Check that the tensors follow each other without gap or overlap up to the file's end."""
    position = data_start
    for tensor, end in tensors:
        if tensor.offset != position or end < position:
            raise ValueError(f"{path} has a broken safetensors header (tensor {tensor.name!r} "
                             f"lies at bytes {tensor.offset:,} to {end:,}, the one before it ends "
                             f"at {position:,}). Download it again.")
        position = end
    if position != size:
        raise ValueError(f"{path} is {'truncated' if size < position else 'too long'}: its header "
                         f"describes {position:,} bytes, it has {size:,}. Download it again.")
