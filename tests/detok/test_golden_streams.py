"""Every golden stream, token by token: text, streamed text, why and where it ends."""

from pathlib import Path
from typing import Any

import pytest

from minivllm.engine.output_processor.stop_checker import StopChecker
from minivllm.inputs import LLMInputs
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import Logprob, Sequence, SequenceStatus
from minivllm.transformers_utils.detokenizer import Detokenizer
from minivllm.transformers_utils.tokenizer import get_tokenizer
from tests.detok.golden import GOLDEN, OTHERWISE, named_cases

SMOLLM2 = named_cases("smollm2")
BYTE_FALLBACK = named_cases("byte_fallback")


@pytest.fixture(scope="module")
def smollm2(smollm2_dir: Path) -> Detokenizer:
    return Detokenizer(get_tokenizer(smollm2_dir))


@pytest.fixture(scope="module")
def byte_fallback() -> Detokenizer:
    return Detokenizer(get_tokenizer(GOLDEN / "tiny" / "llama-mha"))


def test_there_are_all_cases() -> None:
    assert (len(SMOLLM2), len(BYTE_FALLBACK)) == (86, 78)


@pytest.mark.parametrize("name", [name for name in SMOLLM2 if ("smollm2", name) not in OTHERWISE])
def test_smollm2(name: str, smollm2: Detokenizer) -> None:
    check_case(SMOLLM2[name], smollm2)


@pytest.mark.parametrize("name", BYTE_FALLBACK)
def test_byte_fallback(name: str, byte_fallback: Detokenizer) -> None:
    check_case(BYTE_FALLBACK[name], byte_fallback)


@pytest.mark.parametrize("name", [name for _, name in OTHERWISE])
def test_first_completed_stop_string_wins(name: str, smollm2: Detokenizer) -> None:
    """Both strings end in one token: ", " before the "o" of "two", which the list has first."""
    seq = run_stream(SMOLLM2[name], smollm2, check_steps=False)
    assert seq.status is SequenceStatus.FINISHED_STOPPED
    assert (seq.output_text, seq.stop_reason) == OTHERWISE["smollm2", name]


def check_case(case: dict[str, Any], detokenizer: Detokenizer) -> None:
    seq = run_stream(case, detokenizer, check_steps=True)
    assert seq.get_output_len() == case["num_tokens_used"]
    assert seq.is_finished() == case["finished"]
    buffer_length = SamplingParams(**case["params"]).output_text_buffer_length
    assert seq.get_output_text_to_return(buffer_length) == case["final_text"]
    assert SequenceStatus.get_finished_reason(seq.status) == case["finish_reason"]
    assert seq.stop_reason == case["stop_reason"]


def run_stream(case: dict[str, Any], detokenizer: Detokenizer, check_steps: bool) -> Sequence:
    """Feed the stream to a sequence until it ends."""
    params = SamplingParams(**case["params"])
    stop_checker = StopChecker(case["max_model_len"])
    seq = Sequence(0, LLMInputs(prompt_token_ids=case["prompt_token_ids"]), block_size=16,
                   eos_token_id=case["eos_token_id"])
    for i, token_id in enumerate(case["stream"]):
        step = case["steps"][i] if check_steps else {}
        others = [other for other, _ in step.get("decoded", ())]
        seq.append_token_id(token_id, {other: Logprob(0.0) for other in [token_id, *others]})
        new_char_count = 0
        if params.detokenize:
            new_char_count = detokenizer.decode_sequence_inplace(seq, params)
        stop_checker.maybe_stop_sequence(seq, new_char_count, params)
        if check_steps:
            shown = seq.get_output_text_to_return(params.output_text_buffer_length)
            assert (token_id, seq.output_text, shown) == \
                (step["token_id"], step["output_text"], step["returned_text"])
            texts = {other: entry.decoded_token for other, entry in seq.output_logprobs[-1].items()}
            assert [texts[other] for other in others] == \
                [text for _, text in step.get("decoded", ())]
        if seq.is_finished():
            break
    return seq
