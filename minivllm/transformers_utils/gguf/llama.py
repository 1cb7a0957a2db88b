"""The Llama architecture in a GGUF file: its configuration and its weights, as Hugging Face's.

Mirrors the ``LlamaForCausalLM`` rows of llama.cpp's conversion, run backwards.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minivllm.transformers_utils.gguf.reader import GGUFFile, GGUFTensor

TOP_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
# Not a weight: how llama.cpp stores llama3's scaling of the rotary frequencies.
ROPE_FREQS = "rope_freqs.weight"


@dataclass(frozen=True)
class LlamaTensor:
    """A tensor under its Hugging Face name, rows of q and k in Hugging Face's order.

    `num_heads` is 0 for a tensor whose rows are not permuted.
    """

    name: str
    source: GGUFTensor
    num_heads: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what `read` returns."""
        return self.source.shape

    def read(self) -> NDArray[np.float32]:
        """Read the tensor as float32."""
        if self.num_heads and self.shape[0] % (2 * self.num_heads):
            raise ValueError(f"{self.source.file}: tensor {self.source.name!r} of shape "
                             f"{self.shape} cannot be divided into {self.num_heads} heads.")
        values = self.source.read()
        return unpermute(values, self.num_heads) if self.num_heads else values


def unpermute(rows: NDArray[np.float32], num_heads: int) -> NDArray[np.float32]:
    """Put the rows of a q or k projection (or the values of its bias) into Hugging Face's order.

    llama.cpp rotates neighbours (0, 1), (2, 3), ...; Hugging Face rotates the two halves of a
    head against each other.

    >>> unpermute(np.arange(8), num_heads=2)
    array([0, 2, 1, 3, 4, 6, 5, 7])
    """
    half = len(rows) // num_heads // 2
    pairs = rows.reshape(num_heads, half, 2, -1)  # (num_heads, head_size / 2, 2, hidden_size)
    unpermuted: NDArray[np.float32] = pairs.swapaxes(1, 2).reshape(rows.shape)
    return unpermuted


def list_llama_tensors(gguf: GGUFFile) -> list[LlamaTensor]:
    """List the weights under their Hugging Face names, in the order of the file.

    Raises
    ------
    ValueError
        If a tensor has no place in a Llama model.
    """
    num_heads, num_kv_heads = _head_counts(gguf)
    heads = {"attn_q": num_heads, "attn_k": num_kv_heads}
    tensors = []
    for tensor in gguf.tensors:
        if tensor.name == ROPE_FREQS:
            continue
        match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", tensor.name)
        layer, part, kind = match.groups() if match else (None, "", "")
        name = TOP_NAMES.get(part) if layer is None else LAYER_NAMES.get(part)
        if name is None:
            raise ValueError(f"{gguf.path}: tensor {tensor.name!r} has no place in a plain Llama "
                             "model; this variant is not supported.")
        prefix = "" if layer is None else f"model.layers.{layer}."
        tensors.append(LlamaTensor(f"{prefix}{name}.{kind}", tensor, heads.get(part, 0)))
    return tensors


def llama_config(gguf: GGUFFile) -> dict[str, Any]:
    """Return what ``config.json`` would say.

    Raises
    ------
    ValueError
        If the architecture is another one, or a value is missing.
    """
    architecture = gguf.get("general.architecture")
    if architecture != "llama":
        raise ValueError(f"{gguf.path} has the architecture {architecture!r}; of GGUF files only "
                         "'llama' is supported. Use the model's safetensors files instead.")
    names = {tensor.name: tensor for tensor in gguf.tensors}
    if "token_embd.weight" not in names:
        raise ValueError(f"{gguf.path} has no tensor 'token_embd.weight': it is incomplete.")
    num_heads, num_kv_heads = _head_counts(gguf)
    hidden_size = _count(gguf, "embedding_length")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": names["token_embd.weight"].shape[0],
        "hidden_size": hidden_size,
        "intermediate_size": _count(gguf, "feed_forward_length"),
        "num_hidden_layers": _count(gguf, "block_count"),
        "num_attention_heads": num_heads,
        "num_key_value_heads": num_kv_heads,
        "head_dim": _count(gguf, "attention.key_length", hidden_size // num_heads),
        "max_position_embeddings": _count(gguf, "context_length"),
        "rms_norm_eps": _real(gguf, "attention.layer_norm_rms_epsilon"),
        "rope_theta": _real(gguf, "rope.freq_base", 10000.0),
        "rope_scaling": _rope_scaling(gguf, names),
        "attention_bias": "blk.0.attn_q.bias" in names,
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in names,
        "torch_dtype": "float32",
        **llama_generation_config(gguf),
    }


