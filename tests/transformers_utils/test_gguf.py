"""GGUF files: every quantisation, the Llama layout undone, broken files named."""

import math
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from minivllm.model_executor.model_loader.weight_utils import list_tensors
from minivllm.transformers_utils.config import get_config, get_generation_config
from minivllm.transformers_utils.gguf import reader
from minivllm.transformers_utils.gguf.convert import convert_gguf
from minivllm.transformers_utils.gguf.llama import list_llama_tensors, unpermute
from minivllm.transformers_utils.gguf.reader import GGUFTensor, read_gguf
from minivllm.utils import MissingExtraError
from tests.transformers_utils.tiny_gguf import TINY, permute, write_gguf

LLAMAS = ["llama-mha", "llama-gqa-linear-bf16", "llama-rope3-sharded"]
DEQUANTISED = [gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16,
               *gguf.quants._type_traits]


@pytest.fixture
def tiny_gguf(tmp_path) -> Path:
    return write_gguf(tmp_path / "tiny.gguf")


def llama3_divisors(theta, head_size, factor):
    """Return what llama.cpp's conversion writes as ``rope_freqs``, frequency by frequency."""
    divisors = []
    for i in range(0, head_size, 2):
        wavelength = 2 * math.pi * theta ** (i / head_size)
        if wavelength < 8192 / 4:
            divisors.append(1.0)
        elif wavelength > 8192 / 1:
            divisors.append(factor)
        else:
            smooth = (8192 / wavelength - 1) / (4 - 1)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return divisors


@pytest.mark.parametrize("quant_type", DEQUANTISED, ids=lambda t: t.name)
def test_every_quantisation_of_the_gguf_package(quant_type, tmp_path, monkeypatch):
    """Any bytes are blocks of any quantisation: ours, in pieces, equals theirs in one go."""
    monkeypatch.setattr(reader, "CHUNK_SIZE", 1000)  # pieces of two rows, the last of one
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[quant_type]
    shape = (3, 5, 512)
    row_bytes = 512 // block_size * block_bytes
    stored = np.random.default_rng(int(quant_type)).integers(0, 256, (3, 5, row_bytes), np.uint8)
    (tmp_path / "raw").write_bytes(b"before" + stored.tobytes() + b"behind")
    tensor = GGUFTensor(tmp_path / "raw", "w", int(quant_type), shape, offset=6)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(tensor.read(), gguf.dequantize(stored, quant_type))


