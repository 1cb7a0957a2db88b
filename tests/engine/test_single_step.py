"""What the output processor does to a group, with a scheduler that only takes notes."""

import pytest

from minivllm.config import SchedulerConfig
from minivllm.engine.output_processor.single_step import SingleStepOutputProcessor
from minivllm.engine.output_processor.stop_checker import StopChecker
from minivllm.inputs import LLMInputs
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import (
    CompletionSequenceGroupOutput,
    Logprob,
    Sequence,
    SequenceGroup,
    SequenceOutput,
    SequenceStatus,
)
from minivllm.utils import Counter, InternalError

EOS = 2


class NotingScheduler:
    """Notes forks and frees, in order."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, ...] | tuple[str, int, int] | tuple[str, int]] = []

    def fork_seq(self, parent_seq, child_seq):
        self.notes.append(("fork", parent_seq.seq_id, child_seq.seq_id))

    def free_seq(self, seq):
        self.notes.append(("free", seq.seq_id))


class Setup:
    """One group of one running sequence, r0.0, and a processor."""

    def __init__(self, **params):
        self.scheduler = NotingScheduler()
        counter = Counter()
        self.processor = SingleStepOutputProcessor(
            SchedulerConfig(64, 8, 64), None, self.scheduler, counter, StopChecker(64))
        seq = Sequence(next(counter), LLMInputs(prompt_token_ids=[5, 6, 7], prompt=None), 4, EOS)
        seq.status = SequenceStatus.RUNNING
        self.group = SequenceGroup("r0", [seq], 0.0, SamplingParams(**params))

    def process(self, *samples: tuple[int, int, float]) -> None:
        """Feed samples (parent, token, logprob)."""
        outputs = [SequenceOutput(parent, token, {token: Logprob(logprob)})
                   for parent, token, logprob in samples]
        self.processor.process_outputs(self.group, CompletionSequenceGroupOutput(outputs))

    def tokens(self) -> dict[int, list[int]]:
        """Return the output tokens by seq_id, in the group's order."""
        return {seq.seq_id: seq.get_output_token_ids() for seq in self.group.get_seqs()}


def test_a_sample_continues_its_sequence():
    setup = Setup()
    setup.process((0, 9, -0.5))
    setup.process((0, 8, -0.25))
    assert setup.tokens() == {0: [9, 8]}
    assert setup.group.get_seqs()[0].get_cumulative_logprob() == -0.75
    assert setup.scheduler.notes == []


def test_several_samples_fork_and_the_last_continues_the_parent():
    setup = Setup(n=3)
    setup.process((0, 7, -1.0), (0, 8, -2.0), (0, 9, -3.0))
    assert setup.tokens() == {0: [9], 1: [7], 2: [8]}
    assert setup.scheduler.notes == [("fork", 0, 1), ("fork", 0, 2)]
    setup.process((0, 4, -1.0), (1, 5, -1.0), (2, 6, -1.0))
    assert setup.tokens() == {0: [9, 4], 1: [7, 5], 2: [8, 6]}


def test_a_sequence_that_ends_gives_its_blocks_back():
    setup = Setup()
    setup.process((0, EOS, -1.0))
    assert setup.group.is_finished()
    assert setup.scheduler.notes == [("free", 0)]


def test_a_fork_that_ends_at_once_never_has_blocks():
    setup = Setup(n=3)
    setup.process((0, EOS, -1.0), (0, 8, -1.0), (0, EOS, -1.0))
    assert [seq.is_finished() for seq in setup.group.get_seqs()] == [True, True, False]
    # The parent's blocks are freed only after its living fork has taken hold of them.
    assert setup.scheduler.notes == [("fork", 0, 2), ("free", 0)]


def test_a_finished_sibling_stays_as_it_is():
    setup = Setup(n=2)
    setup.process((0, EOS, -1.0), (0, 8, -1.0))
    setup.process((0, 9, -1.0))
    assert setup.tokens() == {0: [8, 9], 1: [EOS]}


def beams(**params):
    return Setup(n=2, use_beam_search=True, temperature=0.0, **params)


