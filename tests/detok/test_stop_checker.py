"""When a sequence ends, and what is left of its text."""

import pytest

from minivllm.engine.output_processor.stop_checker import StopChecker, find_stop_string
from minivllm.inputs import LLMInputs
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import Logprob, Sequence, SequenceStatus

EOS = 0


def run(pieces: list[str], params: SamplingParams, max_model_len: int = 100,
        token_ids: list[int] | None = None) -> Sequence:
    """Let a sequence grow by `pieces` of text, one a token, until it ends."""
    stop_checker = StopChecker(max_model_len)
    seq = Sequence(0, LLMInputs(prompt_token_ids=[5, 6, 7, 8]), 16, EOS)
    for i, piece in enumerate(pieces):
        token_id = token_ids[i] if token_ids else 9
        seq.append_token_id(token_id, {token_id: Logprob(0.0)})
        seq.output_text += piece
        stop_checker.maybe_stop_sequence(seq, len(piece), params)
        if seq.is_finished():
            break
    return seq


@pytest.mark.parametrize(("text", "new_chars", "stop", "found"), [
    ("One, two", 5, ["o", ", "], (", ", 5)),
    ("One, two", 5, ["two", "wo"], ("two", 8)),
    ("One, two", 5, ["wo", "two"], ("wo", 8)),
    ("xSTOP!", 4, ["STOP"], ("STOP", 5)),
    ("STOP!", 1, ["STOP"], ("STOP", 4)),
    ("STOP!!", 1, ["STOP"], None),
    ("STOP", 0, ["STOP"], None),
    ("aaaaa", 2, ["aa"], ("aa", 3)),
    ("ab", 2, [], None),
])
def test_find_stop_string(text: str, new_chars: int, stop: list[str],
                          found: tuple[str, int] | None) -> None:
    """First completed wins, then the order of the list; old text does not count again."""
    assert find_stop_string(text, new_chars, stop) == found


@pytest.mark.parametrize(("include", "text"), [(False, "go "), (True, "go STOP")])
def test_stop_string_over_two_tokens(include: bool, text: str) -> None:
    seq = run(["go ", "ST", "OP!"], SamplingParams(stop="STOP", include_stop_str_in_output=include))
    assert (seq.output_text, seq.stop_reason) == (text, "STOP")
    assert seq.get_output_len() == 3


@pytest.mark.parametrize(("include", "text"), [(False, "ab"), (True, "ab#")])
@pytest.mark.parametrize("token_id", [EOS, 3])
def test_stop_token_takes_its_text_along(include: bool, text: str, token_id: int) -> None:
    params = SamplingParams(stop_token_ids=[3], include_stop_str_in_output=include)
    seq = run(["a", "b", "#"], params, token_ids=[9, 9, token_id])
    assert seq.output_text == text
    assert seq.get_output_token_ids() == [9, 9, token_id]
    assert seq.stop_reason == (None if token_id == EOS else 3)


def test_an_invisible_stop_token_cuts_nothing() -> None:
    assert run(["a", "b", ""], SamplingParams(), token_ids=[9, 9, EOS]).output_text == "ab"


def test_ignore_eos_does_not_ignore_stop_token_ids() -> None:
    assert not run(["a"], SamplingParams(ignore_eos=True), token_ids=[EOS]).is_finished()
    seq = run(["a"], SamplingParams(ignore_eos=True, stop_token_ids=[EOS]), token_ids=[EOS])
    assert (seq.is_finished(), seq.stop_reason) == (True, EOS)


def test_text_found_below_min_tokens_stays() -> None:
    seq = run(["\n", "a", "b", "c\n"], SamplingParams(stop="\n", min_tokens=3))
    assert (seq.output_text, seq.get_output_len()) == ("\nabc", 4)


def test_text_found_in_the_last_token_below_min_tokens_is_noticed_one_token_late() -> None:
    """Kept from vLLM: its search begins where a stop string may just have ended."""
    seq = run(["a", "\n", "b", "c"], SamplingParams(stop="\n", min_tokens=3))
    assert (seq.output_text, seq.get_output_len()) == ("a", 3)


def test_the_models_limit_wins_over_min_tokens() -> None:
    """4 prompt tokens and a limit of 16 leave 13 (the newest token need not be computed)."""
    seq = run(["x"] * 60, SamplingParams(min_tokens=50, max_tokens=60), max_model_len=16)
    assert seq.status is SequenceStatus.FINISHED_LENGTH_CAPPED
    assert seq.get_output_len() == 13


def test_a_sequence_may_end_one_token_past_the_models_limit() -> None:
    seq = run(["x"] * 60, SamplingParams(max_tokens=60), max_model_len=16)
    assert seq.get_len() == 17


def test_a_stop_in_the_last_token_counts_as_stop() -> None:
    seq = run(["a", "b"], SamplingParams(max_tokens=2, stop="b"))
    assert seq.status is SequenceStatus.FINISHED_STOPPED
    assert run(["a", "b"], SamplingParams(max_tokens=2)).status is \
        SequenceStatus.FINISHED_LENGTH_CAPPED
