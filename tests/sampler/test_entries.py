"""Bias, bans and penalties: single entries of the logits."""

import numpy as np
import pytest

from minivllm.model_executor.layers.sampling.entries import (
    Entries,
    apply_frequency_penalty,
    apply_logit_bias,
    apply_presence_penalty,
    apply_repetition_penalty,
    ban_tokens,
    count_tokens,
)

LOGITS = np.array([[1.0, -1.0, 2.0, 0.0], [1.0, -1.0, 2.0, 0.0]], np.float32)
# The second row's text is 0 1 1.
COUNTS = count_tokens([1], [[0, 1, 1]], vocab_size=4)


def test_bias_is_clamped() -> None:
    biased = apply_logit_bias(LOGITS, Entries.of([(0, 1, 5.0), (1, 2, -1e9)]))
    assert biased.tolist() == [[1, 4, 2, 0], [1, -1, -98, 0]]


def test_ban() -> None:
    banned = ban_tokens(LOGITS, Entries.of([(0, 3, -np.inf)]))
    assert banned.tolist() == [[1, -1, 2, -np.inf], [1, -1, 2, 0]]


def test_repetition_penalty_counts_once_and_pushes_down_on_both_sides_of_zero() -> None:
    penalised = apply_repetition_penalty(LOGITS, COUNTS, np.array([1.0, 2.0]))
    assert penalised.tolist() == [[1, -1, 2, 0], [0.5, -2, 2, 0]]


def test_frequency_penalty_counts_each_time() -> None:
    penalised = apply_frequency_penalty(LOGITS, COUNTS, np.array([0.0, 0.5]))
    assert penalised.tolist() == [[1, -1, 2, 0], [0.5, -2, 2, 0]]


def test_presence_penalty_counts_once() -> None:
    penalised = apply_presence_penalty(LOGITS, COUNTS, np.array([0.0, 0.5]))
    assert penalised.tolist() == [[1, -1, 2, 0], [0.5, -1.5, 2, 0]]


def test_nothing_is_changed_in_place() -> None:
    before = LOGITS.copy()
    apply_presence_penalty(LOGITS, COUNTS, np.array([0.0, 0.5]))
    assert np.array_equal(LOGITS, before)


@pytest.mark.parametrize("penalty", [1e-300, 1e-30, 2.0])
def test_extreme_penalties_stay_finite(penalty: float) -> None:
    largest = np.finfo(np.float32).max
    logits = np.array([[largest, -largest, 0.0, -np.inf]], np.float32)
    seen = count_tokens([0], [[0, 1, 2, 3]], vocab_size=4)
    penalised = apply_repetition_penalty(logits, seen, np.array([penalty]))
    assert np.isfinite(penalised).tolist() == [[True, True, True, False]]
