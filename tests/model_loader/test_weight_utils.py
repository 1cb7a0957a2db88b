"""Safetensors files: every number exact, every lie found."""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from minivllm.model_executor.model_loader import weight_utils
from minivllm.model_executor.model_loader.weight_utils import (
    INDEX_NAME,
    list_tensors,
    read_header,
    widen_bfloat16,
)

TINY = Path(__file__).parent.parent / "golden" / "tiny"


def write_raw(path, header, data=b"", length=None):
    """Write a safetensors file byte by byte; `header` may be anything."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(text) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def read_all(directory):
    return {tensor.name: tensor.read() for tensor in list_tensors(directory)}


# Reading.


def test_reads_what_the_safetensors_package_wrote(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "matrix": rng.standard_normal((3, 5), dtype=np.float32),
        "half": rng.standard_normal((2, 3, 4)).astype(np.float16),
        "scalar": np.array(7.5, np.float32),
        "empty": np.empty((0, 4), np.float32),
        "not finite": np.array([np.nan, np.inf, -np.inf, -0.0], np.float32),
    }
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    found = read_all(tmp_path)
    assert found.keys() == tensors.keys()
    for name, expected in tensors.items():
        assert found[name].dtype == np.float32
        assert found[name].shape == expected.shape
        np.testing.assert_array_equal(found[name], expected.astype(np.float32))


def test_every_bfloat16_is_widened_exactly(tmp_path):
    """All 65,536 bit patterns: the float32 has them as its upper half, NaN payloads included."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    write_raw(tmp_path / "model.safetensors",
              {"w": entry("BF16", bits.shape, (0, bits.nbytes))}, bits.astype("<u2").tobytes())
    widened = read_all(tmp_path)["w"]
    np.testing.assert_array_equal(widened.view(np.uint32), bits.astype(np.uint32) << 16)
    assert list(widen_bfloat16(np.array([0x3F80, 0xC020, 0x0001], np.uint16))) == \
        [1.0, -2.5, 2.0 ** -133]


def test_every_float16_is_widened_exactly(tmp_path):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    save_file({"w": halves}, tmp_path / "model.safetensors")
    widened = read_all(tmp_path)["w"]
    np.testing.assert_array_equal(widened.astype(np.float16), halves)  # NaN equals NaN here
    np.testing.assert_array_equal(np.isnan(widened), np.isnan(halves))


def test_a_tensor_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(weight_utils, "CHUNK_SIZE", 3)
    values = np.arange(20, dtype=np.float32).reshape(4, 5)
    save_file({"w": values, "v": -values}, tmp_path / "model.safetensors")
    found = read_all(tmp_path)
    np.testing.assert_array_equal(found["w"], values)
    np.testing.assert_array_equal(found["v"], -values)


@pytest.mark.parametrize("name", sorted(path.name for path in TINY.iterdir()
                                        if (path / "config.json").exists()))
def test_golden_checkpoints_read_as_the_safetensors_package_reads_them(name):
    expected = {}
    for file in (TINY / name).glob("*.safetensors"):
        for tensor, info in safetensors.deserialize(file.read_bytes()):
            stored = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}[info["dtype"]]
            values = np.frombuffer(info["data"], stored).reshape(info["shape"])
            is_bf16 = info["dtype"] == "BF16"
            expected[tensor] = widen_bfloat16(values) if is_bf16 else values.astype(np.float32)
    found = read_all(TINY / name)
    assert found.keys() == expected.keys()
    for tensor, values in expected.items():
        np.testing.assert_array_equal(found[tensor], values, err_msg=tensor)


# Which file: single, indexed, or a clear error.


def save_index(directory, weight_map):
    (directory / INDEX_NAME).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_the_index_decides_tensor_by_tensor(tmp_path):
    """Both shards hold both tensors; the index takes one from each and leaves the rest."""
    for shard, value in (("a.safetensors", 1), ("b.safetensors", 2)):
        save_file({name: np.full(2, value, np.float32) for name in ("x", "y", "z")},
                  tmp_path / shard)
    save_index(tmp_path, {"x": "a.safetensors", "y": "b.safetensors"})
    found = read_all(tmp_path)
    assert {name: values[0] for name, values in found.items()} == {"x": 1, "y": 2}


def test_a_missing_shard_is_named(tmp_path):
    save_index(tmp_path, {"x": "model-00002-of-00002.safetensors"})
    with pytest.raises(FileNotFoundError, match="'x' in model-00002-of-00002.safetensors"):
        list_tensors(tmp_path)


def test_a_tensor_that_the_shard_lacks_is_named(tmp_path):
    save_file({"x": np.zeros(2, np.float32)}, tmp_path / "a.safetensors")
    save_index(tmp_path, {"x": "a.safetensors", "y": "a.safetensors"})
    with pytest.raises(ValueError, match="a.safetensors lacks tensor 'y'"):
        list_tensors(tmp_path)


