"""Text to ids and back, exactly as the tokenizers library and Hugging Face's templates do it."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
import tokenizers

from minivllm import LLM
from minivllm.transformers_utils.gguf.tokenizer import llama_tokenizer, merges_from_scores
from minivllm.transformers_utils.tokenizer import Tokenizer, check_vocabulary, get_tokenizer
from tests.transformers_utils.tiny_gguf import TINY, write_gguf

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = json.loads(gzip.decompress((GOLDEN / "tokenizer" / "encode_decode.json.gz").read_bytes()))
SMOLLM2_CASES = [json.loads(path.read_text(encoding="utf-8"))
                 for path in sorted((GOLDEN / "smollm2").glob("*.json"))]


def assert_golden(tokenizer, cases):
    for case in cases:
        assert tokenizer.encode(case["text"]) == case["ids"], case["text"]
        assert tokenizer.encode(case["text"], add_special_tokens=False) == \
            case["ids_without_special"]
        assert tokenizer.decode(case["ids"], skip_special_tokens=True) == case["decoded"]
        assert tokenizer.decode(case["ids"]) == case["decoded_with_special"]


def copy_tokenizer(directory, name="llama-mha", **config):
    """Copy a golden tokenizer; `config` changes its tokenizer_config.json."""
    shutil.copy(TINY / name / "tokenizer.json", directory)
    shutil.copy(TINY / name / "config.json", directory)
    values = json.loads((TINY / name / "tokenizer_config.json").read_text(encoding="utf-8"))
    (directory / "tokenizer_config.json").write_text(json.dumps({**values, **config}))
    return directory


# Golden data.


@pytest.mark.parametrize("name", [name for name in CASES["tokenizers"] if name.startswith("tiny/")])
def test_golden_tokenizers(name):
    assert_golden(get_tokenizer(GOLDEN / name), CASES["tokenizers"][name])


def test_golden_smollm2(smollm2_dir):
    cases = CASES["tokenizers"]["smollm2-135m-instruct"]
    assert len(cases) == 38
    assert_golden(get_tokenizer(smollm2_dir), cases)


def test_a_sentencepiece_tokenizer_from_a_gguf_file(tmp_path):
    """Its file has scores, no merges: they are recovered."""
    path = write_gguf(tmp_path / "tiny.gguf", "llama-mha")
    assert_golden(get_tokenizer(path), CASES["tokenizers"]["tiny/llama-mha"])


def test_a_byte_level_tokenizer_from_a_gguf_file(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", "llama-gqa-linear-bf16")
    assert_golden(get_tokenizer(path), CASES["tokenizers"]["tiny/gpt2"])


@pytest.mark.parametrize("case", SMOLLM2_CASES, ids=lambda case: case["name"])
def test_golden_prompts_of_smollm2(case, smollm2_dir):
    tokenizer = get_tokenizer(smollm2_dir)
    if case["kind"] == "chat":
        assert tokenizer.apply_chat_template(case["messages"]) == case["prompt"]
    assert tokenizer.encode(case["prompt"]) == case["prompt_token_ids"]
    output = case["output_token_ids"]
    assert tokenizer.decode(output, skip_special_tokens=True) == case["output_text"]
    assert tokenizer.decode(output) == case["output_text_with_special"]


# The wrapper.


def test_special_tokens_are_those_of_the_config(smollm2_dir):
    """tokenizer.json marks 17 tokens as special, the config names 3 of them."""
    tokenizer = get_tokenizer(smollm2_dir)
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (1, 2)
    assert tokenizer.all_special_ids == {0, 1, 2}
    assert len(tokenizer.get_added_vocab()) == 17
    assert tokenizer.convert_ids_to_tokens([0, 3, 19556]) == ["<|endoftext|>", "<repo_name>",
                                                              "Hello"]
    assert tokenizer.convert_ids_to_tokens([0, 3, 19556], skip_special_tokens=True) == \
        ["<repo_name>", "Hello"]
    assert len(tokenizer) == 49152
    assert tokenizer.max_token_id == 49151


def test_special_tokens_in_every_form_that_configs_use(tmp_path):
    directory = copy_tokenizer(tmp_path, bos_token={"content": "<s>", "special": True},
                               eos_token=None, pad_token="not in the vocabulary",
                               additional_special_tokens=["the", {"content": "</s>"}])
    tokenizer = get_tokenizer(directory)
    assert tokenizer.all_special_tokens == ["<s>", "<unk>", "not in the vocabulary", "the", "</s>"]
    assert tokenizer.all_special_ids >= {0, 1, 2}
    assert tokenizer.bos_token_id == 1
    assert tokenizer.eos_token_id is None


@pytest.mark.parametrize(("settings", "message"), [
    ({"additional_special_tokens": 5}, "additional_special_tokens should be a list, it is 5"),
    ({"chat_template": [5]}, "each of several chat templates should be an object"),
    ({"chat_template": 5}, "chat_template should be a text, it is 5"),
    ({"bos_token": 5}, "names the special token 5")])
def test_settings_of_the_wrong_kind(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        get_tokenizer(copy_tokenizer(tmp_path, **settings))


def test_special_tokens_map_of_older_models(tmp_path):
    directory = copy_tokenizer(tmp_path)
    (directory / "tokenizer_config.json").unlink()
    (directory / "special_tokens_map.json").write_text('{"eos_token": {"content": "</s>"}}')
    assert get_tokenizer(directory).eos_token_id == 2


def test_tokens_to_text():
    tokenizer = get_tokenizer(TINY / "llama-mha")
    ids = tokenizer.encode("Größe 🔥", add_special_tokens=False)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert any(token.startswith("<0x") for token in tokens)  # byte fallback
    assert tokenizer.convert_tokens_to_string(tokens) == "Größe 🔥"
    assert tokenizer.convert_ids_to_tokens([10_000]) == [""]


def test_truncation_and_padding_of_the_file_are_off(tmp_path):
    directory = copy_tokenizer(tmp_path)
    raw = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    raw.enable_truncation(4)
    raw.enable_padding(length=16)
    raw.save(str(directory / "tokenizer.json"))
    text = "one two three four five six"
    assert get_tokenizer(directory).encode(text) == get_tokenizer(TINY / "llama-mha").encode(text)


def test_half_of_a_surrogate_pair_is_no_text():
    with pytest.raises(ValueError, match=r"character 2 \('\\ud83d'\) is half of a surrogate"):
        get_tokenizer(TINY / "llama-mha").encode("ab\ud83dc")


def test_a_tokenizer_of_another_model():
    tokenizer = get_tokenizer(TINY / "llama-mha")
    check_vocabulary(tokenizer, 512)
    check_vocabulary(tokenizer, 600)  # padded rows are usual
    with pytest.raises(ValueError, match=r"ids up to 511, the model's vocabulary has 500"):
        check_vocabulary(tokenizer, 500)


def test_the_engine_refuses_a_tokenizer_of_another_model(tmp_path):
    directory = copy_tokenizer(tmp_path)
    raw = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    raw.add_tokens(["<one too many>"])
    raw.save(str(directory / "tokenizer.json"))
    with pytest.raises(ValueError, match="ids up to 512, the model's vocabulary has 512"):
        LLM(str(TINY / "llama-mha"), tokenizer=str(directory))


def test_a_directory_with_nothing_but_a_tokenizer(tmp_path):
    directory = copy_tokenizer(tmp_path)
    (directory / "config.json").unlink()
    assert get_tokenizer(directory).encode("a") == get_tokenizer(TINY / "llama-mha").encode("a")


def test_no_tokenizer(tmp_path):
    shutil.copy(TINY / "llama-mha" / "config.json", tmp_path)
    with pytest.raises(FileNotFoundError, match="no tokenizer.json.*skip_tokenizer_init"):
        get_tokenizer(tmp_path)


@pytest.mark.parametrize(("name", "text"), [
    ("tokenizer.json", "{"), ("tokenizer.json", "{}"), ("tokenizer.json", ""),
    ("tokenizer_config.json", "{"), ("tokenizer_config.json", "[]"),
    ("tokenizer_config.json", '{"eos_token": 2}'), ("special_tokens_map.json", "no"),
])
def test_broken_files_are_named(tmp_path, name, text):
    directory = copy_tokenizer(tmp_path)
    (directory / name).write_text(text)
    with pytest.raises(ValueError, match=name):
        get_tokenizer(directory)


# Tokenizers in GGUF files.


class FakeGGUF:
    """Metadata without a file."""

    path = "x.gguf"

    def __init__(self, **metadata):
        self.metadata = {f"tokenizer.ggml.{key}": value for key, value in metadata.items()}

    def get(self, key):
        return self.metadata[key]


def test_llama3_splits_numbers_in_threes_and_keeps_whole_words():
    tokens = ["1", "2", "3", "4", "12", "123", "Ġ", "a", "b", "Ġab"]
    tokenizer = Tokenizer(llama_tokenizer(FakeGGUF(
        model="gpt2", pre="llama-bpe", tokens=tokens, merges=["1 2", "12 3"])), {})
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("1234 ab")) == ["123", "4", "Ġab"]


def test_tokens_of_the_user_are_never_split_but_are_text():
    tokenizer = Tokenizer(llama_tokenizer(FakeGGUF(
        model="gpt2", tokens=["a", "b", "ba", "<c>"], merges=["b a"], token_type=[1, 1, 1, 4])), {})
    assert tokenizer.encode("ba<c>b") == [2, 3, 1]
    assert tokenizer.decode([2, 3, 1], skip_special_tokens=True) == "ba<c>b"


def test_a_gguf_file_may_ask_for_bos_or_forbid_the_leading_space():
    metadata = {"model": "llama", "tokens": ["<unk>", "<s>", "▁", "a", "▁a"],
                "scores": [0, 0, -2, -2, -1], "token_type": [2, 3, 1, 1, 1], "bos_token_id": 1}
    assert Tokenizer(llama_tokenizer(FakeGGUF(**metadata)), {}).encode("a") == [1, 4]
    bare = FakeGGUF(**metadata, add_bos_token=False, add_space_prefix=False)
    assert Tokenizer(llama_tokenizer(bare), {}).encode("a") == [3]


def test_merges_come_back_by_the_score_of_what_they_make():
    vocab = {"a": 0, "b": 1, "c": 2, "bc": 3, "ab": 4, "abc": 5}
    assert merges_from_scores(vocab, [0, 0, 0, -2, -1, -3]) == [
        ("a", "b"), ("b", "c"), ("a", "bc"), ("ab", "c")]


@pytest.mark.parametrize(("metadata", "message"), [
    ({"model": "bert"}, "kind 'bert'; known are gpt2, llama"),
    ({"model": "gpt2", "pre": "tekken"}, "splits text as 'tekken'"),
    ({"model": "gpt2", "tokens": ["a"], "merges": ["x y"]}, "broken tokenizer"),
    ({"model": "llama", "tokens": ["ab", "a", "b"], "scores": []}, "broken tokenizer"),
])
def test_tokenizers_that_cannot_be_built(metadata, message):
    with pytest.raises(ValueError, match=f"x.gguf.*{message}"):
        llama_tokenizer(FakeGGUF(**metadata))
