"""From log-probabilities to tokens: draws have the right distribution, ties the lowest id."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minivllm.model_executor.layers.sampling.draws import (
    beam_candidates,
    describe_token,
    draw,
    greedy,
    softmax,
    top_indices,
)
from tests.sampler.golden import named_cases, prepare_batch, run_stages

CASES = named_cases("cases_v50")
FILTERS = [name for name, case in CASES.items()
           if case["groups"][0]["expected"]["sampling_type"].startswith("random")]


def keys(seed: int, num: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1 << 64, size=num, dtype=np.uint64)


def chi_squared_limit(degrees: int) -> float:
    """Return what chi-squared exceeds once in about a million (Wilson-Hilferty)."""
    return degrees * (1 - 2 / (9 * degrees) + 4.75 * math.sqrt(2 / (9 * degrees))) ** 3


@pytest.mark.parametrize("name", FILTERS)
def test_draws_follow_the_golden_distribution(name: str) -> None:
    """Whatever filters a case uses: 3,000 draws from each row to sample from."""
    case = CASES[name]
    for group in case["groups"]:
        logits, metadata = prepare_batch([group], case["eos_token_id"])
        probs = run_stages(logits, metadata)["probs"]
        for row in metadata.seq_groups[0].sample_indices:
            expected = np.array([0.0 if value is None else math.exp(value)
                                 for value in group["expected"]["logprobs"][row]])
            draws = draw(probs[row], keys(17, 3_000))
            counts = np.bincount(draws, minlength=len(expected))
            assert not counts[expected == 0].any()
            assert_chi_squared(counts, expected * len(draws))


def assert_chi_squared(counts: np.ndarray, expected: np.ndarray) -> None:
    # Rare tokens count together, so that each class is expected five times or more.
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 5:
        counts, expected = counts[:-1], expected[:-1]
    if len(counts) > 1:
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        assert chi_squared < chi_squared_limit(len(counts) - 1)


def test_the_chi_squared_test_can_fail() -> None:
    with pytest.raises(AssertionError):
        assert_chi_squared(np.array([5300, 4700]), np.array([5000.0, 5000.0]))


def test_every_filter_is_drawn_from() -> None:
    used = {name for case in FILTERS for group in CASES[case]["groups"] for name in group["params"]}
    assert {"temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty",
            "repetition_penalty"} <= used


def test_draw_never_takes_what_is_cut_off() -> None:
    """Tokens 0, 2 and 5 are cut off."""
    probs = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0], np.float32)
    assert set(draw(probs, keys(3, 200))) == {1, 3, 4}


def test_draws_spread_over_a_large_vocabulary() -> None:
    draws = np.array(draw(np.full(50_000, 2e-5, np.float32), keys(5, 1_000)))
    assert_chi_squared(np.bincount(draws // 10_000, minlength=5), np.full(5, 200.0))
    assert len(set(draws)) > 950


def test_draws_with_neighbouring_keys_do_not_go_together() -> None:
    probs = np.full(4, 0.25, np.float32)
    draws = np.array(draw(probs, np.arange(40_000, dtype=np.uint64)))
    assert_chi_squared(np.bincount(draws[1:] * 4 + draws[:-1], minlength=16),
                       np.full(16, 39_999 / 16))


@given(st.lists(st.sampled_from([0.0, 1e-30, 1e-6, 0.25, 1.0]), max_size=1500),
       st.integers(0, (1 << 64) - 1))
def test_a_token_that_is_drawn_has_a_probability(weights: list[float], key: int) -> None:
    probs = np.array([*weights, 0.5], np.float32)
    [token_id] = draw(probs, np.array([key], np.uint64))
    assert probs[token_id] > 0


def test_rounding_hardly_ever_changes_a_draw() -> None:
    """Logits that differ by 1e-5, as in another batch or by another backend: the same tokens."""
    rng = np.random.default_rng(11)
    logits = rng.normal(0, 2, (1, 50_000)).astype(np.float32)
    noisy = logits + rng.uniform(-1e-5, 1e-5, logits.shape).astype(np.float32)
    probs = [softmax(rows)[0][0] for rows in (logits, noisy)]
    # Two waiting times are so close to each other once in some 50,000 draws.
    assert draw(probs[0], keys(13, 500)) == draw(probs[1], keys(13, 500))
    # The boundaries of the cumulative distribution have moved enough to change every 500th draw.
    cdfs = [np.cumsum(row, dtype=np.float64) for row in probs]
    uniforms = rng.random(20_000)
    inverted = [np.searchsorted(cdf, uniforms * cdf[-1], side="right") for cdf in cdfs]
    assert (inverted[0] != inverted[1]).mean() > 1 / 500


def test_greedy_takes_the_lowest_of_equals() -> None:
    logits = np.array([[1, 1, 0], [0, 2, 2]], np.float32)
    assert greedy(softmax(logits)[1]) == [0, 1]
    assert greedy(softmax(logits[:1])[1]) == [0]


def test_softmax_cuts_off_and_sums_to_one() -> None:
    probs, logprobs = softmax(np.array([[1.0, -np.inf, 3.0]], np.float32))
    assert (probs[0, 1], logprobs[0, 1]) == (0, -np.inf)
    assert probs.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.exp(logprobs), probs, rtol=1e-6)


@pytest.mark.parametrize("num", [1, 2, 3, 4, 5, 9])
def test_top_indices_is_the_head_of_a_stable_sort(num: int) -> None:
    values = np.array([2.0, -np.inf, 7.0, 2.0, 7.0, 2.0, -1.0])
    expected = np.argsort(-values, kind="stable")[:num]
    assert top_indices(values, num).tolist() == expected.tolist()


def test_describe_token_counts_ranks_from_one() -> None:
    logprobs = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))
    described = describe_token(logprobs, 2, 2)
    assert {token_id: entry.rank for token_id, entry in described.items()} == {2: 3, 1: 1, 3: 2}
    assert described[2].logprob == pytest.approx(math.log(0.2))
    assert list(describe_token(logprobs, 2, 0)) == [2]


def test_beam_candidates_come_from_all_beams() -> None:
    """The second beam is far behind, so its best token ranks below two of the first."""
    logprobs = np.log(np.array([[0.5, 0.4, 0.1], [0.9, 0.05, 0.05]], np.float32))
    candidates = beam_candidates(logprobs, np.array([-1.0, -2.0]), 4)
    assert candidates == [(0, 0), (0, 1), (1, 0), (0, 2)]


def test_a_vocabulary_may_be_smaller_than_twice_the_beam_width() -> None:
    logprobs = np.log(np.array([[0.6, 0.3, 0.1]], np.float32))
    assert beam_candidates(logprobs, np.zeros(1), 8) == [(0, 0), (0, 1), (0, 2)]


def test_a_beam_never_takes_what_is_cut_off() -> None:
    _, logprobs = softmax(np.array([[1.0, -np.inf, 0.0]], np.float32))
    assert beam_candidates(logprobs, np.zeros(1), 4) == [(0, 0), (0, 2)]