@pytest.mark.parametrize("name", LLAMAS)
def test_weights_come_back_under_hugging_faces_names_and_order(name, tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", name)
    expected = {tensor.name: tensor.read() for tensor in list_tensors(TINY / name)}
    found = {tensor.name: tensor.read() for tensor in list_llama_tensors(read_gguf(path))}
    assert found.keys() == expected.keys()
    for tensor, values in expected.items():
        np.testing.assert_array_equal(found[tensor], values, err_msg=tensor)


@pytest.mark.parametrize("name", LLAMAS[:2])
def test_the_configuration_is_that_of_config_json(name, tmp_path):
    ours = get_config(write_gguf(tmp_path / "tiny.gguf", name))
    theirs = get_config(TINY / name)
    for key in ("architectures", "vocab_size", "hidden_size", "intermediate_size", "head_dim",
                "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "rms_norm_eps",
                "max_position_embeddings", "rope_theta", "tie_word_embeddings", "attention_bias"):
        assert getattr(ours, key) == getattr(theirs, key), key
    assert (ours.rope_scaling or {}).get("factor") == (theirs.rope_scaling or {}).get("factor")
    ids = get_generation_config(tmp_path / "tiny.gguf")
    assert (ids["bos_token_id"], ids["eos_token_id"]) == (theirs.bos_token_id, theirs.eos_token_id)


def test_llama3_scaling_is_recovered_from_its_result(tmp_path):
    divisors = llama3_divisors(10000.0, 16, factor=8.0)
    path = write_gguf(tmp_path / "tiny.gguf", rope_freqs__weight=divisors)
    assert get_config(path).rope_scaling == {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}
    assert "rope_freqs" not in " ".join(t.name for t in list_llama_tensors(read_gguf(path)))


def test_another_scaling_is_not_taken_for_llama3(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", rope_freqs__weight=np.linspace(1, 8, 8))
    with pytest.raises(ValueError, match="not llama3's scaling with the usual values"):
        get_config(path)


@pytest.mark.parametrize("shape", [(12, 5), (12,)])
def test_unpermute_undoes_permute(shape):
    rows = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    np.testing.assert_array_equal(unpermute(permute(rows, 3), 3), rows)
    assert not np.array_equal(permute(rows, 3), rows)


def test_biases_are_put_in_order_as_well(tmp_path):
    bias = np.arange(64, dtype=np.float32)
    path = write_gguf(tmp_path / "tiny.gguf", blk__0__attn_q__bias=permute(bias, 4))
    found = {tensor.name: tensor for tensor in list_llama_tensors(read_gguf(path))}
    np.testing.assert_array_equal(found["model.layers.0.self_attn.q_proj.bias"].read(), bias)
    assert get_config(path).attention_bias


@pytest.mark.parametrize("name", LLAMAS)
def test_a_converted_directory_is_the_same_model(name, tmp_path):
    convert_gguf(write_gguf(tmp_path / "tiny.gguf", name), tmp_path / "converted")
    expected = {tensor.name: tensor.read() for tensor in list_tensors(TINY / name)}
    found = {tensor.name: tensor.read() for tensor in list_tensors(tmp_path / "converted")}
    assert found.keys() == expected.keys()
    for tensor, values in expected.items():
        np.testing.assert_array_equal(found[tensor], values, err_msg=tensor)
    assert vars(get_config(tmp_path / "converted")) == vars(get_config(tmp_path / "tiny.gguf"))


# What is not supported, and what is broken.


def test_another_architecture(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", architecture="gemma2")
    with pytest.raises(ValueError, match="architecture 'gemma2'"):
        get_config(path)


def test_a_tensor_that_no_plain_llama_has(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", blk__0__ffn_gate_exps__weight=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="'blk.0.ffn_gate_exps.weight' has no place"):
        list_llama_tensors(read_gguf(path))


def test_a_quantisation_that_the_package_does_not_know(tmp_path):
    tensor = GGUFTensor(tmp_path / "x.gguf", "w", 9999, (2, 2), 0)
    with pytest.raises(ValueError, match="x.gguf: tensor 'w' has a quantisation.*upgrade gguf"):
        tensor.read()


def test_without_the_gguf_package(tiny_gguf, monkeypatch):
    """Metadata needs no package; weights do, and the error says how to get it."""
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert get_config(tiny_gguf).vocab_size == 512
    tensor = list_llama_tensors(read_gguf(tiny_gguf))[0]
    with pytest.raises(MissingExtraError, match=r"pip install 'minivllm\[models\]'"):
        tensor.read()


def test_a_header_that_is_cut_off_anywhere(tiny_gguf, tmp_path):
    header_size = min(tensor.offset for tensor in read_gguf(tiny_gguf).tensors)
    whole = tiny_gguf.read_bytes()[:header_size]
    cut = tmp_path / "cut.gguf"
    for length in [*range(200), *range(200, header_size - 64, 97)]:
        cut.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="cut.gguf is no GGUF file that can be read"):
            read_gguf(cut)


def test_data_that_is_cut_off(tiny_gguf):
    content = tiny_gguf.read_bytes()
    tiny_gguf.write_bytes(content[:-100_000])
    with pytest.raises(ValueError, match="tiny.gguf is truncated: it has .* bytes, its tensor"):
        for tensor in list_llama_tensors(read_gguf(tiny_gguf)):
            tensor.read()


@pytest.mark.parametrize("content", [
    b"", b"GGUF", b"PK\x03\x04" + bytes(60), b"GGUF" + (1).to_bytes(4, "little") + bytes(60),
    b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 16,
    b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + b"\x01" + bytes(7) + b"\xff" * 30,
])
def test_no_gguf_file(tmp_path, content):
    (tmp_path / "x.gguf").write_bytes(content)
    with pytest.raises(ValueError, match="x.gguf is no GGUF file that can be read"):
        read_gguf(tmp_path / "x.gguf")


def test_damaged_headers_are_value_errors(tiny_gguf):
    """Flip bytes of the header: reading, configuring and listing fail with ValueErrors only."""
    content = tiny_gguf.read_bytes()
    header_size = min(tensor.offset for tensor in read_gguf(tiny_gguf).tensors)
    rng = np.random.default_rng(0)
    num_errors = 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[rng.integers(header_size)] = rng.integers(256)
        tiny_gguf.write_bytes(damaged)
        try:
            gguf_file = read_gguf(tiny_gguf)
            get_config(tiny_gguf)
            for tensor in list_llama_tensors(gguf_file):
                tensor.read()
        except ValueError as error:
            num_errors += 1
            assert str(tiny_gguf) in str(error)
    assert num_errors > 20
