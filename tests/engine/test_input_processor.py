"""What `LLMEngine.add_request` refuses, and what it says."""

import numpy as np
import pytest

from minivllm.config import ModelConfig, SchedulerConfig
from minivllm.engine.input_processor import (
    check_sampling_params,
    make_generator,
    process_prompt,
)
from minivllm.sampling_params import SamplingParams
from minivllm.transformers_utils.config import PretrainedConfig

VOCAB_SIZE = 50


def model_config() -> ModelConfig:
    config = PretrainedConfig(vocab_size=VOCAB_SIZE, max_position_embeddings=64)
    return ModelConfig(model="m", hf_config=config, skip_tokenizer_init=True, max_logprobs=5)


def scheduler_config() -> SchedulerConfig:
    return SchedulerConfig(max_num_batched_tokens=64, max_num_seqs=4, max_model_len=64)


@pytest.mark.parametrize("prompt", [
    {"prompt_token_ids": [1, 2]},
    {"prompt_token_ids": (1, 2)},
    {"prompt_token_ids": np.array([1, 2])},
    {"prompt": "hello", "prompt_token_ids": [1, 2]},
])
def test_good_prompts_become_lists_of_int(prompt) -> None:
    inputs = process_prompt(prompt, None, VOCAB_SIZE)
    assert inputs["prompt_token_ids"] == [1, 2]
    assert all(type(token_id) is int for token_id in inputs["prompt_token_ids"])
    assert inputs["prompt"] == prompt.get("prompt")


@pytest.mark.parametrize("prompt, mentions", [
    ({"prompt_token_ids": []}, "empty"),
    ({"prompt_token_ids": [0, VOCAB_SIZE]}, "token id 50 is outside the vocabulary"),
    ({"prompt_token_ids": [-1]}, "token id -1 is outside the vocabulary"),
    ({"prompt_token_ids": [1.5]}, "whole numbers, got 1.5"),
    ({"prompt_token_ids": [True]}, "whole numbers, got True"),
    ({"prompt_token_ids": ["1"]}, "whole numbers, got '1'"),
    ({"prompt_token_ids": 7}, "list of int, got 7"),
    ({"prompt": 7, "prompt_token_ids": [1]}, "must be a str, got int"),
    ({"prompt": None}, "both are None"),
    ({"text": "hello"}, "a prompt must be a str"),
    (None, "a prompt must be a str"),
    (7, "a prompt must be a str"),
    ("hello", "there is no tokenizer"),
])
def test_bad_prompts_are_one_clear_error(prompt, mentions) -> None:
    with pytest.raises(ValueError, match=mentions):
        process_prompt(prompt, None, VOCAB_SIZE)


def test_truncation_keeps_the_last_tokens() -> None:
    inputs = process_prompt({"prompt_token_ids": [1, 2, 3, 4]}, None, VOCAB_SIZE, 3)
    assert inputs["prompt_token_ids"] == [2, 3, 4]


@pytest.mark.parametrize("params, mentions", [
    (SamplingParams(logprobs=6), r"logprobs must be at most 5 .*got 6"),
    (SamplingParams(prompt_logprobs=6), r"prompt_logprobs must be at most 5"),
    (SamplingParams(n=5), r"best_of \(5.*max_num_seqs \(4\)"),
    (SamplingParams(best_of=5), r"best_of \(5.*max_num_seqs \(4\)"),
    (SamplingParams(use_beam_search=True, best_of=5, temperature=0), r"best_of \(5"),
    (SamplingParams(logit_bias={VOCAB_SIZE: 1.0}), "50"),
])
def test_parameters_beyond_the_engine_are_refused(params, mentions) -> None:
    with pytest.raises(ValueError, match=mentions):
        check_sampling_params(params, model_config(), scheduler_config())


def test_an_unknown_sampling_parameter_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="temprature"):
        SamplingParams(temprature=1.0)


def test_generators_depend_on_seed_or_request_number_only() -> None:
    def draw(params: SamplingParams, engine_seed: int, request_number: int) -> float:
        generator = make_generator(params, engine_seed, request_number)
        assert generator is not None
        return generator.random()

    seeded, unseeded = SamplingParams(seed=7), SamplingParams()
    assert draw(seeded, 0, 1) == draw(seeded, 5, 9)
    assert draw(unseeded, 0, 1) == draw(unseeded, 0, 1)
    assert draw(unseeded, 0, 1) != draw(unseeded, 0, 2)
    assert draw(unseeded, 0, 1) != draw(unseeded, 1, 1)
    assert draw(SamplingParams(seed=-3), 0, 0) == draw(SamplingParams(seed=-3), 0, 0)
    assert make_generator(SamplingParams(temperature=0), 0, 0) is None
