"""GGUF to a directory in Hugging Face layout, weights in float32."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from minivllm.transformers_utils.gguf.llama import (
    list_llama_tensors,
    llama_config,
    llama_generation_config,
)
from minivllm.transformers_utils.gguf.reader import read_gguf
from minivllm.transformers_utils.gguf.tokenizer import llama_tokenizer, llama_tokenizer_config
from minivllm.utils import track


class LazyTensor(Protocol):
    """A tensor that is read when it is needed."""

    @property
    def name(self) -> str:
        """Name in the checkpoint."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what `read` returns."""

    def read(self) -> NDArray[np.float32]:
        """Read the tensor as float32."""


def convert_gguf(gguf_path: Path, directory: Path) -> None:
    """Write the model in `gguf_path` into the new directory `directory`.

    Raises
    ------
    ValueError
        If the file cannot be read, or its model is no Llama.
    """
    gguf = read_gguf(gguf_path)
    tensors = list_llama_tensors(gguf)
    directory.mkdir()
    _write_json(directory / "config.json", llama_config(gguf))
    _write_json(directory / "generation_config.json", llama_generation_config(gguf))
    _write_json(directory / "tokenizer_config.json", llama_tokenizer_config(gguf))
    llama_tokenizer(gguf).save(str(directory / "tokenizer.json"))
    write_safetensors(directory / "model.safetensors", tensors)


def write_safetensors(path: Path, tensors: Sequence[LazyTensor]) -> None:
    """Write tensors as float32, reading one at a time.

    The format: 8 bytes of header length, a JSON header with the place of each tensor, the tensors.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    position = 0
    for tensor in tensors:
        end = position + 4 * math.prod(tensor.shape)
        header[tensor.name] = {"dtype": "F32", "shape": tensor.shape,
                               "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in track(tensors, len(tensors), "Converting to float32"):
            tensor.read().astype("<f4", copy=False).tofile(file)


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
