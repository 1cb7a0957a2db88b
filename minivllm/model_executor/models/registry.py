"""Which class runs which architecture (mirrors ``ModelRegistry`` of vLLM's models package)."""

from typing import Any

from minivllm.model_executor.models.llama import LlamaForCausalLM
from minivllm.model_executor.models.utils import CausalLM
from minivllm.transformers_utils.config import PretrainedConfig, check_architecture

MODELS: dict[str, type[CausalLM] | Any] = {
    "LlamaForCausalLM": LlamaForCausalLM,
}


def get_model_class(config: PretrainedConfig) -> type[CausalLM]:
    """Return the class for the `architectures` of a config.

    Raises
    ------
    ValueError
        If there is none: lists what is supported, and the nearest name.
    """
    return MODELS[check_architecture(config.get("architectures"), MODELS)]
