"""Checking a request before anything is queued.

vLLM spreads these checks over its engine, its server and its scheduler, or has none; here every
mistake of a user is a ValueError of `LLMEngine.add_request`.
"""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from minivllm.config import ModelConfig, SchedulerConfig
from minivllm.inputs import LLMInputs, PromptInputs
from minivllm.model_executor.layers.logits_processor import check_logit_bias
from minivllm.sampling_params import SamplingParams, SamplingType
from minivllm.transformers_utils.tokenizer import Tokenizer


def process_prompt(inputs: PromptInputs, tokenizer: Tokenizer | None, vocab_size: int,
                   truncate_prompt_tokens: int | None = None) -> LLMInputs:
    """Return the prompt as token ids, and as text if it came as text.

    Raises
    ------
    ValueError
        If it is empty, of another type, or has ids outside ``[0, vocab_size)``.
    """
    if isinstance(inputs, str):
        inputs = {"prompt": inputs}
    if not isinstance(inputs, Mapping) or not {"prompt", "prompt_token_ids"} & inputs.keys():
        raise ValueError("a prompt must be a str, {'prompt': str} or {'prompt_token_ids': "
                         f"list of int}}, got {inputs!r}.")
    prompt: Any = inputs.get("prompt")
    token_ids: Any = inputs.get("prompt_token_ids")
    if prompt is not None and not isinstance(prompt, str):
        raise ValueError(f"the text of a prompt must be a str, got {type(prompt).__name__}.")
    if token_ids is None:
        if prompt is None:
            raise ValueError("a prompt must have a text or token ids, both are None.")
        if tokenizer is None:
            raise ValueError("there is no tokenizer (skip_tokenizer_init=True): pass "
                             "prompt_token_ids instead of text.")
        token_ids = tokenizer.encode(prompt)
    token_ids = _check_token_ids(token_ids, vocab_size)
    if truncate_prompt_tokens is not None:
        token_ids = token_ids[-truncate_prompt_tokens:]
    return LLMInputs(prompt_token_ids=token_ids, prompt=prompt)


def _check_token_ids(token_ids: Any, vocab_size: int) -> list[int]:
    try:
        entries = list(token_ids)
    except TypeError:
        raise ValueError(f"prompt_token_ids must be a list of int, got {token_ids!r}.") from None
    if not entries:
        raise ValueError("the prompt is empty: it has no tokens to continue.")
    checked = []
    for entry in entries:
        if not isinstance(entry, Integral) or isinstance(entry, bool):
            raise ValueError(f"prompt_token_ids must be whole numbers, got {entry!r}.")
        token_id = int(entry)
        if not 0 <= token_id < vocab_size:
            raise ValueError(f"token id {token_id} is outside the vocabulary: ids are 0 to "
                             f"{vocab_size - 1}.")
        checked.append(token_id)
    return checked


def check_sampling_params(params: SamplingParams, model_config: ModelConfig,
                          scheduler_config: SchedulerConfig) -> None:
    """Check `params` against the engine's limits.

    Raises
    ------
    ValueError
        Naming the parameter, its value and the limit.
    """
    for name in ("logprobs", "prompt_logprobs"):
        number = getattr(params, name)
        if number is not None and number > model_config.max_logprobs:
            raise ValueError(f"{name} must be at most {model_config.max_logprobs} (max_logprobs), "
                             f"got {number}.")
    if params.best_of > scheduler_config.max_num_seqs:
        # vLLM queues such a request for ever, and all behind it.
        raise ValueError(f"best_of ({params.best_of}; default n, the beam width) must not exceed "
                         f"max_num_seqs ({scheduler_config.max_num_seqs}): all its sequences run "
                         "in one step.")
    check_logit_bias(params.logit_bias, model_config.get_vocab_size())


def make_generator(params: SamplingParams, engine_seed: int,
                   request_number: int) -> np.random.Generator | None:
    """Return the request's own source of random numbers, None if it draws none.

    It belongs to the request alone, so draws do not depend on neighbours, batch order or
    preemption.  Without a seed it is derived from the engine's seed and the request's number.
    """
    if params.sampling_type is SamplingType.RANDOM_SEED:
        # Seeds may be negative, as in torch; NumPy wants them unsigned.
        return np.random.default_rng((params.seed or 0) % (1 << 64))
    if params.sampling_type is SamplingType.RANDOM:
        return np.random.default_rng([engine_seed % (1 << 64), request_number])
    return None
