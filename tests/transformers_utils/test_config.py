"""config.json of every family and form, under one set of names."""

import json

import pytest

from minivllm.model_executor.models.llama import LlamaForCausalLM
from minivllm.transformers_utils.config import (
    FAMILIES,
    Family,
    get_config,
    get_generation_config,
    normalize_config,
)

LLAMA = {"architectures": ["LlamaForCausalLM"], "vocab_size": 512, "hidden_size": 64,
         "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
GPT2 = {"architectures": ["GPT2LMHeadModel"], "vocab_size": 512, "n_embd": 64, "n_layer": 2,
        "n_head": 4, "n_inner": None, "n_positions": 256}
QWEN2 = LLAMA | {"architectures": ["Qwen2ForCausalLM"], "num_key_value_heads": 2}


@pytest.mark.parametrize(("name", "expected"), [
    ("llama-mha", {"num_key_value_heads": 4, "head_dim": 16, "rope_theta": 10000.0,
                   "rope_scaling": None, "tie_word_embeddings": False, "sliding_window": None}),
    ("llama-gqa-linear-bf16", {"rope_scaling": {"rope_type": "linear", "factor": 2.0},
                               "max_model_len": 512}),
    ("llama-rope3-sharded", {"rope_theta": 500000.0, "max_model_len": 256}),
    ("qwen2-tied", {"tie_word_embeddings": True, "layer_windows": [None, None],
                    "sliding_window": None}),
    ("qwen3", {"head_dim": 32, "rope_theta": 1000000.0, "rope_scaling": None}),
    ("mistral-swa-f16", {"sliding_window": 24, "layer_windows": [24, 24]}),
    ("opt-post-proj", {"intermediate_size": 128, "tie_word_embeddings": True,
                       "word_embed_proj_dim": 32, "num_key_value_heads": 4}),
    ("gpt2", {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
              "intermediate_size": 256, "max_position_embeddings": 256,
              "tie_word_embeddings": True}),
])
def test_golden_configs(tiny_dir, name, expected):
    config = get_config(tiny_dir / name)
    assert {key: getattr(config, key) for key in expected} == expected


def test_old_and_new_form_of_rotary_embeddings_mean_the_same():
    old = normalize_config(LLAMA | {"rope_theta": 5e5, "rope_scaling": {
        "type": "linear", "factor": 4.0}})
    new = normalize_config(LLAMA | {"rope_parameters": {
        "rope_theta": 5e5, "rope_type": "linear", "factor": 4.0}})
    assert old.rope_theta == new.rope_theta == 5e5
    assert old.rope_scaling == new.rope_scaling == {"rope_type": "linear", "factor": 4.0}


@pytest.mark.parametrize(("scaling", "expected"), [
    (None, 2048),
    ({"rope_type": "dynamic", "factor": 2.0}, 4096),
    ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 512}, 2048),
    ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}, 4096)])
def test_the_longest_text_follows_the_rotary_scaling(scaling, expected):
    config = normalize_config(LLAMA | {"max_position_embeddings": 2048, "rope_scaling": scaling})
    assert config.max_model_len == expected


