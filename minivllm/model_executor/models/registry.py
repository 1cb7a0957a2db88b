"""Which class runs which architecture (mirrors ``ModelRegistry`` of vLLM's models package)."""

from collections.abc import Callable

from minivllm.model_executor.models.gpt2 import GPT2LMHeadModel
from minivllm.model_executor.models.llama import LlamaForCausalLM
from minivllm.model_executor.models.mistral import MistralForCausalLM
from minivllm.model_executor.models.opt import OPTForCausalLM
from minivllm.model_executor.models.qwen2 import Qwen2ForCausalLM
from minivllm.model_executor.models.qwen3 import Qwen3ForCausalLM
from minivllm.model_executor.models.utils import CausalLM
from minivllm.transformers_utils.config import PretrainedConfig, check_architecture

# A CausalLM of a family is made from its config alone.
MODELS: dict[str, Callable[[PretrainedConfig], CausalLM]] = {
    "GPT2LMHeadModel": GPT2LMHeadModel,
    "LlamaForCausalLM": LlamaForCausalLM,
    "MistralForCausalLM": MistralForCausalLM,
    "OPTForCausalLM": OPTForCausalLM,
    "Qwen2ForCausalLM": Qwen2ForCausalLM,
    "Qwen3ForCausalLM": Qwen3ForCausalLM,
}


def get_model_class(config: PretrainedConfig) -> Callable[[PretrainedConfig], CausalLM]:
    """Return the class for the `architectures` of a config.

    Raises
    ------
    ValueError
        If there is none: lists what is supported, and the nearest name.
    """
    return MODELS[check_architecture(config.get("architectures"), MODELS)]
