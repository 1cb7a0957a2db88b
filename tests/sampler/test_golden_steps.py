"""Every golden sampling step: alone, in its batch, and in the batch in other orders."""

from typing import Any

import numpy as np
import pytest

from minivllm.model_executor.layers.logits_processor import apply_logit_biases
from minivllm.model_executor.layers.sampler import Sampler
from minivllm.model_executor.layers.sampling.draws import describe_token
from minivllm.sequence import Logprob
from tests.sampler.golden import named_cases, prepare_batch, run_stages

CASES = named_cases("cases_v50") | named_cases("cases_v1000")


def orders(num_groups: int) -> list[list[int]]:
    """Return every rotation of the batch, forwards and backwards."""
    forwards = [[*range(i, num_groups), *range(i)] for i in range(num_groups)]
    return forwards + [order[::-1] for order in forwards if num_groups > 1]


def test_there_are_all_cases() -> None:
    assert len(CASES) == 82
    kinds = {group["expected"]["sampling_type"] for case in CASES.values()
             for group in case["groups"]}
    assert kinds == {"greedy", "random", "random_seed", "beam"}


@pytest.mark.parametrize("name", CASES)
def test_each_group_alone(name: str) -> None:
    case = CASES[name]
    for group in case["groups"]:
        check_batch([group], case["eos_token_id"])


@pytest.mark.parametrize("name", CASES)
def test_whole_batch_in_every_order(name: str) -> None:
    case = CASES[name]
    for order in orders(len(case["groups"])):
        check_batch([case["groups"][i] for i in order], case["eos_token_id"])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case["groups"]) > 1])
def test_company_changes_no_bit(name: str) -> None:
    case = CASES[name]
    batch_logits, metadata = prepare_batch(case["groups"], case["eos_token_id"])
    together = run_stages(batch_logits, metadata)["logprobs"]
    alone = [run_stages(*prepare_batch([group], case["eos_token_id"]))["logprobs"]
             for group in case["groups"]]
    assert np.array_equal(together, np.concatenate(alone))


def check_batch(groups: list[dict[str, Any]], eos_token_id: int) -> None:
    logits, metadata = prepare_batch(groups, eos_token_id)
    stages = run_stages(logits, metadata)
    # Anew, as the generators belong to the metadata.
    outputs = Sampler()(apply_logit_biases(logits, metadata), metadata).outputs
    for group, rows, output in zip(groups, metadata.seq_groups, outputs, strict=True):
        expected = group["expected"]
        first = min(rows.prompt_logprob_indices.start, rows.sample_indices.start)
        own = {name: values[first:first + rows.num_rows] for name, values in stages.items()}
        check_stages(own, expected)
        check_distribution(own["logprobs"], expected)
        check_prompt_logprobs(output.prompt_logprobs, expected["prompt_logprobs"])
        sample_rows = stages["logprobs"][rows.sample_indices.start:rows.sample_indices.stop]
        if expected["sampled_is_deterministic"]:
            seq_ids = [seq["seq_id"] for seq in group["seqs"]]
            assert [sample.output_token for sample in output.samples] == \
                expected["sampled_token_ids"]
            assert [seq_ids.index(sample.parent_seq_id) for sample in output.samples] == \
                expected["parents"]
            described = [sample.logprobs for sample in output.samples]
        else:
            check_draws(output.samples, sample_rows, group, rows.before_first_token)
            described = [describe_token(sample_rows[parent], token_id,
                                        rows.sampling_params.logprobs or 0)
                         for parent, token_id in zip(expected["parents"],
                                                     expected["sampled_token_ids"], strict=True)]
        for got, entries in zip(described, expected["sample_logprobs"], strict=True):
            check_entries(got, entries)


def check_stages(own: dict[str, np.ndarray], expected: dict[str, Any]) -> None:
    for name, rows in expected.get("stages", {}).items():  # small vocabulary only
        if rows is not None:
            assert_close_logprobs(own[name], as_array(rows))


def check_distribution(logprobs: np.ndarray, expected: dict[str, Any]) -> None:
    """Compare support, probabilities and log-probabilities of each row."""
    for row, golden in zip(logprobs, expected["probs"], strict=True):
        support = np.flatnonzero(row > -np.inf)
        if golden["support"] == "all":
            assert len(support) == len(row)
        else:
            assert support.tolist() == golden["support"]
        if golden["values"] is not None:
            np.testing.assert_allclose(np.exp(row[support]), golden["values"], atol=1e-6, rtol=0)
    if "logprobs" in expected:
        assert_close_logprobs(logprobs, as_array(expected["logprobs"]))
    for row, top in zip(logprobs, expected.get("top_logprobs", ()), strict=False):
        ids = [token_id for token_id, _ in top]
        assert_close_logprobs(row[ids], as_array([value for _, value in top]))


def check_draws(samples: list, sample_rows: np.ndarray, group: dict[str, Any],
                before_first_token: bool) -> None:
    """A draw is of the right parent and of a token that is not cut off."""
    seq_ids = [seq["seq_id"] for seq in group["seqs"]]
    params = group["params"]
    copies = params.get("best_of", params.get("n", 1)) if before_first_token else 1
    assert [sample.parent_seq_id for sample in samples] == \
        [seq_id for seq_id in seq_ids for _ in range(copies)]
    for sample in samples:
        assert sample_rows[seq_ids.index(sample.parent_seq_id)][sample.output_token] > -np.inf


def check_prompt_logprobs(got: list[dict[int, Logprob]] | None,
                          expected: list[list] | None) -> None:
    assert (got is None) == (expected is None)
    for entries, golden in zip(got or (), expected or (), strict=True):
        check_entries(entries, golden)


def check_entries(got: dict[int, Logprob], expected: list[list]) -> None:
    """Compare what is said of one token and its alternatives, which come in order."""
    # The token itself comes first, also if it is cut off; other cut-off tokens can be any.
    finite = [entry for entry in expected if entry[1] is not None]
    assert list(got)[0] == expected[0][0]
    assert got[expected[0][0]].rank == expected[0][2]
    assert [token_id for token_id, logprob in got.items() if logprob.logprob > -np.inf] == \
        [token_id for token_id, _, _ in finite]
    assert [got[token_id].rank for token_id, _, _ in finite] == [rank for _, _, rank in finite]
    np.testing.assert_allclose([got[token_id].logprob for token_id, _, _ in finite],
                               [value for _, value, _ in finite], atol=1e-4, rtol=0)
    if expected[0][1] is not None:
        assert len(got) == len(expected)
    else:  # the token may or may not have been chosen a second time, as one of those cut off
        assert abs(len(got) - len(expected)) <= 1


def as_array(values: Any) -> np.ndarray:
    return np.array([as_array(value) if isinstance(value, list) else
                     -np.inf if value is None else value for value in values])


def assert_close_logprobs(got: np.ndarray, expected: np.ndarray) -> None:
    assert np.array_equal(np.isneginf(got), np.isneginf(expected))
    finite = np.isfinite(expected)
    np.testing.assert_allclose(got[finite], expected[finite], atol=1e-4, rtol=0)
