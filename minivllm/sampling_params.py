"""What a user asks of the sampler (mirrors ``vllm/sampling_params.py``).

Names, defaults and rules are vLLM's.  `logit_bias` is an addition (vLLM has it only in its
OpenAI server).
"""

import copy
import inspect
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minivllm.utils import of_kind, whole_number

_SAMPLING_EPS = 1e-5

# Takes the output tokens so far and the row of logits (vocab_size,), or prompt tokens, output
# tokens and logits; returns the logits to sample from.
LogitsProcessor = Callable[..., NDArray[np.float32]]


class SamplingType(IntEnum):
    """How the next token is chosen."""

    GREEDY = 0
    RANDOM = 1
    RANDOM_SEED = 2
    BEAM = 3


class SamplingParams:
    """Sampling parameters of one request.

    Parameters
    ----------
    n : int
        How many outputs to return.
    best_of : int, optional
        How many sequences to run, of which the best `n` are returned; the beam width if
        `use_beam_search`.  Default `n`.
    presence_penalty : float
        In [-2, 2].  Taken off the logit of each token that the output has already.
    frequency_penalty : float
        In [-2, 2].  Taken off the logit of a token once for each time that the output has it.
    repetition_penalty : float
        In (0, 2].  Divides the positive and multiplies the negative logits of tokens that prompt
        or output have already.
    temperature : float
        Divides the logits; 0 picks the most probable token (greedy).
    top_p : float
        In (0, 1].  Keep the smallest set of most probable tokens whose probabilities reach it.
    top_k : int
        Keep the `top_k` most probable tokens; -1 keeps all.
    min_p : float
        In [0, 1].  Drop tokens less probable than `min_p` times the most probable one.
    seed : int, optional
        Makes the draws of this request repeatable; -1 means None.
    use_beam_search : bool
        Search for the most probable outputs instead of drawing.
    length_penalty : float
        Exponent of the length that a beam's score is divided by.
    early_stopping : bool or "never"
        When a beam search ends: True, with `best_of` finished beams; False, when it looks
        unlikely that a better one comes; "never", when none can.
    stop : str or list of str, optional
        Texts that end the output.
    stop_token_ids : list of int, optional
        Tokens that end the output.
    include_stop_str_in_output : bool
        Leave what ended the output in its text.
    ignore_eos : bool
        Go on after the end-of-sequence token.
    max_tokens : int, optional
        Length limit of an output; None leaves only the model's limit.
    min_tokens : int
        No end-of-sequence or stop token before so many tokens.
    logprobs : int, optional
        Return log-probabilities of so many best tokens, and of the token itself, at each place
        of the output.
    prompt_logprobs : int, optional
        Return as many log-probabilities, and that of the token itself, at each place of the
        prompt.
    detokenize : bool
        Turn the output into text.
    skip_special_tokens : bool
        Leave special tokens out of the text.
    spaces_between_special_tokens : bool
        Without effect: only tokenizers without a fast implementation look at it.
    logits_processors : list of callable, optional
        Each takes (output ids, logits) or (prompt ids, output ids, logits) and returns logits.
    truncate_prompt_tokens : int, optional
        Use only the last so many tokens of the prompt.
    logit_bias : dict of int to float, optional
        Token id -> amount added to its logit, clamped to [-100, 100].

    Raises
    ------
    ValueError
        If a value is outside its range, or two of them contradict each other.
    """

    def __init__(
        self,
        n: int = 1,
        best_of: int | None = None,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        repetition_penalty: float = 1.0,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = -1,
        min_p: float = 0.0,
        seed: int | None = None,
        use_beam_search: bool = False,
        length_penalty: float = 1.0,
        early_stopping: bool | str = False,
        stop: str | list[str] | None = None,
        stop_token_ids: list[int] | None = None,
        include_stop_str_in_output: bool = False,
        ignore_eos: bool = False,
        max_tokens: int | None = 16,
        min_tokens: int = 0,
        logprobs: int | None = None,
        prompt_logprobs: int | None = None,
        detokenize: bool = True,
        skip_special_tokens: bool = True,
        spaces_between_special_tokens: bool = True,
        logits_processors: list[LogitsProcessor] | None = None,
        truncate_prompt_tokens: int | None = None,
        logit_bias: dict[int, float] | None = None,
    ) -> None:
        self.n = n
        self.best_of = n if best_of is None else best_of
        self.presence_penalty = presence_penalty
        self.frequency_penalty = frequency_penalty
        self.repetition_penalty = repetition_penalty
        self.temperature = temperature
        self.top_p = top_p
        self.top_k = top_k
        self.min_p = min_p
        self.seed = seed
        self.use_beam_search = use_beam_search
        self.length_penalty = length_penalty
        self.early_stopping = early_stopping
        self.stop = [stop] if isinstance(stop, str) else _as_list("stop", stop)
        self.stop_token_ids = _as_list("stop_token_ids", stop_token_ids)
        self.include_stop_str_in_output = include_stop_str_in_output
        self.ignore_eos = ignore_eos
        self.max_tokens = max_tokens
        self.min_tokens = min_tokens
        self.logprobs = logprobs
        self.prompt_logprobs = prompt_logprobs
        self.detokenize = detokenize
        self.skip_special_tokens = skip_special_tokens
        self.spaces_between_special_tokens = spaces_between_special_tokens
        self.logits_processors = (None if logits_processors is None
                                  else _as_list("logits_processors", logits_processors))
        self.truncate_prompt_tokens = truncate_prompt_tokens
        self.logit_bias = logit_bias

        self._check_kinds()
        self._verify()
        if not use_beam_search and temperature < _SAMPLING_EPS:
            # Greedy: with one survivor the filters have nothing to do.
            self.top_p, self.top_k, self.min_p = 1.0, -1, 0.0
        # Characters to hold back from a streaming caller until it is clear whether they are the
        # beginning of a stop string.
        holds_back = bool(self.stop) and not include_stop_str_in_output
        self.output_text_buffer_length = max(map(len, self.stop)) - 1 if holds_back else 0
        # Tokens that `min_tokens` forbids; the engine adds the end-of-sequence token.
        self.all_stop_token_ids = set(self.stop_token_ids)

    def _check_kinds(self) -> None:
        """Refuse text where a number belongs, and the like; NumPy's numbers become Python's."""
        for name, annotation in _KINDS.items():
            setattr(self, name, of_kind(name, getattr(self, name), annotation))
        if self.seed == -1:
            self.seed = None
        self.stop = [of_kind("each stop", text, str) for text in self.stop]
        self.stop_token_ids = [whole_number("each of stop_token_ids", token_id)
                               for token_id in self.stop_token_ids]
        for processor in self.logits_processors or ():
            if not callable(processor):
                raise ValueError(f"each of logits_processors must be callable, got {processor!r}.")

    def _verify(self) -> None:
        for rule_holds, message in self._rules():
            if not rule_holds:
                raise ValueError(message)

    def _rules(self) -> list[tuple[bool, str]]:
        """Return every rule as (does it hold?, what to say if not), general rules first."""
        max_tokens = self.max_tokens
        truncate = self.truncate_prompt_tokens
        general = [
            (self.n >= 1, f"n must be at least 1, got {self.n}."),
            (self.best_of >= self.n,
             f"best_of must be at least n, got best_of={self.best_of} and n={self.n}."),
            (-2.0 <= self.presence_penalty <= 2.0,
             f"presence_penalty must be in [-2, 2], got {self.presence_penalty}."),
            (-2.0 <= self.frequency_penalty <= 2.0,
             f"frequency_penalty must be in [-2, 2], got {self.frequency_penalty}."),
            (0.0 < self.repetition_penalty <= 2.0,
             f"repetition_penalty must be in (0, 2], got {self.repetition_penalty}."),
            (self.temperature >= 0.0, f"temperature must not be negative, got {self.temperature}."),
            (0.0 < self.top_p <= 1.0, f"top_p must be in (0, 1], got {self.top_p}."),
            (self.top_k == -1 or self.top_k >= 1,
             f"top_k must be -1 (keep all) or at least 1, got {self.top_k}."),
            (0.0 <= self.min_p <= 1.0, f"min_p must be in [0, 1], got {self.min_p}."),
            (max_tokens is None or max_tokens >= 1,
             f"max_tokens must be at least 1, got {max_tokens}."),
            (self.min_tokens >= 0, f"min_tokens must not be negative, got {self.min_tokens}."),
            (max_tokens is None or self.min_tokens <= max_tokens,
             f"min_tokens must not exceed max_tokens={max_tokens}, got {self.min_tokens}."),
            (self.logprobs is None or self.logprobs >= 0,
             f"logprobs must not be negative, got {self.logprobs}."),
            (self.prompt_logprobs is None or self.prompt_logprobs >= 0,
             f"prompt_logprobs must not be negative, got {self.prompt_logprobs}."),
            (truncate is None or truncate >= 1,
             f"truncate_prompt_tokens must be at least 1, got {truncate}."),
            (all(self.stop), "stop must not contain an empty string."),
            (self.detokenize or not self.stop,
             "stop strings need the text: set detokenize=True to use stop."),
        ]
        return general + (self._beam_rules() if self.use_beam_search else self._other_rules())

    def _beam_rules(self) -> list[tuple[bool, str]]:
        return [
            # Beyond, the power of a length may be more than a float holds.
            (abs(self.length_penalty) <= 50,
             f"length_penalty must be in [-50, 50], got {self.length_penalty}."),
            (self.best_of > 1,
             f"best_of must be greater than 1 when using beam search, got {self.best_of}."),
            (self.temperature <= _SAMPLING_EPS,
             f"temperature must be 0 when using beam search, got {self.temperature}."),
            (self.top_p >= 1.0 - _SAMPLING_EPS,
             f"top_p must be 1 when using beam search, got {self.top_p}."),
            (self.top_k == -1, f"top_k must be -1 when using beam search, got {self.top_k}."),
            (self.early_stopping in (True, False, "never"),
             f"early_stopping must be True, False or 'never', got {self.early_stopping!r}."),
        ]

    def _other_rules(self) -> list[tuple[bool, str]]:
        greedy = self.temperature < _SAMPLING_EPS
        return [
            (self.early_stopping is False, "early_stopping is for beam search only."),
            (abs(self.length_penalty - 1.0) <= _SAMPLING_EPS,
             "length_penalty is for beam search only."),
            (not greedy or self.best_of == 1,
             f"best_of must be 1 when using greedy sampling, got {self.best_of}: all would be "
             "the same. Set a temperature."),
        ]

    def update_from_generation_config(self, generation_config: dict[str, Any]) -> None:
        """Add the end-of-sequence tokens of a model's ``generation_config.json``.

        All of them end the output, and `min_tokens` forbids all of them (vLLM 0.5.0.post1 lets
        the second and later ones through).
        """
        eos_ids = generation_config.get("eos_token_id")
        if self.ignore_eos or eos_ids is None:
            return
        eos_ids = [eos_ids] if isinstance(eos_ids, int) else eos_ids
        self.stop_token_ids = list(dict.fromkeys([*self.stop_token_ids, *eos_ids]))
        self.all_stop_token_ids.update(eos_ids)

    @cached_property
    def sampling_type(self) -> SamplingType:
        """How the next token is chosen."""
        if self.use_beam_search:
            return SamplingType.BEAM
        if self.temperature < _SAMPLING_EPS:
            return SamplingType.GREEDY
        return SamplingType.RANDOM if self.seed is None else SamplingType.RANDOM_SEED

    def clone(self) -> "SamplingParams":
        """Return a deep copy that shares the logits processors (they may be large)."""
        shared = {id(processor): processor for processor in self.logits_processors or ()}
        return copy.deepcopy(self, memo=shared)

    def __repr__(self) -> str:
        hidden = ("output_text_buffer_length", "all_stop_token_ids", "sampling_type")
        fields = (f"{name}={value!r}" for name, value in vars(self).items() if name not in hidden)
        return f"SamplingParams({', '.join(fields)})"


# What each parameter is; those that are left out have rules of their own.
_KINDS = {name: parameter.annotation
          for name, parameter in inspect.signature(SamplingParams).parameters.items()
          if name not in ("early_stopping", "stop", "stop_token_ids", "logits_processors",
                          "logit_bias")}


def _as_list(name: str, values: Any) -> list[Any]:
    """Return some values as a list, None as an empty one."""
    if values is None:
        return []
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list, got {values!r}.")
    return list(values)
