"""Checkpoints that do not fit, and checkpoints that fit in another way than usual."""

import json

import numpy as np
import pytest

from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from minivllm.model_executor.models.llama import LlamaForCausalLM
from minivllm.transformers_utils.config import get_config
from tests.models.harness import CHECKPOINTS, Driver, golden, load_tiny, tensors_of

NAMES = ["gpt2", "llama-mha", "mistral-swa-f16", "opt-post-proj", "qwen2-tied", "qwen3"]


def last_logits(model, ids):
    driver = Driver(model, NumpyAttentionBackend)
    seq = driver.add(len(ids))
    driver.step([(seq, ids)])
    return seq.last_logits(model)


@pytest.mark.parametrize("name", NAMES)
def test_each_missing_tensor_is_named(name):
    tensors = tensors_of(CHECKPOINTS[name])
    for missing in tensors:
        rest = {key: value for key, value in tensors.items() if key != missing}
        with pytest.raises(ValueError, match="lacks 1 of .* tensors: " + missing):
            load_tiny(name, rest)


@pytest.mark.parametrize("name", NAMES)
def test_each_wrong_shape_is_named_with_both_shapes(name):
    tensors = tensors_of(CHECKPOINTS[name])
    for wrong, tensor in tensors.items():
        longer = np.concatenate([tensor, tensor[:1]])
        with pytest.raises(ValueError) as error:
            load_tiny(name, tensors | {wrong: longer})
        assert wrong in str(error.value)
        for shape in (tensor.shape, longer.shape):
            assert str(shape) in str(error.value) or str(shape[::-1]) in str(error.value)


def test_an_unknown_tensor_is_named():
    tensors = tensors_of(CHECKPOINTS["llama-mha"])
    with pytest.raises(ValueError, match=r"'model\.layers\.7\.mlp\.up_proj\.weight'.*not know"):
        load_tiny("llama-mha", tensors | {"model.layers.7.mlp.up_proj.weight": np.zeros((2, 2))})


def test_a_head_beside_tied_embeddings_is_ignored():
    """Some exporters write the tied tensor a second time."""
    tensors = tensors_of(CHECKPOINTS["qwen2-tied"])
    head = np.full_like(tensors["model.embed_tokens.weight"], np.nan)
    prompt = golden("qwen2-tied")["prompts"][0]
    model = load_tiny("qwen2-tied", tensors | {"lm_head.weight": head})
    np.testing.assert_allclose(last_logits(model, prompt["prompt_token_ids"]),
                               prompt["last_logits"], atol=2e-4)


def test_a_head_that_is_neither_tied_nor_there_is_an_error():
    tensors = tensors_of(CHECKPOINTS["llama-mha"])
    del tensors["lm_head.weight"]
    with pytest.raises(ValueError, match="lm_head.weight"):
        load_tiny("llama-mha", tensors)


class BiasedHead(LlamaForCausalLM):
    def __init__(self, config):
        super().__init__(config)
        self.lm_head = ParallelLMHead(config.vocab_size, config.hidden_size, bias=True)


def test_a_bias_of_the_head_is_loaded_and_added():
    tensors = tensors_of(CHECKPOINTS["llama-mha"])
    model = BiasedHead(get_config(CHECKPOINTS["llama-mha"]))
    with pytest.raises(ValueError, match="lacks 1 of .* tensors: lm_head.bias"):
        model.load_weights(tensors.items())
    bias = np.arange(model.config.vocab_size, dtype=np.float32)
    model.load_weights((tensors | {"lm_head.bias": bias}).items())
    prompt = golden("llama-mha")["prompts"][0]
    np.testing.assert_allclose(last_logits(model, prompt["prompt_token_ids"]),
                               prompt["last_logits"] + bias, atol=2e-4)


@pytest.mark.parametrize(("name", "prefix", "replacement"), [
    ("gpt2", "transformer.", ""), ("opt-pre", "model.decoder.", "decoder.")])
def test_older_names_of_tensors(name, prefix, replacement):
    tensors = {key.replace(prefix, replacement): value
               for key, value in tensors_of(CHECKPOINTS[name]).items()}
    if name == "gpt2":
        tensors["h.0.attn.bias"] = np.ones((1, 1, 256, 256))  # a mask, not a weight
    prompt = golden(name)["prompts"][0]
    np.testing.assert_allclose(last_logits(load_tiny(name, tensors), prompt["prompt_token_ids"]),
                               prompt["last_logits"], atol=2e-4)


def write_safetensors(path, tensors, dtype):
    """Write float32 tensors as F32, F16 or BF16 (cut off)."""
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        data = np.ascontiguousarray(tensor)
        if dtype == "BF16":
            data = (data.view(np.uint32) >> 16).astype(np.uint16)
        elif dtype == "F16":
            data = data.astype(np.float16)
        header[name] = {"dtype": dtype, "shape": tensor.shape,
                        "data_offsets": [offset, offset + data.nbytes]}
        chunks.append(data.tobytes())
        offset += data.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(chunks))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_every_stored_type_is_widened_exactly(name, dtype, tmp_path):
    """The same values give the same logits, however many bits they are stored in."""
    tensors = tensors_of(CHECKPOINTS[name])
    for key, value in tensors.items():
        # Values that each of the three types can hold.
        tensors[key] = (value.astype(np.float16).astype(np.float32).view(np.uint32)
                        & 0xFFFF0000).view(np.float32)
    write_safetensors(tmp_path / "model.safetensors", tensors, dtype)
    ids = golden(name)["prompts"][1]["prompt_token_ids"]
    np.testing.assert_array_equal(last_logits(load_tiny(name, tensors_of(tmp_path)), ids),
                                  last_logits(load_tiny(name, tensors), ids))