@pytest.mark.parametrize(("extra", "windows"), [
    ({}, [None, None]),  # Qwen2 does not use its window unless told to
    ({"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0}, [8, 8]),
    ({"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, [None, 8]),
    ({"use_sliding_window": True, "sliding_window": 8,
      "layer_types": ["sliding_attention", "full_attention"]}, [8, None]),
    ({"use_sliding_window": True, "sliding_window": None, "max_window_layers": 0}, [None, None])])
def test_windows_of_layers(extra, windows):
    config = normalize_config(QWEN2 | extra)
    assert config.layer_windows == windows
    assert config.sliding_window == (windows[0] if windows[0] == windows[1] else None)


@pytest.mark.parametrize(("extra", "window"), [({}, 4096), ({"sliding_window": None}, None)])
def test_a_mistral_has_a_window_unless_it_says_null(extra, window):
    config = normalize_config(
        LLAMA | {"architectures": ["MistralForCausalLM"], "num_key_value_heads": 2} | extra)
    assert config.sliding_window == window


@pytest.mark.parametrize("values", [LLAMA, GPT2])
@pytest.mark.parametrize("broken", [None, 0, "64", 2.5])
def test_a_missing_or_broken_key_is_named_as_the_file_names_it(values, broken):
    for key in ("vocab_size", "hidden_size", "n_embd", "num_hidden_layers", "n_layer", "n_head"):
        if key in values:
            with pytest.raises(ValueError, match=f"some/config.json: key '{key}'"):
                normalize_config(values | {key: broken}, "some/config.json")


@pytest.mark.parametrize(("extra", "message"), [
    ({"num_key_value_heads": 3}, "multiple of num_key_value_heads"),
    ({"hidden_size": 66}, "multiple of num_attention_heads"),
    ({"rope_parameters": {"full_attention": {}, "sliding_attention": {}}}, "differ between layers"),
])
def test_values_that_contradict_each_other(extra, message):
    with pytest.raises(ValueError, match=message):
        normalize_config(LLAMA | extra)


@pytest.mark.parametrize(("values", "message"), [
    (GPT2 | {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx must be False"),
    (GPT2 | {"scale_attn_weights": None}, "scale_attn_weights must be True, False is not"),
    (LLAMA | {"hidden_act": "gelu"}, "hidden_act must be silu, gelu is not supported")])
def test_switches_that_are_not_supported(values, message):
    with pytest.raises(ValueError, match=message):
        normalize_config(values)


def test_no_config_json(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no config.json"):
        get_config(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "\"text\"", "\x00"])
def test_a_config_json_that_is_none(tmp_path, text):
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"config\.json"):
        get_config(tmp_path)


def test_generation_config_is_optional(tmp_path):
    assert get_generation_config(tmp_path) == {}
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, 2]}),
                                                     encoding="utf-8")
    assert get_generation_config(tmp_path) == {"eos_token_id": [1, 2]}


@pytest.mark.parametrize(("extra", "says"), [
    ({"num_key_value_heads": 0}, "'num_key_value_heads' should be a positive number, it is 0"),
    ({"head_dim": -1}, "'head_dim' should be a positive number, it is -1"),
    ({"vocab_size": True}, "'vocab_size' should be a positive number, it is True"),
    ({"intermediate_size": 1.5}, "'intermediate_size' should be a positive number, it is 1.5"),
    ({"max_position_embeddings": None}, "'max_position_embeddings' .* it is missing"),
    ({"rms_norm_eps": "x"}, "'rms_norm_eps' should be a positive number, it is 'x'"),
    ({"rope_theta": float("nan")}, "'rope_theta' should be a positive number, it is nan"),
    ({"sliding_window": -1}, "'sliding_window' should be a positive number, it is -1"),
    ({"rope_scaling": "linear"}, "rope_scaling should be an object, it is 'linear'"),
    ({"rope_scaling": {"rope_type": "linear", "factor": "2"}}, "factor of rope_scaling"),
    ({"partial_rotary_factor": 3}, "partial_rotary_factor should be above 0 and at most 1"),
    ({"layer_types": ["full_attention"]}, "layer_types should list 2 layers"),
    ({"layer_types": ["full_attention", "linear"]}, "layer_types .* full_attention or sliding"),
    ({"rope_theta": None}, "'rope_theta' should be a positive number, it is missing"),
    ({"rope_parameters": {"rope_theta": "x"}}, "rope_theta of rope_scaling .* it is 'x'"),
    ({"rope_scaling": {"rope_type": "linear", "factor": True}}, "factor .* it is True"),
    ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "beta_fast": "x"}}, "beta_fast .* 'x'"),
    ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "mscale": "x"}}, "mscale .* got 'x'"),
    ({"rope_scaling": {"rope_type": "llama3", "low_freq_factor": -1}}, "low_freq_factor .* -1"),
    ({"rope_scaling": {"rope_type": ["yarn"]}}, r"rope_type must be a str, got \['yarn'\]"),
    ({"partial_rotary_factor": True}, "partial_rotary_factor must be a number, got True"),
    ({"tie_word_embeddings": "false"}, "'tie_word_embeddings' must be True or False, got 'false'"),
    ({"hidden_act": None}, "'hidden_act' must be a str, got None"),
    ({"architectures": 7}, "architectures should be a list of names, it is 7"),
    ({"architectures": [7]}, r"architectures should be a list of names, it is \[7\]"),
])
def test_values_of_the_wrong_kind_are_named(extra, says):
    with pytest.raises(ValueError, match=says):
        normalize_config(LLAMA | extra)


@pytest.mark.parametrize(("values", "says"), [
    (GPT2 | {"layer_norm_epsilon": "x"}, "'layer_norm_epsilon' should be .*, it is 'x'"),
    (GPT2 | {"activation_function": 7}, "'activation_function' must be a str, got 7"),
    (QWEN2 | {"max_window_layers": "1"}, "'max_window_layers' must be a whole number, got '1'"),
    (QWEN2 | {"use_sliding_window": 1}, "'use_sliding_window' must be True or False, got 1")])
def test_values_must_be_of_the_kind_of_their_defaults(values, says):
    with pytest.raises(ValueError, match=says):
        normalize_config(values)


def test_a_switch_that_is_null_is_off():
    config = normalize_config(LLAMA | {"attention_bias": None, "tie_word_embeddings": None})
    assert config.attention_bias is False and config.tie_word_embeddings is False
    config = normalize_config(GPT2 | {"add_cross_attention": None})  # supported if off
    assert config.add_cross_attention is False


def test_a_scaling_without_its_factor_is_named_when_the_model_is_made():
    config = normalize_config(LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": None}})
    assert config.max_model_len == 2048
    with pytest.raises(ValueError, match="'linear' in config.json needs 'factor'"):
        LlamaForCausalLM(config)


def test_a_fixed_value_goes_by_our_name_and_may_be_one_of_several(monkeypatch):
    family = Family(names={"hidden_act": "activation_function"},
                    defaults={"hidden_act": "gelu"},
                    fixed={"hidden_act": ("gelu", "gelu_pytorch_tanh")})
    monkeypatch.setitem(FAMILIES, "SomeForCausalLM", family)
    values = LLAMA | {"architectures": ["SomeForCausalLM"], "max_position_embeddings": 64}
    assert normalize_config(values).hidden_act == "gelu"
    config = normalize_config(values | {"activation_function": "gelu_pytorch_tanh"})
    assert config.hidden_act == "gelu_pytorch_tanh"
    with pytest.raises(ValueError, match="activation_function must be gelu or gelu_pytorch_tanh, "
                                         "relu is not supported"):
        normalize_config(values | {"activation_function": "relu"})


@pytest.mark.parametrize("eos_token_id", [1.5, "2", [1, None], [[1]], True, {}])
def test_an_end_that_is_no_token_id_is_named(tmp_path, eos_token_id):
    file = tmp_path / "generation_config.json"
    file.write_text(json.dumps({"eos_token_id": eos_token_id}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"generation_config.json: eos_token_id should be "):
        get_generation_config(tmp_path)
