"""The recorded weights are those that attention computes with."""

from pathlib import Path

import numpy as np
import pytest

from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.stepper import Stepper
from minivllm.tracing.attention import record_attention

BLOCK_SIZE, HEAD_SIZE = 4, 8


@pytest.mark.parametrize("sliding_window", [None, 5])
def test_weights_times_values_are_the_output(sliding_window: int | None):
    """Two sequences of 11 and 3 tokens over scattered blocks, 4 query heads, 2 key heads."""
    rng = np.random.default_rng(0)
    kv_cache = rng.normal(size=(2, 6, 2, BLOCK_SIZE, HEAD_SIZE)).astype(np.float32)
    query = rng.normal(size=(2, 4, HEAD_SIZE)).astype(np.float32)
    block_tables = np.array([[5, 0, 3], [2, 0, 0]], dtype=np.int32)
    seq_lens = np.array([11, 3], dtype=np.int32)
    for head in range(4):
        backend = record_attention(layer=0, head=head)
        out = np.empty_like(query)
        backend.paged_attention(query, kv_cache, block_tables, seq_lens, 0.3, sliding_window, out)
        expected = np.empty_like(query)
        NumpyAttentionBackend.paged_attention(query, kv_cache, block_tables, seq_lens, 0.3,
                                              sliding_window, expected)
        np.testing.assert_array_equal(out, expected)
        weights = backend.take_weights()
        assert [len(row) for row in weights] == [11, 3]
        for i, row in enumerate(weights):
            values = [kv_cache[1, block_tables[i, p // BLOCK_SIZE], head // 2, p % BLOCK_SIZE]
                      for p in range(seq_lens[i])]
            np.testing.assert_allclose(row @ np.stack(values), out[i, head], atol=1e-6)
        assert backend.take_weights() == []


def test_the_chosen_layer_is_recorded():
    rng = np.random.default_rng(0)
    caches = [rng.normal(size=(2, 2, 1, BLOCK_SIZE, HEAD_SIZE)).astype(np.float32)
              for _ in range(3)]
    query = rng.normal(size=(1, 1, HEAD_SIZE)).astype(np.float32)
    args = (np.array([[1]], dtype=np.int32), np.array([3], dtype=np.int32), 1.0, None,
            np.empty_like(query))
    rows = {}
    for layer in range(3):
        backend = record_attention(layer=layer)
        for _step in range(2):
            for kv_cache in caches:
                backend.paged_attention(query, kv_cache, *args)
        (rows[layer],) = backend.take_weights()
    keys = caches[1][0, 1, 0, :3]
    scores = np.exp(keys @ query[0, 0])
    np.testing.assert_allclose(rows[1], scores / scores.sum(), rtol=1e-5)
    assert not np.allclose(rows[0], rows[1])


@pytest.fixture(scope="module")
def walked(tiny_dir: Path) -> Stepper:
    s = Stepper(["Hello, my name is", "The future"], model=str(tiny_dir / "llama-mha"),
                block_size=4, num_gpu_blocks=64, attention_backend=record_attention(1, 2))
    s.step(3)
    return s


def test_a_picture_of_what_a_step_reads(walked: Stepper, tmp_path: Path):
    rows = walked.attention("r0").data["r0"]
    seq = walked.view.find("r0")[0]
    assert len(rows) == seq.num_computed_tokens
    assert sum(row["weight"] for row in rows) == pytest.approx(1, abs=1e-4)
    assert [row["block"] for row in rows[::4]] == list(seq.block_table[:len(rows[::4])])
    text = walked.attention("r0").text(100)
    assert text.startswith("attention  step 2, layer 1, head 2: which slots the newest token reads")
    assert f"0 → {seq.block_table[0]}" in text
    walked.save(tmp_path / "t.json")
    assert Stepper.load(tmp_path / "t.json")[2].attention("r0").data == \
        walked.attention("r0").data


def test_a_prefill_has_no_decoding_token(walked: Stepper):
    with pytest.raises(ValueError, match="look at a step that decodes"):
        walked[0].attention()


def test_what_is_not_recorded_cannot_be_drawn():
    s = Stepper([[5, 6, 7]])
    s.step(2)
    with pytest.raises(ValueError, match=r"attention_backend=record_attention\(layer, head\)"):
        s.attention("r0")


@pytest.mark.parametrize(("layer", "head", "message"), [
    (-1, 0, "layer -1 cannot be recorded"), (99, 0, "layer 99 cannot be recorded"),
    (0, 99, "head 99 cannot be recorded: the model has 4, counted from 0")])
def test_layers_and_heads_that_do_not_exist(tiny_dir: Path, layer: int, head: int, message: str):
    with pytest.raises(ValueError, match=message):
        Stepper(["Hello"], model=str(tiny_dir / "llama-mha"), num_gpu_blocks=16,
                attention_backend=record_attention(layer, head))
