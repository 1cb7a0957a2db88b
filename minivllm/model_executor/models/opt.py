"""OPT (mirrors ``vllm/model_executor/models/opt.py``).

A GPT with learned positions, which count from 2, and ReLU.  The 350M model differs from all
others: norms come after attention and MLP instead of before, there is no last norm, and token
embeddings are narrower than the hidden states, with a projection on each side.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionMetadata
from minivllm.attention.layer import Attention
from minivllm.model_executor.layers.activation import get_act_fn
from minivllm.model_executor.layers.layernorm import LayerNorm
from minivllm.model_executor.layers.linear import (
    ColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from minivllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from minivllm.model_executor.models.utils import CausalLM
from minivllm.model_executor.module import Array, Module
from minivllm.transformers_utils.config import PretrainedConfig

# The first rows of the position table were kept for padding.
POSITION_OFFSET = 2


class OPTAttention(Module):
    """Multi-head attention; positions are in the hidden states already."""

    def __init__(self, config: PretrainedConfig) -> None:
        num_heads, head_dim = config.num_attention_heads, config.head_dim
        bias = config.enable_bias
        self.qkv_proj = QKVParallelLinear(config.hidden_size, head_dim, num_heads, bias=bias)
        self.out_proj = RowParallelLinear(config.hidden_size, config.hidden_size, bias)
        self.attn = Attention(num_heads, head_dim, head_dim ** -0.5)

    def __call__(self, hidden_states: Array, kv_cache: Array,
                 attn_metadata: AttentionMetadata) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)``."""
        q, k, v = self.qkv_proj.project(hidden_states)
        return self.out_proj(self.attn(q, k, v, kv_cache, attn_metadata))


class OPTDecoderLayer(Module):
    """Attention and MLP, each added to its input, with a norm before or after."""

    def __init__(self, config: PretrainedConfig) -> None:
        hidden_size, ffn_dim = config.hidden_size, config.intermediate_size
        self.do_layer_norm_before = config.do_layer_norm_before
        self.self_attn = OPTAttention(config)
        self.self_attn_layer_norm = LayerNorm(hidden_size)
        self.fc1 = ColumnParallelLinear(hidden_size, ffn_dim, config.enable_bias)
        self.activation_fn = get_act_fn(config.hidden_act)
        self.fc2 = RowParallelLinear(ffn_dim, hidden_size, config.enable_bias)
        self.final_layer_norm = LayerNorm(hidden_size)

    def __call__(self, hidden_states: Array, kv_cache: Array,
                 attn_metadata: AttentionMetadata) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)``."""
        if self.do_layer_norm_before:
            normed = self.self_attn_layer_norm(hidden_states)
            hidden_states = hidden_states + self.self_attn(normed, kv_cache, attn_metadata)
            return hidden_states + self.mlp(self.final_layer_norm(hidden_states))
        attended = hidden_states + self.self_attn(hidden_states, kv_cache, attn_metadata)
        hidden_states = self.self_attn_layer_norm(attended)
        return self.final_layer_norm(hidden_states + self.mlp(hidden_states))

    def mlp(self, x: Array) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)`` through ``(T, ffn_dim)``."""
        return self.fc2(self.activation_fn(self.fc1(x)))


class OPTDecoder(Module):
    """Embeddings, layers, and what the variants have around them."""

    def __init__(self, config: PretrainedConfig) -> None:
        hidden_size, embed_size = config.hidden_size, config.word_embed_proj_dim
        self.embed_tokens = VocabParallelEmbedding(config.vocab_size, embed_size)
        self.embed_positions = VocabParallelEmbedding(
            config.max_position_embeddings + POSITION_OFFSET, hidden_size)
        self.project_in = self.project_out = None
        if embed_size != hidden_size:
            self.project_in = ColumnParallelLinear(embed_size, hidden_size, bias=False)
            self.project_out = RowParallelLinear(hidden_size, embed_size, bias=False)
        has_final_norm = config.do_layer_norm_before and not config._remove_final_layer_norm
        self.final_layer_norm = LayerNorm(hidden_size) if has_final_norm else None
        self.layers = [OPTDecoderLayer(config) for _ in range(config.num_hidden_layers)]

    def __call__(self, input_ids: NDArray[np.int64], positions: NDArray[np.int64],
                 kv_caches: list[Array], attn_metadata: AttentionMetadata) -> Array:
        """Return hidden states as wide as the token embeddings, ``(T, word_embed_proj_dim)``."""
        hidden_states = self.embed_tokens(input_ids)
        if self.project_in is not None:
            hidden_states = self.project_in(hidden_states)  # (T, hidden_size)
        hidden_states = hidden_states + self.embed_positions(positions + POSITION_OFFSET)
        for layer, kv_cache in zip(self.layers, kv_caches, strict=True):
            hidden_states = layer(hidden_states, kv_cache, attn_metadata)
        if self.final_layer_norm is not None:
            hidden_states = self.final_layer_norm(hidden_states)
        if self.project_out is not None:
            hidden_states = self.project_out(hidden_states)  # (T, word_embed_proj_dim)
        return hidden_states


class OPTModel(Module):
    """Only a name in the path of the weights."""

    def __init__(self, config: PretrainedConfig) -> None:
        self.decoder = OPTDecoder(config)


class OPTForCausalLM(CausalLM):
    """OPT with its head."""

    packed_modules_mapping = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
    prefixes = {"decoder.": "model.decoder."}

    def __init__(self, config: PretrainedConfig) -> None:
        self.model = OPTModel(config)
        super().__init__(config, self.model.decoder.embed_tokens)

    def __call__(self, input_ids: NDArray[np.int64], positions: NDArray[np.int64],
                 kv_caches: list[Array], attn_metadata: AttentionMetadata) -> Array:
        """Return the hidden states that the head reads, ``(T, word_embed_proj_dim)``."""
        return self.model.decoder(input_ids, positions, kv_caches, attn_metadata)
