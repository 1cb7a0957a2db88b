"""The tiny Llama model in plain torch, with the weight names of Hugging Face.

The modules are nested so that ``state_dict()`` gives exactly the names that a
``LlamaForCausalLM`` checkpoint has. There is no ``lm_head``: the output layer
shares its weights with the token embedding.
"""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    """Scale each vector to a root mean square of one, then by a weight."""

    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotary_tables(head_dim, length, theta):
    """Return cosines and sines of shape ``(length, head_dim)``.

    Llama rotates dimension ``i`` together with ``i + head_dim / 2``, so each
    angle occurs twice, once in each half.
    """
    frequencies = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """Turn queries or keys by the angles of their positions."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Attention(nn.Module):
    """Causal self-attention in which several query heads share a key head."""

    def __init__(self, config):
        super().__init__()
        self.heads = config["num_attention_heads"]
        self.kv_heads = config["num_key_value_heads"]
        self.head_dim = config["head_dim"]
        hidden = config["hidden_size"]
        self.q_proj = nn.Linear(hidden, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, hidden, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape

        def split(y, heads):
            return y.view(batch, length, heads, self.head_dim).transpose(1, 2)

        q = rotate(split(self.q_proj(x), self.heads), cos, sin)
        k = rotate(split(self.k_proj(x), self.kv_heads), cos, sin)
        v = split(self.v_proj(x), self.kv_heads)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class MLP(nn.Module):
    """The gated feed-forward layer (SwiGLU)."""

    def __init__(self, config):
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One transformer layer with normalization before each part."""

    def __init__(self, config):
        super().__init__()
        hidden, eps = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn = Attention(config)
        self.mlp = MLP(config)
        self.input_layernorm = RMSNorm(hidden, eps)
        self.post_attention_layernorm = RMSNorm(hidden, eps)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Embedding, layers and last normalization (the part called ``model``)."""

    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(
            Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = RMSNorm(config["hidden_size"], config["rms_norm_eps"])


class TinyLlama(nn.Module):
    """A Llama language model whose output layer is its embedding."""

    def __init__(self, config):
        super().__init__()
        self.model = Decoder(config)
        cos, sin = rotary_tables(
            config["head_dim"], config["max_position_embeddings"], config["rope_theta"])
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self._init_weights(config)

    def _init_weights(self, config):
        # Layers that write into the residual stream start smaller, so that
        # the depth of the model does not make its activations grow.
        depth = (2 * config["num_hidden_layers"]) ** -0.5
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                scale = depth if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                nn.init.normal_(weight, std=config["initializer_range"] * scale)

    def forward(self, tokens):
        """Return the logits of the next token at every position."""
        length = tokens.shape[1]
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, self.cos[:length], self.sin[:length])
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight)

    @torch.no_grad()
    def generate(self, tokens, max_tokens, temperature=0.0, end=None, generator=None):
        """Continue a list of tokens; greedy when the temperature is zero."""
        tokens = list(tokens)
        for _ in range(max_tokens):
            logits = self(torch.tensor([tokens]))[0, -1]
            if temperature == 0.0:
                token = int(logits.argmax())
            else:
                chances = torch.softmax(logits / temperature, dim=-1)
                token = int(torch.multinomial(chances, 1, generator=generator))
            tokens.append(token)
            if token == end:
                break
        return tokens
