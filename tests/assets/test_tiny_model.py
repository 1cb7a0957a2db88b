"""Tests of the built-in tiny model's files (not of the engine).

They need only numpy, tokenizers and safetensors. What the model says through
the engine is tested elsewhere.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
from safetensors import safe_open
from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent
# The corpus modules are scripts next to this file and not a package.
sys.path.insert(0, str(HERE))

import corpus  # noqa: E402
import numpy_forward  # noqa: E402
from corpus_facts import fact_checks  # noqa: E402

MODEL_DIR = HERE.parents[1] / "minivllm" / "assets" / "tiny"


def read_json(name, directory=MODEL_DIR):
    """Return the contents of a JSON file."""
    with open(directory / name, encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def tokenizer():
    """Return the tokenizer of the tiny model."""
    return Tokenizer.from_file(str(MODEL_DIR / "tokenizer.json"))


@pytest.fixture(scope="module")
def model():
    """Return config and weights of the tiny model."""
    return numpy_forward.load_model(MODEL_DIR)


def test_files_are_there_and_small():
    names = {path.name for path in MODEL_DIR.iterdir() if path.is_file()}
    assert names >= {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json", "README.md"}
    assert (MODEL_DIR / "model.safetensors").stat().st_size <= 6_000_000
    assert sum(path.stat().st_size for path in MODEL_DIR.iterdir()) <= 7_000_000


def test_weights_are_float16_and_few():
    config = read_json("config.json")
    total = 0
    with safe_open(MODEL_DIR / "model.safetensors", framework="numpy") as file:
        names = set(file.keys())
        for name in names:
            array = file.get_tensor(name)
            assert array.dtype == np.float16, name
            assert np.isfinite(array).all(), name
            total += array.size
    assert 1_000_000 <= total <= 3_000_000
    assert "lm_head.weight" not in names
    # Embedding, last norm, and nine weights in each layer.
    assert len(names) == 2 + 9 * config["num_hidden_layers"]


def test_weight_shapes_fit_the_config(model):
    config, weights = model
    hidden, size = config["hidden_size"], config["head_dim"]
    prefix = "model.layers.0"
    assert weights["model.embed_tokens.weight"].shape == (config["vocab_size"], hidden)
    assert weights[f"{prefix}.self_attn.q_proj.weight"].shape == (
        config["num_attention_heads"] * size, hidden)
    assert weights[f"{prefix}.self_attn.k_proj.weight"].shape == (
        config["num_key_value_heads"] * size, hidden)
    assert weights[f"{prefix}.mlp.down_proj.weight"].shape == (
        hidden, config["intermediate_size"])


def test_config_is_a_llama_of_the_4x_style():
    config = read_json("config.json")
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["model_type"] == "llama"
    assert config["torch_dtype"] == "float16"
    assert config["tie_word_embeddings"] is True
    assert config["rms_norm_eps"] == 1e-5
    assert config["rope_theta"] == 10000.0
    assert config["num_attention_heads"] % config["num_key_value_heads"] == 0
    assert config["num_key_value_heads"] < config["num_attention_heads"]
    assert config["max_position_embeddings"] >= 512


def test_end_token_is_the_same_everywhere(tokenizer):
    end = tokenizer.token_to_id(corpus.END)
    assert end == 0
    assert read_json("config.json")["eos_token_id"] == end
    assert read_json("generation_config.json")["eos_token_id"] == end
    settings = read_json("tokenizer_config.json")
    assert settings["eos_token"] == settings["pad_token"] == corpus.END
    assert settings["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert "bos_token" not in settings
    assert tokenizer.encode("The end." + corpus.END).ids[-1] == end


def test_vocabulary_size(tokenizer):
    assert tokenizer.get_vocab_size() == read_json("config.json")["vocab_size"]
    assert 1000 <= tokenizer.get_vocab_size() <= 4096


@pytest.mark.parametrize(("prompt", "pieces"), [
    ("Hello, my name is", ["Hello", ",", " my", " name", " is"]),
    ("The future of AI is", ["The", " future", " of", " AI", " is"]),
    ("The life is", ["The", " life", " is"]),
    ("The capital of France is", ["The", " capital", " of", " France", " is"]),
    ("The president of the United States is",
     ["The", " president", " of", " the", " United", " States", " is"]),
])
def test_prompts_are_one_token_per_word_or_mark(tokenizer, prompt, pieces):
    ids = tokenizer.encode(prompt).ids
    assert [tokenizer.decode([token]) for token in ids] == pieces


@pytest.mark.parametrize("text", [
    "Hello, my name is Lily.", "naïve café, Füße, señor", "Привет, мир!", "こんにちは世界",
    "🐈‍⬛ and 👩‍🚀", "tabs\tand\n\nlines \r\n", "  two  spaces  ", "x = {1: [2, 3]}; y != 'z'",
    "\u0000\u007f\uffff", "العربية", "it's we'll I'm 12345",
])
def test_any_text_makes_the_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_every_byte_is_a_token(tokenizer):
    single = [token for token in tokenizer.get_vocab() if len(token) == 1]
    assert len(single) == 256


def test_corpus_is_the_same_for_the_same_seed():
    first, again = list(corpus.documents(20, 7)), list(corpus.documents(20, 7))
    assert first == again
    assert first != list(corpus.documents(20, 8))
    assert not any(mark in text for text in first for mark in "{}[]|")


def test_facts_file_comes_from_the_corpus():
    facts = read_json("facts.json", HERE)
    assert facts == fact_checks()
    answers = {fact["prompt"]: fact["expected"] for fact in facts}
    assert len(answers) == len(facts)
    assert answers["The capital of France is"] == " Paris"
    assert answers["3 plus 4 is"] == " 7"


@pytest.mark.parametrize(("prompt", "expected"), [
    ("The capital of France is", " Paris"), ("3 plus 4 is", " 7"),
    ("The day after Monday is", " Tuesday"), ("The colour of grass is", " green"),
    ("The cow says", " moo"), ("A baby dog is called a", " puppy"),
])
def test_exported_weights_know_facts(tokenizer, model, prompt, expected):
    ids = tokenizer.encode(prompt).ids
    answer = tokenizer.encode(expected).ids
    out = numpy_forward.greedy(*model, ids, len(answer))
    assert tokenizer.decode(out[len(ids):]) == expected


def test_names_after_a_greeting_are_uncertain(tokenizer, model):
    logits = numpy_forward.forward(*model, tokenizer.encode("Hello, my name is").ids)[-1]
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    # Many names are possible, and none of them is nearly sure.
    assert chances.max() < 0.3
    assert np.exp(-(chances * np.log(chances + 1e-12)).sum()) > 15
