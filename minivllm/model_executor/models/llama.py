"""Llama (mirrors ``vllm/model_executor/models/llama.py``), the family that others vary.

SmolLM2, TinyLlama, Llama 2 and Llama 3 are of it.  Shapes: T is the number of tokens in the step,
all sequences in one row.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionMetadata
from minivllm.attention.layer import Attention
from minivllm.model_executor.layers.activation import SiluAndMul
from minivllm.model_executor.layers.layernorm import RMSNorm
from minivllm.model_executor.layers.linear import (
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from minivllm.model_executor.layers.rotary_embedding import get_rope
from minivllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from minivllm.model_executor.models.utils import CausalLM
from minivllm.model_executor.module import Array, Module
from minivllm.transformers_utils.config import PretrainedConfig

# Tokens that go through the MLP at a time: its rows are several times as wide as all others.
_MLP_TOKENS = 2048
# What a family may replace by a layer of another class.
Layer = Callable[[Array], Array]


class LlamaMLP(Module):
    """``down(silu(gate(x)) * up(x))``."""

    def __init__(self, config: PretrainedConfig) -> None:
        hidden_size, intermediate_size = config.hidden_size, config.intermediate_size
        bias = config.mlp_bias
        self.gate_up_proj = MergedColumnParallelLinear(hidden_size, [intermediate_size] * 2, bias)
        self.down_proj = RowParallelLinear(intermediate_size, hidden_size, bias)
        self.act_fn: Layer = SiluAndMul()

    def __call__(self, x: Array) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)``."""
        output = np.empty(x.shape, dtype=np.float32)
        for start in range(0, len(x), _MLP_TOKENS):
            rows = slice(start, start + _MLP_TOKENS)
            gate_up = self.gate_up_proj(x[rows])  # (rows, 2 * intermediate_size)
            output[rows] = self.down_proj(self.act_fn(gate_up))  # (rows, hidden_size)
        return output


class LlamaAttention(Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, config: PretrainedConfig, layer_idx: int) -> None:
        num_heads, num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        head_dim = config.head_dim
        self.qkv_proj = QKVParallelLinear(config.hidden_size, head_dim, num_heads, num_kv_heads,
                                          bias=config.attention_bias)
        self.o_proj = RowParallelLinear(num_heads * head_dim, config.hidden_size,
                                        bias=config.attention_bias)
        self.rotary_emb = get_rope(head_dim, int(head_dim * config.partial_rotary_factor),
                                   config.max_position_embeddings, config.rope_theta,
                                   config.rope_scaling)
        self.attn = Attention(num_heads, head_dim, head_dim ** -0.5, num_kv_heads,
                              config.layer_windows[layer_idx])

    def __call__(self, positions: NDArray[np.int64], hidden_states: Array, kv_cache: Array,
                 attn_metadata: AttentionMetadata) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)``."""
        q, k, v = self.qkv_proj.project(hidden_states)  # (T, heads * head_dim) each
        q, k = self.rotary_emb(positions, q, k)
        output = self.attn(q, k, v, kv_cache, attn_metadata)  # (T, num_heads * head_dim)
        return self.o_proj(output)  # (T, hidden_size)


class LlamaDecoderLayer(Module):
    """Attention and MLP, each behind a norm and added to the residual stream."""

    def __init__(self, config: PretrainedConfig, self_attn: LlamaAttention) -> None:
        self.self_attn = self_attn
        self.mlp = LlamaMLP(config)
        self.input_layernorm: Layer = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm: Layer = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def __call__(self, positions: NDArray[np.int64], residual: Array, kv_cache: Array,
                 attn_metadata: AttentionMetadata) -> Array:
        """Return the residual stream ``(T, hidden_size)`` after this layer, in the same memory."""
        normed = self.input_layernorm(residual)
        residual += self.self_attn(positions, normed, kv_cache, attn_metadata)
        normed = self.post_attention_layernorm(residual)
        residual += self.mlp(normed)
        return residual


class LlamaModel(Module):
    """Embedding, decoder layers, last norm."""

    def __init__(self, config: PretrainedConfig, attention: type[LlamaAttention]) -> None:
        self.embed_tokens = VocabParallelEmbedding(config.vocab_size, config.hidden_size)
        self.layers = [LlamaDecoderLayer(config, attention(config, i))
                       for i in range(config.num_hidden_layers)]
        self.norm: Layer = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def __call__(self, input_ids: NDArray[np.int64], positions: NDArray[np.int64],
                 kv_caches: list[Array], attn_metadata: AttentionMetadata) -> Array:
        """Return the hidden states ``(T, hidden_size)`` after the last norm."""
        hidden_states = self.embed_tokens(input_ids)  # (T, hidden_size)
        for layer, kv_cache in zip(self.layers, kv_caches, strict=True):
            hidden_states = layer(positions, hidden_states, kv_cache, attn_metadata)
        return self.norm(hidden_states)


class LlamaForCausalLM(CausalLM):
    """Llama with its head.

    Attributes
    ----------
    attention : type of LlamaAttention
        What a family that differs in attention replaces.
    """

    packed_modules_mapping = {
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
        "gate_up_proj": ["gate_proj", "up_proj"],
    }
    attention: type[LlamaAttention] = LlamaAttention

    def __init__(self, config: PretrainedConfig) -> None:
        self.model = LlamaModel(config, self.attention)
        super().__init__(config, self.model.embed_tokens)

    def __call__(self, input_ids: NDArray[np.int64], positions: NDArray[np.int64],
                 kv_caches: list[Array], attn_metadata: AttentionMetadata) -> Array:
        """Return the hidden states ``(T, hidden_size)`` after the last norm."""
        return self.model(input_ids, positions, kv_caches, attn_metadata)
