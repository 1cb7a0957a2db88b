"""From files to a model that is ready to run (mirrors ``vllm/model_executor/model_loader``)."""

from collections.abc import Sequence
from pathlib import Path

from minivllm.config import ModelConfig
from minivllm.model_executor.model_loader.weight_utils import list_tensors
from minivllm.model_executor.models.registry import get_model_class
from minivllm.model_executor.models.utils import CausalLM
from minivllm.transformers_utils.gguf.convert import LazyTensor
from minivllm.transformers_utils.gguf.llama import list_llama_tensors
from minivllm.transformers_utils.gguf.reader import read_gguf
from minivllm.utils import InternalError, track


def get_model(model_config: ModelConfig) -> CausalLM:
    """Make the model of `model_config` and fill in its weights, one tensor at a time.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If the architecture is not supported, or the files are broken or do not fit the config.
    MissingExtraError
        For a GGUF file, without the ``models`` extra.
    """
    path = model_config.path
    if path is None:
        raise InternalError("a simulated model has no weights to load")
    tensors = _tensors_of(path)
    model = get_model_class(model_config.hf_config)(model_config.hf_config)
    try:
        model.load_weights((tensor.name, tensor.read())
                           for tensor in track(tensors, len(tensors), "Loading weights"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be loaded: {error}") from error
    return model


def _tensors_of(path: Path) -> Sequence[LazyTensor]:
    """List the tensors of a directory or a ``.gguf`` file, under Hugging Face's names."""
    if path.suffix == ".gguf":
        return list_llama_tensors(read_gguf(path))
    return list_tensors(path)
