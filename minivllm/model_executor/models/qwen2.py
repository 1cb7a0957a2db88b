"""Qwen2 (mirrors ``vllm/model_executor/models/qwen2.py``).

Llama with biases on query, key and value, and none on the output projection.
"""

from minivllm.model_executor.layers.linear import QKVParallelLinear
from minivllm.model_executor.models.llama import LlamaAttention, LlamaForCausalLM
from minivllm.transformers_utils.config import PretrainedConfig


class Qwen2Attention(LlamaAttention):
    """Llama's attention with biased projections."""

    def __init__(self, config: PretrainedConfig, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        self.qkv_proj = QKVParallelLinear(config.hidden_size, config.head_dim,
                                          config.num_attention_heads, config.num_key_value_heads,
                                          bias=True)


class Qwen2ForCausalLM(LlamaForCausalLM):
    """Qwen2 with its head."""

    attention = Qwen2Attention
