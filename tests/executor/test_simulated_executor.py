"""The stand-in model: the test values of its definition, and what it answers a batch with."""

import pytest

from minivllm.config import CacheConfig, ModelConfig, SchedulerConfig
from minivllm.executor.simulated_executor import HashLM, SimulatedExecutor, crc
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import (
    CompletionSequenceGroupOutput,
    ExecuteModelRequest,
    SequenceData,
    SequenceGroupMetadata,
)
from minivllm.transformers_utils.config import PretrainedConfig


def executor(vocab_size: int = 97) -> SimulatedExecutor:
    hf_config = PretrainedConfig(vocab_size=vocab_size, max_position_embeddings=64)
    simulated = SimulatedExecutor(
        ModelConfig("hash-lm", hf_config, skip_tokenizer_init=True),
        CacheConfig(4, num_gpu_blocks_override=16, num_cpu_blocks_override=8),
        SchedulerConfig(64, 8, 64))
    simulated.initialize_cache(*simulated.determine_num_available_blocks())
    return simulated


def group(seq_data: dict[int, SequenceData], is_prompt: bool = False, do_sample: bool = True,
          **params: object) -> SequenceGroupMetadata:
    return SequenceGroupMetadata("r0", is_prompt, seq_data, SamplingParams(**params),
                                 block_tables={}, do_sample=do_sample)


def answer(simulated: SimulatedExecutor,
           metadata: SequenceGroupMetadata) -> list[tuple[int, int, float]]:
    """Return (parent, token, logprob) of each sample."""
    [output] = simulated.execute_model(ExecuteModelRequest([metadata]))
    assert isinstance(output, CompletionSequenceGroupOutput)
    return [(sample.parent_seq_id, token, sample.logprobs[token].logprob)
            for sample in output.samples for token in [sample.output_token]]


@pytest.mark.parametrize(("token_ids", "vocab_size", "j", "token", "logprob"), [
    ([5, 6, 7], 97, 0, 15, -5.65),
    ([5, 6, 7], 97, 1, 4, -5.416),
    ([5, 6, 7], 97, 2, 87, -8.485),
    ([0], 32000, 0, 16233, -5.296),
    ([0], 32000, 1, 22540, -3.642),
])
def test_test_values(token_ids, vocab_size, j, token, logprob):
    assert HashLM(vocab_size).token_and_logprob(crc(token_ids), j) == (token, logprob)


def test_crc_is_that_of_little_endian_words():
    assert crc([5, 6, 7, 0]) == 1931098810
    assert crc([]) == 0


def test_candidates_of_one_sequence_are_distinct():
    assert HashLM(5).distinct_candidates(crc([5, 6, 7]), 4) == [
        (0, -5.65), (1, -5.416), (2, -8.485), (3, -5.851)]
    assert [token for token, _ in HashLM(7).distinct_candidates(crc([1, 2]), 6)] == [
        6, 3, 0, 4, 1, 5]


def test_a_finished_prompt_gives_best_of_samples():
    prompt = {0: SequenceData([5, 6, 7])}
    metadata = group(prompt, is_prompt=True, n=2, best_of=3)
    assert answer(executor(), metadata) == [(0, 15, -5.65), (0, 4, -5.416), (0, 87, -8.485)]


def test_an_unfinished_prompt_gives_none():
    assert answer(executor(), group({0: SequenceData([5, 6, 7])}, True, do_sample=False)) == []


def test_decode_gives_one_sample_for_each_sequence():
    data = {0: SequenceData([5, 6], [7]), 3: SequenceData([5], [6, 7])}
    assert answer(executor(), group(data, n=2)) == [(0, 15, -5.65), (3, 15, -5.65)]


def test_recomputed_siblings_do_not_fork_again():
    data = {0: SequenceData([5, 6], [7]), 3: SequenceData([5, 6], [8])}
    samples = answer(executor(), group(data, is_prompt=True, n=2))
    assert [parent for parent, _, _ in samples] == [0, 3]
    # Also if only one of them is left.
    assert len(answer(executor(), group({3: data[3]}, is_prompt=True, n=2))) == 1


def test_beam_search_takes_the_best_candidates_of_all_beams():
    strong, weak = SequenceData([5, 6, 7]), SequenceData([5, 6, 8])
    weak.cumulative_logprob = -100.0
    metadata = group({0: strong, 1: weak}, use_beam_search=True, n=2, temperature=0.0)
    samples = answer(executor(), metadata)
    assert len(samples) == 4
    assert {parent for parent, _, _ in samples} == {0}
    logprobs = [logprob for _, _, logprob in samples]
    assert logprobs == sorted(logprobs, reverse=True)


def test_a_sequence_is_read_once_and_then_continued():
    simulated = executor()
    data = SequenceData([5, 6, 7])
    for _ in range(20):
        [(_, token, logprob)] = answer(simulated, group({0: data}))
        assert (token, logprob) == HashLM(97).token_and_logprob(crc(data.get_token_ids()), 0)
        data.append_token_id(token, logprob)


def test_forgetting_a_sequence_changes_nothing(monkeypatch):
    monkeypatch.setattr("minivllm.executor.simulated_executor._MAX_REMEMBERED", 1)
    simulated = executor()
    seq_data = {0: SequenceData([5, 6, 7]), 1: SequenceData([0])}
    for _ in range(3):
        samples = answer(simulated, group(seq_data))
        assert len(simulated._crcs) == 1
        for seq_id, token, logprob in samples:
            data = seq_data[seq_id]
            assert (token, logprob) == HashLM(97).token_and_logprob(crc(data.get_token_ids()), 0)
            data.append_token_id(token, logprob)


def test_pools_have_the_sizes_asked_for():
    assert executor().determine_num_available_blocks() == (16, 8)