def llama_generation_config(gguf: GGUFFile) -> dict[str, Any]:
    """Return what ``generation_config.json`` would say: which tokens begin, end and pad."""
    keys = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    ids = {name: gguf.metadata.get(f"tokenizer.ggml.{key}_token_id") for name, key in keys.items()}
    return {name: token_id for name, token_id in ids.items() if token_id is not None}


def _head_counts(gguf: GGUFFile) -> tuple[int, int]:
    """Return the numbers of query heads and of key and value heads."""
    num_heads = _count(gguf, "attention.head_count")
    return num_heads, _count(gguf, "attention.head_count_kv", num_heads)


def _count(gguf: GGUFFile, key: str, default: int | None = None) -> int:
    """Return a number of heads, layers, ...; a ValueError names one that cannot be."""
    value = gguf.metadata.get(f"llama.{key}", default)
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{gguf.path}: metadata 'llama.{key}' should be a positive number, it is "
                         f"{value!r}.")
    return value


def _real(gguf: GGUFFile, key: str, default: float | None = None) -> float:
    """Return a real number as config.json would have it: a float32 9.9999e-06 becomes 1e-05."""
    value = gguf.metadata.get(f"llama.{key}", default)
    if not isinstance(value, float):
        raise ValueError(f"{gguf.path}: metadata 'llama.{key}' should be a real number, it is "
                         f"{value!r}.")
    return float(str(np.float32(value)))


def _rope_scaling(gguf: GGUFFile, names: Iterable[str]) -> dict[str, Any] | None:
    """Return the ``rope_scaling`` of config.json."""
    kind = gguf.metadata.get("llama.rope.scaling.type", "none")
    if ROPE_FREQS in names:
        return _llama3_scaling(gguf)
    if kind == "none":
        return None
    if kind != "linear":
        raise ValueError(f"{gguf.path}: rope scaling {kind!r} is not supported for GGUF files. "
                         "Use the model's safetensors files instead.")
    return {"rope_type": kind, "factor": _real(gguf, "rope.scaling.factor")}


def _llama3_scaling(gguf: GGUFFile) -> dict[str, Any]:
    """Return llama3's scaling: the file has only its result, a divisor for each frequency.

    The slowest frequency is divided by `factor`; the other values are those of all published
    models, and the divisors are checked to follow from them.
    """
    tensor = next(tensor for tensor in gguf.tensors if tensor.name == ROPE_FREQS)
    divisors = tensor.read()  # (head_size / 2,)
    factor, low, high, original = float(divisors.max()), 1.0, 4.0, 8192
    theta = _real(gguf, "rope.freq_base", 10000.0)
    exponents = np.arange(len(divisors)) / len(divisors)
    turns = original / (2 * np.pi * theta ** exponents)  # of each frequency, over the old context
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    if not np.allclose(1 / divisors, (1 - smooth) / factor + smooth, atol=1e-4):
        raise ValueError(f"{gguf.path}: {ROPE_FREQS} is not llama3's scaling with the usual "
                         "values. Use the model's safetensors files instead.")
    return {"rope_type": "llama3", "factor": factor, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": original}
