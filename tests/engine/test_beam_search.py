"""Which beams live on, shown on hand-made sequences."""

import pytest

from minivllm.engine.output_processor.beam_search import Candidate, select_beams
from minivllm.inputs import LLMInputs
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import Logprob, Sequence, SequenceStatus

EOS = 2


def beam(name: int, logprobs: list[float], finished: bool = False, ends_in_eos: bool = False,
         earlier: bool = False) -> Candidate:
    """Return a candidate with a prompt of two tokens and one output token per log-probability."""
    seq = Sequence(name, LLMInputs(prompt_token_ids=[5, 6], prompt=None), 4, EOS)
    seq.status = SequenceStatus.FINISHED_STOPPED if finished else SequenceStatus.RUNNING
    for i, logprob in enumerate(logprobs):
        token = EOS if ends_in_eos and i == len(logprobs) - 1 else 7
        seq.append_token_id(token, {token: Logprob(logprob)})
    return Candidate(seq, None if earlier else seq)


def select(candidates: list[Candidate], max_model_len: int = 16,
           **params: object) -> tuple[list[int], list[int]]:
    """Return the names of the kept and of the dropped ones."""
    settings = SamplingParams(**{"n": 2, "use_beam_search": True, "temperature": 0.0} | params)
    kept, dropped = select_beams(candidates, settings, max_model_len)
    return [c.seq.seq_id for c in kept], [c.seq.seq_id for c in dropped]


def test_the_best_running_beams_go_on():
    beams = [beam(0, [-3.0]), beam(1, [-1.0]), beam(2, [-2.0])]
    assert select(beams) == ([1, 2], [0])


def test_finished_beams_come_first_and_do_not_take_seats_of_running_ones():
    beams = [beam(0, [-3.0]), beam(1, [-1.0]), beam(2, [-9.0], finished=True)]
    assert select(beams) == ([2, 1, 0], [])


def test_of_equals_the_one_that_finished_earlier_stays():
    beams = [beam(0, [-1.0], finished=True, earlier=True), beam(1, [-1.0], finished=True),
             beam(2, [-1.0], finished=True)]
    assert select(beams) == ([0, 1], [2])


def test_an_end_of_sequence_token_does_not_count_for_length():
    # -6 / (2 + 2) = -1.5 without the eos token, -6 / (2 + 3) = -1.2 with it.
    with_eos = beam(0, [-2.0, -2.0, -2.0], finished=True, ends_in_eos=True)
    other = beam(1, [-2.0, -2.0, -2.5], finished=True)
    assert select([with_eos, other, beam(2, [-9.0])], n=1, best_of=2)[0] == [1, 0]


def test_with_nothing_running_the_search_is_over():
    assert select([beam(0, [-1.0], finished=True)]) == ([0], [])


@pytest.mark.parametrize(("early_stopping", "goes_on"), [(True, False), (False, True)])
def test_early_stopping_true_ends_with_enough_finished_beams(early_stopping, goes_on):
    beams = [beam(0, [-5.0], finished=True), beam(1, [-6.0], finished=True), beam(2, [-1.0])]
    kept, dropped = select(beams, early_stopping=early_stopping)
    assert (2 in kept, 2 in dropped) == (goes_on, not goes_on)


def test_early_stopping_false_compares_with_the_present_score():
    finished = [beam(0, [-1.0], finished=True), beam(1, [-2.0], finished=True)]
    assert select([*finished, beam(2, [-1.9])]) == ([0, 1, 2], [])
    assert select([*finished, beam(2, [-2.0])]) == ([0, 1], [2])


def test_early_stopping_never_credits_the_greatest_length():
    # The running beam's -6 over its 3 tokens is worse than -1, over 16 tokens it is better.
    finished = [beam(0, [-3.0], finished=True), beam(1, [-3.0], finished=True)]
    assert select([*finished, beam(2, [-6.0])], early_stopping="never") == ([0, 1, 2], [])
    assert select([*finished, beam(2, [-6.0])], early_stopping=False) == ([0, 1], [2])
    # With a penalty of 0 length does not matter.
    assert select([*finished, beam(2, [-6.0])], early_stopping="never",
                  length_penalty=0.0) == ([0, 1], [2])
