"""Which rows of a batch become logits."""

import pytest

from minivllm.model_executor.sampling_metadata import SamplingMetadata, SamplingTensors
from minivllm.sampling_params import SamplingParams
from minivllm.utils import InternalError
from tests.sampler.harness import metadata_of


def test_one_row_for_each_sequence() -> None:
    """A prompt of 5 tokens, then two decodes: the last token of each sequence."""
    metadata = SamplingMetadata.prepare(
        [metadata_of("p", [1, 2, 3, 4, 5]), metadata_of("a", [1, 2], [[8], [9]]),
         metadata_of("b", [1], [[7]])],
        [5, 1, 1])
    assert metadata.selected_token_indices.tolist() == [4, 5, 6, 7]
    assert [list(group.sample_indices) for group in metadata.seq_groups] == [[0], [1, 2], [3]]
    assert metadata.request_ids == ["p", "a", "a", "b"]


def test_a_chunk_that_is_not_the_last_has_no_row() -> None:
    metadata = SamplingMetadata.prepare(
        [metadata_of("p", [1, 2, 3, 4, 5], chunk=3, do_sample=False), metadata_of("q", [6, 7])],
        [3, 2])
    assert metadata.selected_token_indices.tolist() == [4]
    assert [group.do_sample for group in metadata.seq_groups] == [False, True]


def test_prompt_rows_come_before_the_row_to_sample_from() -> None:
    params = SamplingParams(prompt_logprobs=0)
    metadata = SamplingMetadata.prepare([metadata_of("p", [1, 2, 3], params=params)], [3])
    group = metadata.seq_groups[0]
    assert metadata.selected_token_indices.tolist() == [0, 1, 2]
    assert (list(group.prompt_logprob_indices), list(group.sample_indices)) == ([0, 1], [2])
    assert group.next_prompt_tokens == [2, 3]


def test_each_chunk_predicts_the_tokens_after_it() -> None:
    params = SamplingParams(prompt_logprobs=0)
    first = metadata_of("p", [1, 2, 3, 4, 5], params=params, chunk=3, do_sample=False)
    assert SamplingMetadata.prepare([first], [3]).seq_groups[0].next_prompt_tokens == [2, 3, 4]
    second = metadata_of("p", [1, 2, 3, 4, 5], params=params, computed=3, chunk=2)
    assert SamplingMetadata.prepare([second], [2]).seq_groups[0].next_prompt_tokens == [5]


def test_cached_tokens_have_no_row() -> None:
    """Of a chunk of 5 the first 3 come from the prefix cache."""
    params = SamplingParams(prompt_logprobs=0)
    metadata = SamplingMetadata.prepare([metadata_of("p", [1, 2, 3, 4, 5], params=params)], [2])
    assert metadata.seq_groups[0].next_prompt_tokens == [5]
    assert metadata.selected_token_indices.tolist() == [0, 1]


def test_a_chunk_may_be_cached_as_a_whole() -> None:
    metadata = SamplingMetadata.prepare(
        [metadata_of("p", [1, 2, 3, 4], chunk=2, do_sample=False), metadata_of("q", [6, 7])],
        [0, 2])
    assert metadata.selected_token_indices.tolist() == [1]


def test_nothing_to_sample_from_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="request p"):
        SamplingMetadata.prepare([metadata_of("p", [1, 2])], [0])


def test_a_recomputed_request_has_no_prompt_rows() -> None:
    """Its prompt log-probabilities were given out before the preemption."""
    params = SamplingParams(prompt_logprobs=0)
    recomputed = metadata_of("p", [1, 2, 3], [[8, 9]], params=params, is_prompt=True, chunk=5)
    metadata = SamplingMetadata.prepare([recomputed], [5])
    assert metadata.selected_token_indices.tolist() == [4]
    assert not metadata.seq_groups[0].before_first_token


def test_several_sequences_recompute_side_by_side() -> None:
    params = SamplingParams(n=2)
    recomputed = metadata_of("p", [1, 2, 3], [[8], [9]], params=params, is_prompt=True, chunk=4)
    metadata = SamplingMetadata.prepare([recomputed, metadata_of("q", [5], [[6]])], [4, 1])
    assert metadata.selected_token_indices.tolist() == [3, 7, 8]
    assert not metadata.seq_groups[0].before_first_token


def test_an_empty_batch_has_no_rows() -> None:
    assert SamplingMetadata.prepare([], []).selected_token_indices.shape == (0,)


def test_tensors_say_in_one_way_what_changes_nothing() -> None:
    params = [SamplingParams(temperature=0.0), SamplingParams(top_k=99, top_p=0.9999999),
              SamplingParams(temperature=2.0, top_k=3, top_p=0.5, min_p=0.25)]
    metadata = SamplingMetadata.prepare(
        [metadata_of(str(i), [1], params=params[i]) for i in range(3)], [1, 1, 1])
    tensors = SamplingTensors.from_sampling_metadata(metadata, vocab_size=10)
    assert tensors.temperatures.tolist() == [1, 1, 2]
    assert tensors.top_ks.tolist() == [10, 10, 3]
    assert tensors.top_ps.tolist() == [1, 1, 0.5]
    assert tensors.min_ps.tolist() == [0, 0, 0.25]


@pytest.mark.parametrize(("num_rows", "slabs"), [
    (1, [["p"], ["a"], ["b"], ["c", "d"]]), (2, [["p", "a"], ["b", "c", "d"]]),
    (4, [["p", "a", "b"], ["c", "d"]]), (100, [["p", "a", "b", "c", "d"]])])
def test_slabs(num_rows: int, slabs: list[list[str]]) -> None:
    """Groups with 1, 2, 1, 0 and 1 rows: each whole, in order, with its own rows."""
    whole = SamplingMetadata.prepare(
        [metadata_of("p", [1, 2]), metadata_of("a", [1, 2], [[8], [9]]), metadata_of("b", [1]),
         metadata_of("c", [1, 2, 3], chunk=2, do_sample=False), metadata_of("d", [1])],
        [2, 1, 1, 2, 1])
    parts = whole.slabs(num_rows)
    assert [[group.request_id for group in part.seq_groups] for _, part in parts] == slabs
    rows = list(range(5))
    moved = [rows[where][row] for where, part in parts for group in part.seq_groups
             for row in group.sample_indices]
    assert moved == rows
    assert [index for _, part in parts for index in part.selected_token_indices] == \
        whole.selected_token_indices.tolist()