def test_beams_are_chosen_from_all_candidates():
    setup = beams()
    setup.process((0, 7, -1.0), (0, 8, -2.0), (0, 9, -3.0), (0, 10, -4.0))
    # The parent took the last sample, -4, and is dropped; its forks 1 and 2 live on.
    assert setup.tokens() == {1: [7], 2: [8]}
    assert setup.scheduler.notes == [("fork", 0, 1), ("fork", 0, 2), ("free", 0)]


def test_a_beam_without_candidates_goes():
    setup = beams()
    setup.process((0, 7, -1.0), (0, 8, -2.0), (0, 9, -3.0), (0, 10, -4.0))
    setup.scheduler.notes.clear()
    setup.process((1, 7, -1.0), (1, 8, -2.0), (1, 9, -3.0), (1, 10, -4.0))
    assert setup.scheduler.notes[0] == ("free", 2)
    assert all(tokens[0] == 7 for tokens in setup.tokens().values())


def test_a_finished_beam_is_kept_until_better_ones_finish():
    setup = beams()
    setup.process((0, EOS, -8.0), (0, 8, -1.0), (0, 9, -1.5), (0, 10, -9.0))
    assert setup.tokens() == {1: [EOS], 2: [8], 3: [9]}
    setup.process((2, EOS, -0.1), (3, EOS, -0.1), (2, 4, -1.0), (3, 4, -1.0))
    finished = [seq.get_output_token_ids() for seq in setup.group.get_seqs() if seq.is_finished()]
    assert finished == [[8, EOS], [9, EOS]]


def test_the_end_of_a_search_frees_every_beam():
    setup = beams(early_stopping=True)
    setup.process((0, 7, -1.0), (0, 8, -2.0), (0, 9, -3.0), (0, 10, -4.0))
    setup.scheduler.notes.clear()
    setup.process((1, EOS, -0.1), (2, EOS, -0.1), (1, 4, -1.0), (2, 4, -1.0))
    assert setup.group.is_finished() and len(setup.tokens()) == 2
    assert setup.scheduler.notes == [("free", 1), ("free", 2)]


def entries(*token_ids: int) -> CompletionSequenceGroupOutput:
    return CompletionSequenceGroupOutput([], [{t: Logprob(-float(t))} for t in token_ids])


class TestPromptLogprobs:
    """The prompt is 5, 6, 7: computing 5 says something about 6, computing 6 about 7."""

    @pytest.fixture
    def setup(self):
        return Setup(prompt_logprobs=1)

    @staticmethod
    def compute(setup, num_tokens: int, *entries_for: int) -> None:
        setup.group.update_num_computed_tokens(num_tokens)
        setup.processor.process_prompt_logprob(setup.group, entries(*entries_for))

    @staticmethod
    def collected(setup) -> list[int | None]:
        return [None if entry is None else next(iter(entry))
                for entry in setup.group.prompt_logprobs]

    def test_in_one_go(self, setup):
        self.compute(setup, 3, 6, 7)
        assert self.collected(setup) == [None, 6, 7]

    def test_in_chunks(self, setup):
        self.compute(setup, 1, 6)
        self.compute(setup, 1, 7)
        self.compute(setup, 1)
        assert self.collected(setup) == [None, 6, 7]

    @pytest.mark.parametrize("again", [[(3, (6, 7))], [(1, (6,)), (2, (7,))],
                                       [(2, (6, 7)), (1, ())]])
    def test_a_recompute_repeats_nothing(self, setup, again):
        self.compute(setup, 1, 6)
        setup.group.get_seqs()[0].reset_state_for_recompute()
        for num_tokens, entries_for in again:
            self.compute(setup, num_tokens, *entries_for)
        assert self.collected(setup) == [None, 6, 7]

    def test_not_asked_for(self):
        setup = Setup()
        setup.processor.process_prompt_logprob(setup.group, CompletionSequenceGroupOutput([]))
        assert setup.group.prompt_logprobs is None

    def test_a_gap_is_an_error(self, setup):
        setup.group.update_num_computed_tokens(3)
        with pytest.raises(InternalError, match="missing"):
            setup.processor.process_prompt_logprob(setup.group, entries(7))
