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


def test_nucleus_of_a_flat_row_needs_the_wider_looks() -> None:
    """A peaked row is done at the first look; flat ones go on, up to the whole row."""
    weights = np.ones((3, 10_000), np.float32)
    weights[0, 7] = 1e6
    edge, size = nucleus(weights, np.array([0.9, 0.5, 1.0]) * weights.sum(axis=1))
    assert size.tolist() == [1, 5_000, 10_000]
    assert edge.tolist() == [1e6, 1.0, 1.0]


@given(st.lists(st.floats(-8, 8, width=16), min_size=1, max_size=300), st.floats(0.01, 0.99))
def test_nucleus_is_that_of_a_full_sort(values: list[float], p: float) -> None:
    weights = np.exp(np.array([values], np.float32))
    edge, size = nucleus(weights, p * weights.sum(axis=1))
    ordered = np.sort(weights[0])[::-1]
    before = np.cumsum(ordered, dtype=np.float64) - ordered
    expected = int((before < p * weights[0].sum()).sum())
    assert (edge[0], size[0]) == (ordered[expected - 1], expected)
