"""Writes golden tiny Llama checkpoints as GGUF files, the way llama.cpp's conversion does."""

import json
import re
from pathlib import Path

import gguf
import numpy as np

from minivllm.model_executor.model_loader.weight_utils import list_tensors

TINY = Path(__file__).parent.parent / "golden" / "tiny"
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    module, kind = name.rsplit(".", 1)
    if match := re.fullmatch(r"model\.layers\.(\d+)\.(.*)", module):
        return f"blk.{match[1]}.{NAMES[match[2]]}.{kind}"
    return f"{NAMES[module]}.{kind}"


def permute(rows, num_heads):
    """Interleave the two halves of each head."""
    halves = rows.reshape(num_heads, 2, -1, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def add_tensors(writer, name, config):
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for tensor in list_tensors(TINY / name):
        values = tensor.read()
        if (part := tensor.name.split(".")[-2]) in heads:
            values = permute(values, heads[part])
        writer.add_tensor(gguf_name(tensor.name), values)


def add_rope(writer, config):
    scaling = config.get("rope_scaling") or {"rope_type": "none"}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(scaling["factor"])
    writer.add_rope_freq_base(config.get("rope_theta", 10000.0))


def add_tokenizer(writer, name):
    """Write a tokenizer with byte fallback as sentencepiece's, another as GPT-2's."""
    content = json.loads((TINY / name / "tokenizer.json").read_text(encoding="utf-8"))
    vocab = sorted(content["model"]["vocab"], key=content["model"]["vocab"].get)
    control = {token["content"] for token in content["added_tokens"]}
    if content["model"]["byte_fallback"]:
        writer.add_tokenizer_model("llama")
        writer.add_token_scores([-float(i) for i in range(len(vocab))])
    else:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges(content["model"]["merges"])
    writer.add_token_list(vocab)
    writer.add_token_types([gguf.TokenType.CONTROL if token in control else gguf.TokenType.NORMAL
                            for token in vocab])
    writer.add_bos_token_id(vocab.index("<s>"))
    writer.add_eos_token_id(vocab.index("</s>"))


def write_gguf(path, name="llama-mha", architecture="llama", **extra_tensors):
    """Write the golden checkpoint `name`, and tensors beside it, to `path`."""
    config = json.loads((TINY / name / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    add_rope(writer, config)
    add_tokenizer(writer, name)
    add_tensors(writer, name, config)
    for tensor_name, values in extra_tensors.items():
        writer.add_tensor(tensor_name.replace("__", "."), np.asarray(values, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
