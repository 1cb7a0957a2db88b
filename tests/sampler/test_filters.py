"""Temperature, top-k, top-p and min-p on rows small enough to see through."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minivllm.model_executor.layers.sampling.filters import (
    apply_min_p,
    apply_temperature,
    apply_top_k,
    apply_top_p,
    nucleus,
)


def log(*probabilities: float) -> np.ndarray:
    return np.log(np.array([probabilities], np.float32))


def kept(logits: np.ndarray) -> list[int]:
    """Return the tokens of the first row that are not cut off."""
    return np.flatnonzero(logits[0] > -np.inf).tolist()


def test_temperature_divides() -> None:
    logits = apply_temperature(np.array([[1.0, 3.0], [1.0, 3.0]], np.float32),
                               np.array([0.5, 2.0], np.float32))
    assert logits.tolist() == [[-4.0, 0.0], [-1.0, 0.0]]


@pytest.mark.parametrize(("k", "tokens"), [
    (1, [1]), (2, [1, 2, 4]), (3, [1, 2, 4]), (5, [*range(5)])])
def test_top_k_keeps_ties_with_the_last(k: int, tokens: list[int]) -> None:
    assert kept(apply_top_k(np.array([[0, 5, 3, 1, 3]], np.float32), np.array([k]))) == tokens


def test_rows_have_a_top_k_each() -> None:
    logits = np.tile(np.array([1, 2, 3, 4], np.float32), (3, 1))
    counts = np.isfinite(apply_top_k(logits, np.array([1, 3, 1]))).sum(axis=1)
    assert counts.tolist() == [1, 3, 1]


@pytest.mark.parametrize(("p", "tokens"), [
    (1e-8, [1]), (0.39, [1]), (0.41, [1, 3]), (0.69, [1, 3]), (0.71, [1, 2, 3]),
    (1.0, [*range(4)])])
def test_top_p_keeps_the_smallest_set_that_reaches_it(p: float, tokens: list[int]) -> None:
    assert kept(apply_top_p(log(0.1, 0.4, 0.2, 0.3), np.array([p]))) == tokens


def test_top_p_takes_the_lowest_ids_of_equals() -> None:
    assert kept(apply_top_p(log(0.2, 0.2, 0.2, 0.2, 0.2), np.array([0.55]))) == [0, 1, 2]


def test_min_p_is_relative_to_the_best() -> None:
    logits = log(0.1, 0.5, 0.26, 0.14)
    assert kept(apply_min_p(logits, np.array([0.5]))) == [1, 2]
    assert kept(apply_min_p(logits, np.array([1.0]))) == [1]


@pytest.mark.parametrize(("p", "size"), [(0.1, 1_000), (0.5, 5_000), (1.0, 10_000)])
def test_nucleus_of_a_flat_row(p: float, size: int) -> None:
    assert nucleus(np.ones(10_000, np.float32), p * 10_000) == (1.0, size)


def test_nucleus_of_a_peaked_row() -> None:
    weights = np.ones(10_000, np.float32)
    weights[7] = 1e6
    assert nucleus(weights, 0.9e6) == (1e6, 1)


@given(st.lists(st.floats(-8, 8, width=16), min_size=1, max_size=50), st.integers(1, 60),
       st.floats(0.01, 0.99))
def test_nucleus_is_that_of_a_full_sort(values: list[float], copies: int, p: float) -> None:
    """Also of rows long enough to be split, and full of equal weights."""
    weights = np.exp(np.tile(np.array(values, np.float32), copies))
    target = p * weights.sum(dtype=np.float64)
    descending = np.sort(weights)[::-1]
    before = np.cumsum(descending, dtype=np.float64) - descending
    size = int((before < target).sum())
    edge, found = nucleus(weights, target)
    assert edge == descending[found - 1]
    # Sums in another order are rounded otherwise: equal unless the target is all but hit.
    hit = before[max(size, found) - 1]
    assert found == size or abs(hit - target) < 1e-5 * target
