"""Text that comes token by token adds up, whatever the tokens are."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minivllm.engine.output_processor.stop_checker import StopChecker
from minivllm.inputs import LLMInputs
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import Logprob, PromptLogprobs, Sequence, SequenceGroup
from minivllm.transformers_utils.detokenizer import Detokenizer
from minivllm.transformers_utils.tokenizer import Tokenizer, get_tokenizer
from tests.detok.golden import GOLDEN

PROMPT = [1, 4093, 198]


@pytest.fixture(scope="module")
def smollm2(smollm2_dir: Path) -> Tokenizer:
    return get_tokenizer(smollm2_dir)


@pytest.fixture(scope="module")
def byte_fallback() -> Tokenizer:
    return get_tokenizer(GOLDEN / "tiny" / "llama-mha")


def stream(tokenizer: Tokenizer, token_ids: list[int], params: SamplingParams,
           prompt: list[int] = PROMPT) -> tuple[list[str], Sequence]:
    """Return what a streaming caller gets in each step, and the sequence at its end."""
    detokenizer, stop_checker = Detokenizer(tokenizer), StopChecker(10_000)
    seq = Sequence(0, LLMInputs(prompt_token_ids=prompt), 16, tokenizer.eos_token_id)
    deltas, shown = [], ""
    for token_id in token_ids:
        seq.append_token_id(token_id, {token_id: Logprob(0.0)})
        stop_checker.maybe_stop_sequence(seq, detokenizer.decode_sequence_inplace(seq, params),
                                         params)
        text = seq.get_output_text_to_return(params.output_text_buffer_length)
        assert text.startswith(shown), "what was shown must not be taken back"
        deltas.append(text[len(shown):])
        shown = text
        if seq.is_finished():
            break
    return deltas, seq


PARAMS = st.builds(
    SamplingParams, max_tokens=st.integers(1, 40),
    stop=st.lists(st.text("ab e.\n", min_size=1, max_size=3), max_size=3),
    include_stop_str_in_output=st.booleans(), skip_special_tokens=st.booleans(),
    ignore_eos=st.booleans(), stop_token_ids=st.lists(st.integers(0, 300), max_size=2))


@settings(max_examples=150)
@given(data=st.data(), params=PARAMS)
def test_joined_deltas_equal_the_final_text(smollm2: Tokenizer, data: st.DataObject,
                                            params: SamplingParams) -> None:
    """Random tokens: whole words, single bytes (ids below 300), special tokens."""
    token_ids = data.draw(st.lists(
        st.one_of(st.integers(0, 300), st.integers(0, len(smollm2) + 5)), min_size=40,
        max_size=40))
    deltas, seq = stream(smollm2, token_ids, params)
    assert seq.is_finished()
    assert "".join(deltas) == seq.output_text


@settings(max_examples=150)
@given(text=st.text(min_size=1))
@example("Party 🎉🎊 family 👩‍👩‍👧, ď, 你好, e\u0301\n\n  two  spaces")
def test_text_comes_back_whole(smollm2: Tokenizer, byte_fallback: Tokenizer, text: str) -> None:
    """Tokens of a real text stream as that text, without a broken character on the way."""
    for tokenizer in smollm2, byte_fallback:
        token_ids = tokenizer.encode(text, add_special_tokens=False)
        params = SamplingParams(max_tokens=None, ignore_eos=True, skip_special_tokens=False)
        prompt = tokenizer.encode("a", add_special_tokens=False)
        deltas, _ = stream(tokenizer, token_ids, params, prompt)
        whole = tokenizer.convert_tokens_to_string(
            tokenizer.convert_ids_to_tokens([*prompt, *token_ids]))
        # A replacement character of the text's own may be taken for an unfinished one.
        if "\ufffd" not in whole:
            start = len(tokenizer.convert_tokens_to_string(tokenizer.convert_ids_to_tokens(prompt)))
            assert "".join(deltas) == whole[start:]


def test_nothing_shows_while_a_character_is_unfinished(smollm2: Tokenizer) -> None:
    emoji = smollm2.encode("🎉", add_special_tokens=False)
    assert len(emoji) > 1
    deltas, _ = stream(smollm2, emoji, SamplingParams(max_tokens=None))
    assert deltas == [""] * (len(emoji) - 1) + ["🎉"]


def test_forks_go_their_own_ways(smollm2: Tokenizer) -> None:
    detokenizer, params = Detokenizer(smollm2), SamplingParams()
    seq = Sequence(0, LLMInputs(prompt_token_ids=PROMPT), 16)
    token_ids = smollm2.encode("One two three", add_special_tokens=False)
    for line, continuation in ((seq, token_ids[:2]),):
        for token_id in continuation:
            line.append_token_id(token_id, {token_id: Logprob(0.0)})
            detokenizer.decode_sequence_inplace(line, params)
    fork = seq.fork(1)
    for line, token_id in ((seq, token_ids[2]), (fork, token_ids[0])):
        line.append_token_id(token_id, {token_id: Logprob(0.0)})
        detokenizer.decode_sequence_inplace(line, params)
    assert (seq.output_text, fork.output_text) == ("One two three", "One twoOne")


class TestPromptLogprobs:
    """Each token of a prompt is decoded after the tokens before it, not after the next ones."""

    def decoded(self, tokenizer: Tokenizer, prompt: list[int], chunks: list[int]) -> list[str]:
        """Decode a prompt's own tokens, so many in each chunk."""
        seq = Sequence(0, LLMInputs(prompt_token_ids=prompt), 16)
        group = SequenceGroup("r0", [seq], 0.0, SamplingParams(skip_special_tokens=False))
        group.prompt_logprobs = [None]
        for size in chunks:
            start = len(group.prompt_logprobs)
            entries: PromptLogprobs = [{i: Logprob(0.0)} for i in prompt[start:start + size]]
            Detokenizer(tokenizer).decode_prompt_logprobs_inplace(group, entries)
            group.prompt_logprobs += entries
        return [str(entry.decoded_token) for entries in group.prompt_logprobs if entries
                for entry in entries.values()]

    def test_texts_join_to_the_prompt(self, smollm2: Tokenizer) -> None:
        prompt = smollm2.encode("The party 🎉 has begun.\n\nGood")
        first = smollm2.convert_tokens_to_string(smollm2.convert_ids_to_tokens(prompt[:1]))
        texts = self.decoded(smollm2, prompt, [len(prompt)])
        assert first + "".join(texts) == "The party 🎉 has begun.\n\nGood"
        assert " has" in texts

    def test_chunks_change_nothing(self, smollm2: Tokenizer) -> None:
        prompt = smollm2.encode("Emoji 🎉🎊 and words")
        whole = self.decoded(smollm2, prompt, [len(prompt)])
        assert self.decoded(smollm2, prompt, [1] * len(prompt)) == whole
        assert self.decoded(smollm2, prompt, [4, 3, len(prompt)]) == whole

    def test_alternatives_stand_in_the_same_context(self, byte_fallback: Tokenizer) -> None:
        """After "H" comes "e", or what else might have come."""
        prompt = byte_fallback.encode("Hello", add_special_tokens=False)
        other = byte_fallback.encode("Hi", add_special_tokens=False)
        place = next(i for i, (a, b) in enumerate(zip(prompt, other, strict=False)) if a != b)
        seq = Sequence(0, LLMInputs(prompt_token_ids=prompt), 16)
        group = SequenceGroup("r0", [seq], 0.0, SamplingParams())
        entries: PromptLogprobs = [{i: Logprob(0.0)} for i in prompt[1:]]
        entries[place - 1] = {prompt[place]: Logprob(0.0), other[place]: Logprob(0.0)}
        Detokenizer(byte_fallback).decode_prompt_logprobs_inplace(group, entries)
        texts = [entry.decoded_token for entry in (entries[place - 1] or {}).values()]
        assert texts == [
            byte_fallback.decode(ids[:place + 1])[len(byte_fallback.decode(ids[:place])):]
            for ids in (prompt, other)]
