"""Qwen3 (mirrors ``vllm/model_executor/models/qwen3.py`` of later versions).

Llama with a norm over each head of query and key, before the rotary embedding.  ``head_dim`` is
a number of its own: heads times ``head_dim`` need not be ``hidden_size``.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionMetadata
from minivllm.model_executor.layers.layernorm import RMSNorm
from minivllm.model_executor.models.llama import LlamaAttention, LlamaForCausalLM
from minivllm.model_executor.module import Array
from minivllm.transformers_utils.config import PretrainedConfig


class Qwen3Attention(LlamaAttention):
    """Llama's attention with normed queries and keys."""

    def __init__(self, config: PretrainedConfig, layer_idx: int) -> None:
        super().__init__(config, layer_idx)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def __call__(self, positions: NDArray[np.int64], hidden_states: Array, kv_cache: Array,
                 attn_metadata: AttentionMetadata) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)``."""
        q, k, v = self.qkv_proj.project(hidden_states)
        q, k = self.rotary_emb(positions, norm_heads(self.q_norm, q), norm_heads(self.k_norm, k))
        output = self.attn(q, k, v, kv_cache, attn_metadata)
        return self.o_proj(output)


def norm_heads(norm: RMSNorm, x: Array) -> Array:
    """Normalise each head of ``(T, heads * head_dim)``."""
    heads = x.reshape(len(x), -1, len(norm.weight))  # (T, heads, head_dim)
    return norm(heads).reshape(x.shape)


class Qwen3ForCausalLM(LlamaForCausalLM):
    """Qwen3 with its head."""

    attention = Qwen3Attention
