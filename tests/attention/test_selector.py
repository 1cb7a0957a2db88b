"""Which backend is chosen."""

import logging
import sys

import pytest

from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.attention.selector import get_attn_backend
from minivllm.config import ModelConfig
from minivllm.transformers_utils.config import PretrainedConfig


def model_config(hidden_size):
    return ModelConfig("m", PretrainedConfig(hidden_size=hidden_size, max_position_embeddings=64))


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch):
    monkeypatch.delenv("MINIVLLM_ATTENTION_BACKEND", raising=False)


@pytest.mark.parametrize(("name", "hidden_size", "expected"), [
    ("numpy", 4096, NumpyAttentionBackend),
    ("numba", 64, NumbaAttentionBackend),
    ("auto", 64, NumpyAttentionBackend),
    ("auto", 576, NumbaAttentionBackend),
    (None, 64, NumpyAttentionBackend),
    (None, 576, NumbaAttentionBackend)])
def test_by_name_or_by_size(name, hidden_size, expected):
    assert get_attn_backend(name, model_config(hidden_size)) is expected


def test_the_variable_stands_in_for_no_name(monkeypatch):
    monkeypatch.setenv("MINIVLLM_ATTENTION_BACKEND", "numpy")
    assert get_attn_backend(None, model_config(576)) is NumpyAttentionBackend
    assert get_attn_backend("numba", model_config(576)) is NumbaAttentionBackend


def test_a_class_of_the_users_own():
    class Mine(NumpyAttentionBackend):
        pass

    assert get_attn_backend(Mine, model_config(576)) is Mine


@pytest.mark.parametrize("source", ["argument", "variable"])
def test_an_unknown_name_lists_the_known(monkeypatch, source):
    if source == "variable":
        monkeypatch.setenv("MINIVLLM_ATTENTION_BACKEND", "flash")
    with pytest.raises(ValueError, match="'flash' does not exist; choose from numpy, numba, auto"):
        get_attn_backend("flash" if source == "argument" else None, model_config(64))


@pytest.mark.parametrize("backend", [5, int, NumpyAttentionBackend()])
def test_what_is_no_backend(backend):
    with pytest.raises(ValueError, match="or pass a subclass of AttentionBackend"):
        get_attn_backend(backend, model_config(64))


def test_without_numba_auto_falls_back_with_a_warning(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "minivllm.attention.backends.numba_backend", None)
    with caplog.at_level(logging.WARNING, logger="minivllm"):
        assert get_attn_backend("auto", model_config(576)) is NumpyAttentionBackend
    assert len(caplog.records) == 1
    assert "falls back to NumPy" in caplog.text


def test_without_numba_its_name_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "minivllm.attention.backends.numba_backend", None)
    with pytest.raises(ImportError):
        get_attn_backend("numba", model_config(576))
