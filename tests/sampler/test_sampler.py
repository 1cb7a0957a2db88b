"""The sampler as a whole: order of its stages, seeds, company, safety, broken logits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minivllm.model_executor.layers.sampler import (
    Sampler,
    UnusableLogitsError,
    apply_filters,
    apply_min_tokens,
    apply_penalties,
)
from minivllm.model_executor.layers.sampling.draws import softmax
from minivllm.model_executor.sampling_metadata import SamplingMetadata, SamplingTensors
from minivllm.sampling_params import SamplingParams
from tests.sampler.harness import metadata_of, sample_decodes, tokens

VOCAB_SIZE = 40


def random_logits(num_rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3, (num_rows, VOCAB_SIZE)).astype(np.float32)


class TestSeeds:
    """A request draws from its own generator, one number for each token."""

    params = SamplingParams(temperature=0.8, seed=42)

    def alone(self) -> list[list[int]]:
        logits = random_logits(1)
        generator = np.random.default_rng(42)
        return [tokens(sample_decodes(logits, [self.params], [generator]))[0] for _ in range(8)]

    @pytest.mark.parametrize("neighbour", [
        SamplingParams(), SamplingParams(seed=7), SamplingParams(temperature=0.0),
        SamplingParams(top_k=2, top_p=0.5, repetition_penalty=1.5, seed=42)])
    @pytest.mark.parametrize("place", [0, 1])
    def test_neighbours_change_nothing(self, neighbour: SamplingParams, place: int) -> None:
        logits = random_logits(2)
        logits[place] = random_logits(1)[0]
        params = [neighbour, neighbour]
        params[place] = self.params
        generators = [np.random.default_rng(1), np.random.default_rng(1)]
        generators[place] = np.random.default_rng(42)
        drawn = [tokens(sample_decodes(logits, params, generators))[place] for _ in range(8)]
        assert drawn == self.alone()

    def test_one_uniform_for_each_token(self) -> None:
        generator = np.random.default_rng(42)
        sample_decodes(random_logits(1), [self.params], [generator])
        expected = np.random.default_rng(42).random(2)[1]
        assert generator.random() == expected

    def test_a_chunk_that_is_not_the_last_draws_nothing(self) -> None:
        generator = np.random.default_rng(42)
        chunk = metadata_of("p", [1, 2, 3], params=self.params, chunk=2, do_sample=False,
                            generator=generator)
        metadata = SamplingMetadata.prepare([chunk], [2])
        output = Sampler()(np.zeros((0, VOCAB_SIZE), np.float32), metadata)
        assert tokens(output) == [[]]
        assert generator.random() == np.random.default_rng(42).random()

    def test_a_prompt_gives_best_of_samples(self) -> None:
        params = SamplingParams(n=2, best_of=5, seed=3)
        prompt = metadata_of("p", [1, 2], params=params, generator=np.random.default_rng(3))
        output = Sampler()(random_logits(1), SamplingMetadata.prepare([prompt], [2]))
        assert [sample.parent_seq_id for sample in output[0].samples] == [0] * 5
        assert len(set(tokens(output)[0])) > 1

    def test_a_recomputed_prompt_gives_one_sample_for_each_sequence(self) -> None:
        params = SamplingParams(n=3, seed=3)
        outputs = [[5], [6], [7]]
        decode = metadata_of("p", [1, 2], outputs, params=params,
                             generator=np.random.default_rng(3))
        recompute = metadata_of("p", [1, 2], outputs, params=params, is_prompt=True, chunk=3,
                                generator=np.random.default_rng(3))
        logits = random_logits(3)
        expected = Sampler()(logits, SamplingMetadata.prepare([decode], [1]))
        got = Sampler()(logits, SamplingMetadata.prepare([recompute], [3]))
        assert tokens(got) == tokens(expected)
        assert [sample.parent_seq_id for sample in got[0].samples] == [0, 1, 2]


class TestPenalties:
    def test_repetition_looks_at_the_prompt_frequency_and_presence_do_not(self) -> None:
        """First token of a prompt 3 3 3: presence and frequency have nothing to count."""
        logits = np.zeros((3, VOCAB_SIZE), np.float32)
        logits[:, 3] = 2.0
        prompts = [metadata_of(str(i), [3, 3, 3], params=params) for i, params in enumerate([
            SamplingParams(repetition_penalty=2.0), SamplingParams(frequency_penalty=2.0),
            SamplingParams(presence_penalty=2.0)])]
        penalised = apply_penalties(logits, SamplingMetadata.prepare(prompts, [3, 3, 3]))
        assert penalised[:, 3].tolist() == [1.0, 2.0, 2.0]

    def test_a_recompute_counts_the_same_tokens(self) -> None:
        params = SamplingParams(presence_penalty=1.0, frequency_penalty=0.5,
                                repetition_penalty=1.3)
        decode = metadata_of("p", [1, 2], [[2, 5, 5]], params=params)
        recompute = metadata_of("p", [1, 2], [[2, 5, 5]], params=params, is_prompt=True, chunk=5)
        logits = random_logits(1)
        assert np.array_equal(apply_penalties(logits, SamplingMetadata.prepare([decode], [1])),
                              apply_penalties(logits, SamplingMetadata.prepare([recompute], [5])))

    def test_prompt_rows_are_left_alone(self) -> None:
        params = SamplingParams(repetition_penalty=2.0, min_tokens=2, prompt_logprobs=0,
                                stop_token_ids=[4])
        metadata = SamplingMetadata.prepare([metadata_of("p", [1, 2, 3], params=params)], [3])
        logits = random_logits(3)
        changed = apply_penalties(apply_min_tokens(logits, metadata), metadata)
        assert np.array_equal(changed[:2], logits[:2])
        assert np.flatnonzero(changed[2] != logits[2]).tolist() == [1, 2, 3, 4]


class TestMinTokens:
    def test_every_stop_token_is_banned_until_there_are_enough(self) -> None:
        """All end-of-sequence tokens of generation_config.json, not only the first."""
        params = SamplingParams(temperature=0.0, min_tokens=2)
        params.update_from_generation_config({"eos_token_id": [5, 6]})
        logits = random_logits(1)
        logits[0, [5, 6]] = 50.0
        for output, banned in ([3], True), ([3, 3], False):
            group = metadata_of("p", [1], [output], params=params)
            token_id = tokens(Sampler()(logits, SamplingMetadata.prepare([group], [1])))[0][0]
            assert (token_id not in (5, 6)) == banned

    def test_stop_tokens_outside_the_vocabulary_do_not_matter(self) -> None:
        params = SamplingParams(min_tokens=5, stop_token_ids=[-1, VOCAB_SIZE, 10**9])
        metadata = SamplingMetadata.prepare([metadata_of("p", [1], params=params)], [1])
        logits = random_logits(1)
        assert np.array_equal(apply_min_tokens(logits, metadata), logits)


class TestBrokenLogits:
    """One clear error names the requests, before anything is drawn for others."""

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("params", [SamplingParams(temperature=0.0), SamplingParams(top_p=0.5),
                                        SamplingParams(n=2, best_of=2, use_beam_search=True,
                                                       temperature=0.0)])
    def test_nan_and_infinity(self, bad: float, params: SamplingParams) -> None:
        logits = random_logits(3)
        logits[1, 4] = bad
        generators = [np.random.default_rng(i) for i in range(3)]
        with pytest.raises(UnusableLogitsError, match="r1: there is NaN or infinity") as caught:
            sample_decodes(logits, [SamplingParams(), params, SamplingParams()], generators)
        assert caught.value.request_ids == ["r1"]
        assert [generator.random() for generator in generators] == \
            [np.random.default_rng(i).random() for i in range(3)]

    def test_no_token_left(self) -> None:
        logits = np.full((1, VOCAB_SIZE), -np.inf, np.float32)
        with pytest.raises(UnusableLogitsError, match="r0: every token .* is forbidden"):
            sample_decodes(logits, [SamplingParams()])

    def test_in_a_prompt_row(self) -> None:
        logits = random_logits(3)
        logits[0, 0] = np.nan
        group = metadata_of("p", [1, 2, 3], params=SamplingParams(prompt_logprobs=1))
        with pytest.raises(ValueError, match="cannot choose a token for p"):
            Sampler()(logits, SamplingMetadata.prepare([group], [3]))


class TestPromptLogprobs:
    def test_one_entry_for_each_token_after_the_first(self) -> None:
        params = SamplingParams(temperature=0.0, prompt_logprobs=2, logprobs=1)
        metadata = SamplingMetadata.prepare([metadata_of("p", [7, 8, 9], params=params)], [3])
        logits = random_logits(3)
        output = Sampler()(logits, metadata)[0]
        assert [next(iter(entry)) for entry in output.prompt_logprobs or ()] == [8, 9]
        best = int(logits[0].argmax())
        entry = (output.prompt_logprobs or [])[0]
        assert entry is not None and entry[best].rank == 1
        assert entry[8].logprob == pytest.approx(softmax(logits)[1][0, 8])

    def test_a_prompt_of_one_token_has_an_empty_list(self) -> None:
        params = SamplingParams(prompt_logprobs=1, temperature=0.0)
        metadata = SamplingMetadata.prepare([metadata_of("p", [7], params=params)], [1])
        assert Sampler()(random_logits(1), metadata)[0].prompt_logprobs == []

    def test_none_unless_asked_for(self) -> None:
        metadata = SamplingMetadata.prepare([metadata_of("p", [7, 8, 9])], [3])
        assert Sampler()(random_logits(1), metadata)[0].prompt_logprobs is None


@st.composite
def legal_params(draw: st.DrawFn) -> SamplingParams:
    """Draw parameters up to the edges of what is legal."""
    return SamplingParams(
        temperature=draw(st.sampled_from([1e-5, 1.1e-5, 1e-3, 1.0, 100.0, 1e30, float("inf")])),
        top_p=draw(st.sampled_from([1e-8, 5e-324, 1e-3, 0.5, 0.99, 0.99998, 0.9999999, 1.0])),
        top_k=draw(st.sampled_from([-1, 1, 2, VOCAB_SIZE - 1, VOCAB_SIZE, VOCAB_SIZE + 10])),
        min_p=draw(st.sampled_from([0.0, 1e-5, 2e-5, 0.5, 1.0])),
        repetition_penalty=draw(st.sampled_from([1e-300, 1e-6, 0.5, 1.0, 2.0])),
        presence_penalty=draw(st.sampled_from([-2.0, 0.0, 2.0])),
        frequency_penalty=draw(st.sampled_from([-2.0, 0.0, 2.0])),
        min_tokens=draw(st.sampled_from([0, 5])),
        stop_token_ids=draw(st.sampled_from([[], [0, 39], [39, 40]])),
        seed=draw(st.sampled_from([None, 0, 11])),
        logprobs=draw(st.sampled_from([None, 0, 3])))


LOGIT = st.one_of(
    st.floats(-30, 30, width=32),
    st.sampled_from([-np.inf, 0.0, 1.0, 3e38, -3e38, float(np.finfo(np.float32).max),
                     float(np.finfo(np.float32).min), 1e-45]))
# Tokens 1 to 38 are never banned: one of them is finite, so there is something to choose.
ROW = st.one_of(
    LOGIT.map(lambda value: [max(value, -3e38)] * VOCAB_SIZE),
    st.lists(LOGIT, min_size=VOCAB_SIZE, max_size=VOCAB_SIZE).map(lambda row: [*row[:7], 1.5,
                                                                               *row[8:]]))


@settings(max_examples=150)
@given(st.lists(st.tuples(ROW, legal_params()), min_size=1, max_size=4))
def test_any_legal_parameters_leave_a_token(batch: list[tuple[list[float], SamplingParams]]
                                            ) -> None:
    """No NaN, a survivor in each row, and a token of the vocabulary that is one of them."""
    logits = np.array([row for row, _ in batch], np.float32)
    groups = [metadata_of(f"r{i}", [1, 2], [[3, 3, 7]], params=params,
                          generator=np.random.default_rng(i))
              for i, (_, params) in enumerate(batch)]
    metadata = SamplingMetadata.prepare(groups, [1] * len(groups))
    with np.errstate(invalid="raise", divide="raise"):
        penalised = apply_penalties(apply_min_tokens(logits, metadata), metadata)
        probs, logprobs = softmax(apply_filters(
            penalised, SamplingTensors.from_sampling_metadata(metadata, VOCAB_SIZE)))
        output = Sampler()(logits, metadata)
    assert not (np.isnan(probs) | np.isnan(logprobs)).any()
    assert probs.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    for row, group in zip(logprobs, output.outputs, strict=True):
        sample = group.samples[0]
        assert row[sample.output_token] > -np.inf
        assert sample.logprobs[sample.output_token].logprob == row[sample.output_token]


def test_greedy_ties_in_a_mixed_batch() -> None:
    logits = random_logits(3)
    logits[1, [4, 9, 20]] = 30.0
    params = [SamplingParams(), SamplingParams(temperature=0.0), SamplingParams(top_k=3)]
    assert tokens(sample_decodes(logits, params))[1] == [4]
    assert tokens(sample_decodes(logits[1:2], params[1:2])) == [[4]]


def test_a_batch_of_many_slabs() -> None:
    """Rows so long that threads share the batch: each comes out as alone."""
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 3, (23, 60_000)).astype(np.float32)
    kinds = [SamplingParams(temperature=0.0, logprobs=2), SamplingParams(temperature=0.7),
             SamplingParams(top_k=20), SamplingParams(top_p=0.9, repetition_penalty=1.3),
             SamplingParams(min_p=0.1, logprobs=1)]
    params = [kinds[i % len(kinds)] for i in range(len(logits))]
    together = sample_decodes(logits, params, [np.random.default_rng(i) for i in range(23)])
    for i in range(len(logits)):
        alone = sample_decodes(logits[i:i + 1], params[i:i + 1], [np.random.default_rng(i)])
        assert alone[0] == together[i]
