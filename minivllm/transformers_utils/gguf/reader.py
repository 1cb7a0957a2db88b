"""The container: metadata as a dictionary, tensors that read themselves.

The header is read here rather than by the gguf package's reader, which takes seconds for a large
vocabulary and maps the whole file; the package knows how to undo every quantisation.
"""

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from minivllm.utils import cdiv, import_extra

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
# Value types: numbers by their struct letter, then the two composite ones.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
           10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
# Elements dequantised at a time: a tensor is never in memory twice.
CHUNK_SIZE = 1 << 20


@dataclass(frozen=True)
class GGUFTensor:
    """A tensor in a GGUF file, not read yet; `offset` counts from the file's start.

    `shape` is in NumPy's order, which is the reverse of the file's.
    """

    file: Path
    name: str
    quant_type: int
    shape: tuple[int, ...]
    offset: int

    def read(self) -> NDArray[np.float32]:
        """Read the tensor and undo its quantisation.

        Returns
        -------
        ndarray of float32, shape `shape`

        Raises
        ------
        ValueError
            If the quantisation is unknown or the file is truncated.
        ImportError
            Without the ``models`` extra.
        """
        gguf = import_extra("gguf", "GGUF files")
        try:
            quant_type = gguf.GGMLQuantizationType(self.quant_type)
            block_size, block_bytes = gguf.GGML_QUANT_SIZES[quant_type]
        except (ValueError, KeyError) as error:
            raise ValueError(f"{self.file}: tensor {self.name!r} has a quantisation that the "
                             f"installed gguf package does not know ({error}). Try a newer one: "
                             "pip install --upgrade gguf") from error
        num_rows, row_size = math.prod(self.shape[:-1]), self.shape[-1]
        row_bytes = row_size // block_size * block_bytes
        if self.offset + num_rows * row_bytes > (size := os.path.getsize(self.file)):
            raise ValueError(f"{self.file} is truncated: it has {size:,} bytes, its tensor "
                             f"{self.name!r} of shape {self.shape} ends at "
                             f"{self.offset + num_rows * row_bytes:,}. Download it again.")
        values = np.empty((num_rows, row_size), dtype=np.float32)
        step = cdiv(CHUNK_SIZE, row_size)
        with open(self.file, "rb") as file:
            file.seek(self.offset)
            for start in range(0, num_rows, step):
                piece = values[start:start + step]
                stored = np.fromfile(file, dtype=np.uint8, count=len(piece) * row_bytes)
                piece[:] = gguf.dequantize(stored.reshape(-1, row_bytes), quant_type)
        return values.reshape(self.shape)


@dataclass(frozen=True)
class GGUFFile:
    """What the header says.

    Attributes
    ----------
    path : Path
    metadata : dict
        By keys such as ``llama.block_count`` or ``tokenizer.ggml.tokens``.
    tensors : list of GGUFTensor
        In the order of the file.
    """

    path: Path
    metadata: dict[str, Any]
    tensors: list[GGUFTensor]

    def get(self, key: str) -> Any:
        """Return the metadata value of `key`; a ValueError names a missing one."""
        if key not in self.metadata:
            raise ValueError(f"{self.path} has no metadata {key!r}: it is incomplete, or not a "
                             "language model.")
        return self.metadata[key]


def read_gguf(path: Path) -> GGUFFile:
    """Read the header of a GGUF file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no GGUF file, or its header is truncated or broken.
    """
    with open(path, "rb") as file:
        reader = _HeaderReader(file)
        try:
            return reader.read_file(path)
        except (ValueError, struct.error) as error:
            raise ValueError(f"{path} is no GGUF file that can be read: {error}. "
                             "Download it again.") from error


class _HeaderReader:
    """Reads one value after the other; nothing longer than the rest of the file."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = self.rest = os.fstat(file.fileno()).st_size

    def read_file(self, path: Path) -> GGUFFile:
        if (magic := self.take(4)) != MAGIC:
            raise ValueError(f"it begins with {magic!r}, not {MAGIC!r}")
        if (version := self.number("I")) not in VERSIONS:
            raise ValueError(f"its version is {version}, known are {VERSIONS}")
        num_tensors, num_keys = self.number("Q"), self.number("Q")
        metadata = {}
        for _ in range(num_keys):
            key = self.string()
            metadata[key] = self.value(self.number("I"))
        infos = [self.tensor_info() for _ in range(num_tensors)]
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"its alignment is {alignment!r}")
        data_start = cdiv(self.size - self.rest, alignment) * alignment
        return GGUFFile(path, metadata, [
            GGUFTensor(path, name, quant_type, shape, data_start + offset)
            for name, quant_type, shape, offset in infos])

    def take(self, length: int) -> bytes:
        if length > self.rest:
            raise ValueError(f"it ends after {self.size:,} bytes, in the middle of its header")
        self.rest -= length
        return self.file.read(length)

    def number(self, letter: str) -> Any:
        """Read one number, given by its struct letter."""
        return struct.unpack("<" + letter, self.take(struct.calcsize("<" + letter)))[0]

    def string(self) -> str:
        return self.take(self.number("Q")).decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            return self.array(self.number("I"), self.number("Q"))
        if kind not in SCALARS:
            raise ValueError(f"it has a value of unknown type {kind}")
        return self.number(SCALARS[kind])

    def array(self, kind: int, length: int) -> list[Any]:
        if kind == STRING:
            return [self.string() for _ in range(length)]
        if kind not in SCALARS:
            raise ValueError(f"it has an array of values of type {kind}")
        stored = self.take(length * struct.calcsize("<" + SCALARS[kind]))
        return list(struct.unpack(f"<{length}{SCALARS[kind]}", stored))

    def tensor_info(self) -> tuple[str, int, tuple[int, ...], int]:
        """Read the name, quantisation type, shape and offset of a tensor."""
        name = self.string()
        dimensions = [self.number("Q") for _ in range(self.number("I"))]
        if not dimensions or 0 in dimensions:
            raise ValueError(f"its tensor {name!r} has the shape {dimensions}")
        return name, self.number("I"), tuple(reversed(dimensions)), self.number("Q")
