"""GPT-2 (mirrors ``vllm/model_executor/models/gpt2.py``).

Learned positions, norms before attention and MLP, and one merged projection for query, key and
value.  Its checkpoints store the weights of linear layers transposed ("Conv1D").
"""

from collections.abc import Iterable

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


class GPT2Attention(Module):
    """Multi-head attention."""

    def __init__(self, config: PretrainedConfig) -> None:
        num_heads, head_dim = config.num_attention_heads, config.head_dim
        self.c_attn = QKVParallelLinear(config.hidden_size, head_dim, num_heads)
        self.c_proj = RowParallelLinear(config.hidden_size, config.hidden_size)
        self.attn = Attention(num_heads, head_dim, head_dim ** -0.5)

    def __call__(self, hidden_states: Array, kv_cache: Array,
                 attn_metadata: AttentionMetadata) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)``."""
        q, k, v = self.c_attn.project(hidden_states)
        return self.c_proj(self.attn(q, k, v, kv_cache, attn_metadata))


class GPT2MLP(Module):
    """Two linear layers with an activation between."""

    def __init__(self, config: PretrainedConfig) -> None:
        self.c_fc = ColumnParallelLinear(config.hidden_size, config.intermediate_size)
        self.c_proj = RowParallelLinear(config.intermediate_size, config.hidden_size)
        self.act = get_act_fn(config.hidden_act)

    def __call__(self, x: Array) -> Array:
        """Map ``(T, hidden_size)`` to ``(T, hidden_size)``."""
        return self.c_proj(self.act(self.c_fc(x)))


class GPT2Block(Module):
    """Attention and MLP, each behind a norm and added to the residual stream."""

    def __init__(self, config: PretrainedConfig) -> None:
        self.ln_1 = LayerNorm(config.hidden_size, config.layer_norm_epsilon)
        self.attn = GPT2Attention(config)
        self.ln_2 = LayerNorm(config.hidden_size, config.layer_norm_epsilon)
        self.mlp = GPT2MLP(config)

    def __call__(self, residual: Array, kv_cache: Array,
                 attn_metadata: AttentionMetadata) -> Array:
        """Return the residual stream ``(T, hidden_size)`` after this block, in the same memory."""
        residual += self.attn(self.ln_1(residual), kv_cache, attn_metadata)
        residual += self.mlp(self.ln_2(residual))
        return residual


class GPT2Model(Module):
    """Embeddings, blocks, last norm."""

    def __init__(self, config: PretrainedConfig) -> None:
        self.wte = VocabParallelEmbedding(config.vocab_size, config.hidden_size)
        self.wpe = VocabParallelEmbedding(config.max_position_embeddings, config.hidden_size)
        self.h = [GPT2Block(config) for _ in range(config.num_hidden_layers)]
        self.ln_f = LayerNorm(config.hidden_size, config.layer_norm_epsilon)

    def __call__(self, input_ids: NDArray[np.int64], positions: NDArray[np.int64],
                 kv_caches: list[Array], attn_metadata: AttentionMetadata) -> Array:
        """Return the hidden states ``(T, hidden_size)`` after the last norm."""
        hidden_states = self.wte(input_ids) + self.wpe(positions)
        for block, kv_cache in zip(self.h, kv_caches, strict=True):
            hidden_states = block(hidden_states, kv_cache, attn_metadata)
        return self.ln_f(hidden_states)


class GPT2LMHeadModel(CausalLM):
    """GPT-2 with its head."""

    prefixes = {"h.": "transformer.h.", "wte.": "transformer.wte.", "wpe.": "transformer.wpe.",
                "ln_f.": "transformer.ln_f."}
    # Masks that old checkpoints carry.
    ignored_tensors = (".attn.bias", ".attn.masked_bias")
    transposed_tensors = ("c_attn.weight", "c_proj.weight", "c_fc.weight")

    def __init__(self, config: PretrainedConfig) -> None:
        self.transformer = GPT2Model(config)
        super().__init__(config, self.transformer.wte)

    def __call__(self, input_ids: NDArray[np.int64], positions: NDArray[np.int64],
                 kv_caches: list[Array], attn_metadata: AttentionMetadata) -> Array:
        """Return the hidden states ``(T, hidden_size)`` after the last norm."""
        return self.transformer(input_ids, positions, kv_caches, attn_metadata)

    def load_weights(self, weights: Iterable[tuple[str, Array]]) -> None:
        """Load a checkpoint, with the weights of linear layers turned to (output, input)."""
        super().load_weights((name, tensor.T if name.endswith(self.transposed_tensors) else tensor)
                             for name, tensor in weights)
