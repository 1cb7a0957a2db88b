"""Read the exported model back and run it in NumPy, apart from all else.

This forward pass shares no code with the training and none with the engine,
so that an error in the export cannot hide.
"""

import json
import pathlib

import numpy as np
from safetensors.numpy import load_file


def load_model(directory):
    """Return config and float32 weights of a model directory."""
    directory = pathlib.Path(directory)
    with open(directory / "config.json", encoding="utf-8") as file:
        config = json.load(file)
    weights = load_file(directory / "model.safetensors")
    return config, {name: value.astype(np.float32) for name, value in weights.items()}


def _normalize(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def _rotate(x, theta):
    """Rotate ``(length, heads, head_dim)`` by position, halves together."""
    length, _, size = x.shape
    angles = np.outer(np.arange(length), theta ** (-np.arange(0, size, 2) / size))
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = x[..., : size // 2], x[..., size // 2:]
    return np.concatenate(
        [first * cos - second * sin, second * cos + first * sin], axis=-1).astype(np.float32)


def _attention(x, weights, prefix, config):
    length, size = len(x), config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    q, k, v = (
        (x @ weights[f"{prefix}.{name}_proj.weight"].T).reshape(length, count, size)
        for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
    q, k = _rotate(q, config["rope_theta"]), _rotate(k, config["rope_theta"])
    k, v = (np.repeat(y, heads // kv_heads, axis=1) for y in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(size)
    scores += np.triu(np.full((length, length), -np.inf, dtype=np.float32), 1)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    out = np.einsum("hqk,khd->qhd", scores, v).reshape(length, heads * size)
    return out @ weights[f"{prefix}.o_proj.weight"].T


def forward(config, weights, tokens):
    """Return the logits at every position of one list of tokens."""
    eps = config["rms_norm_eps"]
    x = weights["model.embed_tokens.weight"][np.asarray(tokens)]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        y = _normalize(x, weights[f"{prefix}.input_layernorm.weight"], eps)
        x = x + _attention(y, weights, f"{prefix}.self_attn", config)
        y = _normalize(x, weights[f"{prefix}.post_attention_layernorm.weight"], eps)
        gate = y @ weights[f"{prefix}.mlp.gate_proj.weight"].T
        up = y @ weights[f"{prefix}.mlp.up_proj.weight"].T
        inner = gate / (1 + np.exp(-gate)) * up
        x = x + inner @ weights[f"{prefix}.mlp.down_proj.weight"].T
    x = _normalize(x, weights["model.norm.weight"], eps)
    return x @ weights["model.embed_tokens.weight"].T


def greedy(config, weights, tokens, count):
    """Continue a list of tokens by `count` tokens, each the most likely one."""
    tokens = list(tokens)
    for _ in range(count):
        tokens.append(int(forward(config, weights, tokens)[-1].argmax()))
    return tokens
