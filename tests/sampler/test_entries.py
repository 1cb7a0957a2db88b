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
    get_entries,
    replace_entries,
)

# The entries of one row whose tokens occur 0, 1 and 2 times in the output.
LOGITS = np.array([1.0, -1.0, 2.0])
COUNTS = np.array([0.0, 1.0, 2.0])


def test_bias_is_clamped() -> None:
    assert apply_logit_bias(LOGITS, np.array([5.0, -1e9, 1e9])).tolist() == [6, -101, 102]


def test_ban() -> None:
    assert ban_tokens(LOGITS).tolist() == [-np.inf] * 3


def test_repetition_penalty_pushes_down_on_both_sides_of_zero() -> None:
    assert apply_repetition_penalty(LOGITS, np.full(3, 2.0)).tolist() == [0.5, -2, 1]


def test_frequency_penalty_counts_each_time() -> None:
    assert apply_frequency_penalty(LOGITS, COUNTS, np.full(3, 0.5)).tolist() == [1, -1.5, 1]


def test_presence_penalty_counts_once() -> None:
    assert apply_presence_penalty(LOGITS, COUNTS, np.full(3, 0.5)).tolist() == [1, -1.5, 1.5]


def test_tokens_are_counted_row_by_row() -> None:
    """Row 0 has the prompt 3 and the output 1 1, row 2 the prompt 1 1 and the output 1."""
    counts = count_tokens([0, 2], [[3], [1, 1]], [[1, 1], [1]], vocab_size=4)
    found = zip(counts.rows.tolist(), counts.token_ids.tolist(), counts.amounts.tolist(),
                strict=True)
    assert list(found) == [(0, 1, 2), (0, 3, 0), (2, 1, 1)]


def test_entries_are_replaced_in_a_copy() -> None:
    logits = np.zeros((2, 3), np.float32)
    entries = Entries.of([(0, 2, 0), (1, 0, 0)])
    replaced = replace_entries(logits, entries, np.array([5.0, -np.inf]))
    assert replaced.tolist() == [[0, 0, 5], [-np.inf, 0, 0]]
    assert get_entries(replaced, entries).tolist() == [5, -np.inf]
    assert not logits.any()


@pytest.mark.parametrize("penalty", [1e-300, 1e-30, 2.0])
def test_extreme_penalties_stay_finite(penalty: float) -> None:
    largest = np.finfo(np.float32).max
    logits = np.array([[largest, -largest, 0.0, -np.inf]], np.float32)
    entries = Entries.of([(0, token_id, 0) for token_id in range(4)])
    penalised = apply_repetition_penalty(get_entries(logits, entries), np.full(4, penalty))
    replaced = replace_entries(logits, entries, penalised)
    assert np.isfinite(replaced).tolist() == [[True, True, True, False]]