@pytest.mark.parametrize("shard", ["../secret.safetensors", "/etc/x.safetensors", "weights.bin"])
def test_the_index_cannot_point_elsewhere(tmp_path, shard):
    save_index(tmp_path, {"x": shard})
    with pytest.raises(ValueError, match="not the name of a safetensors file beside it"):
        list_tensors(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"weight_map": {}}',
                                  '{"weight_map": {"x": 1}}', '{"weight_map": "x"}',
                                  "[" * 100_000])
def test_a_broken_index_is_named(tmp_path, text):
    (tmp_path / INDEX_NAME).write_text(text)
    with pytest.raises(ValueError, match=f"{INDEX_NAME} is no index"):
        list_tensors(tmp_path)


def test_a_single_file_may_have_any_name(tmp_path):
    save_file({"x": np.zeros(2, np.float32)}, tmp_path / "weights.safetensors")
    assert [tensor.name for tensor in list_tensors(tmp_path)] == ["x"]


def test_several_files_need_an_index(tmp_path):
    for name in ("a", "b"):
        save_file({name: np.zeros(2, np.float32)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(FileNotFoundError, match=f"no {INDEX_NAME}"):
        list_tensors(tmp_path)


def test_no_weights_at_all(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no weights"):
        list_tensors(tmp_path)


def test_pickles_are_not_read(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    with pytest.raises(FileNotFoundError, match="pytorch_model.bin only: a pickle"):
        list_tensors(tmp_path)


# Truncated and lying files.


def test_a_truncated_file_says_so(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"x": np.zeros(100, np.float32)}, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="truncated.*Download it again"):
            read_header(path)


@pytest.mark.parametrize("length", [0, 3, 1 << 20, (1 << 63) + 5, (1 << 64) - 1])
def test_a_hostile_header_length(tmp_path, length):
    write_raw(tmp_path / "model.safetensors", {"x": entry()}, bytes(8), length=length)
    with pytest.raises(ValueError, match="model.safetensors"):
        list_tensors(tmp_path)


@pytest.mark.parametrize("header", [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000,
    {"x": []}, {"x": None}, {"x": {}}, {"__metadata__": {}, "x": 3},
    {"x": entry(shape=(3,))},  # 12 bytes cannot be 8
    {"x": entry(shape=(-2,))},
    {"x": entry(shape=(1e9,))},
    {"x": entry(shape=(True, 2))},
    {"x": entry(shape=(1 << 62, 1 << 62))},
    {"x": {**entry(), "shape": "2"}},
    {"x": entry(dtype=None)},
    {"x": entry(offsets=(0, 8.0))},
    {"x": entry(offsets=(8, 0))},
    {"x": entry(offsets=(0, 4, 8))},
    {"x": entry(offsets=(-8, 0))},
    {"x": entry(offsets=(4, 12))},  # a gap before it
    {"x": entry(), "y": entry()},  # on top of each other
    {"x": entry(), "y": entry(offsets=(4, 12))},
    {"x": entry(), "y": entry(offsets=(1 << 60, (1 << 60) + 8))},
    {"x": entry("I8", (8,), (8, 0))},
])
def test_a_lying_header(tmp_path, header):
    path = write_raw(tmp_path / "model.safetensors", header, bytes(8))
    with pytest.raises(ValueError, match="model.safetensors has a broken safetensors header"):
        read_header(path)


def test_bytes_after_the_last_tensor(tmp_path):
    path = write_raw(tmp_path / "model.safetensors", {"x": entry()}, bytes(9))
    with pytest.raises(ValueError, match="too long"):
        read_header(path)


def test_an_unknown_type_matters_only_when_it_is_read(tmp_path):
    path = write_raw(tmp_path / "model.safetensors",
                     {"x": entry(), "mask": entry("F8_E4M3", (8,), (8, 16))}, bytes(16))
    good, bad = read_header(path)
    assert good.read().shape == (2,)
    with pytest.raises(ValueError, match="'mask' is stored as F8_E4M3.*F32, F16, BF16"):
        bad.read()


@given(st.data())
def test_damage_is_a_value_error_or_harmless(tmp_path_factory, data):
    """Whatever bytes of a header are changed: one kind of error, or tensors of sane size."""
    path = tmp_path_factory.mktemp("damaged") / "model.safetensors"
    write_raw(path, {"x": entry(), "y": entry("F16", (2, 2), (8, 16))}, bytes(16))
    content = bytearray(path.read_bytes())
    for position in data.draw(st.lists(st.integers(0, len(content) - 17), min_size=1, max_size=4)):
        content[position] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        tensors = read_header(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        assert sum(tensor.read().size for tensor in tensors if tensor.dtype in
                   weight_utils.DTYPES) <= 8
