"""The tokens of a sequence, and what is said of single tokens."""

import enum
from dataclasses import dataclass

from minivllm.utils import InternalError


@dataclass(slots=True)
class Logprob:
    """Log-probability, rank (1 is the most probable) and text of one token at one place."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


# One dict (token id -> Logprob) for each place; None where there is nothing to say: a prompt's
# first token has nothing before it.
PromptLogprobs = list[dict[int, Logprob] | None]
SampleLogprobs = list[dict[int, Logprob]]


class SequenceStage(enum.Enum):
    """Whether tokens other than the last are still to be computed."""

    PREFILL = enum.auto()
    DECODE = enum.auto()


class SequenceData:
    """The tokens of a sequence and how many of them have been through the model.

    Parameters
    ----------
    prompt_token_ids : list of int
        Never changed.
    output_token_ids : list of int, optional
        What the model has added.

    Attributes
    ----------
    cumulative_logprob : float
        Sum of the log-probabilities of the output tokens.
    stage : SequenceStage
        PREFILL until all tokens are computed, then DECODE.
    is_prefill : bool
        True until all tokens are computed; then decode begins, with one new token a step.
    """

    __slots__ = ("prompt_token_ids", "output_token_ids", "cumulative_logprob",
                 "is_prefill", "_num_computed_tokens", "_prompt_token_ids_tuple")

    def __init__(self, prompt_token_ids: list[int],
                 output_token_ids: list[int] | None = None) -> None:
        self.prompt_token_ids = prompt_token_ids
        self.output_token_ids = [] if output_token_ids is None else output_token_ids
        self.cumulative_logprob = 0.0
        self._num_computed_tokens = 0
        self.is_prefill = True
        self._prompt_token_ids_tuple = tuple(prompt_token_ids)

    def append_token_id(self, token_id: int, logprob: float) -> None:
        """Add an output token."""
        self.output_token_ids.append(token_id)
        self.cumulative_logprob += logprob

    def get_len(self) -> int:
        """Return the number of prompt and output tokens."""
        return len(self.prompt_token_ids) + len(self.output_token_ids)

    def get_prompt_len(self) -> int:
        """Return the number of prompt tokens."""
        return len(self.prompt_token_ids)

    def get_output_len(self) -> int:
        """Return the number of output tokens."""
        return len(self.output_token_ids)

    def get_token_ids(self) -> list[int]:
        """Return prompt and output tokens."""
        return self.prompt_token_ids + self.output_token_ids

    def get_prefix_token_ids(
        self, num_tokens: int
    ) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """Return the first `num_tokens` tokens, prompt and output apart, as a hashable key."""
        num_output_tokens = num_tokens - len(self.prompt_token_ids)
        if num_output_tokens > 0:
            return self._prompt_token_ids_tuple, tuple(self.output_token_ids[:num_output_tokens])
        return self._prompt_token_ids_tuple[:num_tokens], None

    def get_num_computed_tokens(self) -> int:
        """Return how many tokens' keys and values are in the cache."""
        return self._num_computed_tokens

    def get_num_uncomputed_tokens(self) -> int:
        """Return how many tokens are still to be computed, outputs before a recompute included."""
        return self.get_len() - self._num_computed_tokens

    def update_num_computed_tokens(self, num_new_computed_tokens: int) -> None:
        """Note that a step has computed so many more tokens; with all computed, decode begins."""
        self._num_computed_tokens += num_new_computed_tokens
        num_uncomputed = self.get_num_uncomputed_tokens()
        if num_uncomputed < 0:
            raise InternalError(f"{self._num_computed_tokens} tokens computed of {self.get_len()}.")
        if num_uncomputed == 0:
            self.is_prefill = False

    def reset_state_for_recompute(self) -> None:
        """Forget what was computed: the blocks are gone."""
        self._num_computed_tokens = 0
        self.is_prefill = True

    def get_last_token_id(self) -> int:
        """Return the newest token."""
        return (self.output_token_ids or self.prompt_token_ids)[-1]

    def get_prompt_token_ids(self) -> list[int]:
        """Return the prompt tokens."""
        return self.prompt_token_ids

    def get_output_token_ids(self) -> list[int]:
        """Return the output tokens."""
        return self.output_token_ids

    def fork(self) -> "SequenceData":
        """Return a copy that shares the prompt (nobody changes it)."""
        child = SequenceData.__new__(SequenceData)
        child.prompt_token_ids = self.prompt_token_ids
        child.output_token_ids = self.output_token_ids.copy()
        child.cumulative_logprob = self.cumulative_logprob
        child._num_computed_tokens = self._num_computed_tokens
        child.is_prefill = self.is_prefill
        child._prompt_token_ids_tuple = self._prompt_token_ids_tuple
        return child

    def __repr__(self) -> str:
        return (f"SequenceData(prompt_token_ids={self.prompt_token_ids}, "
                f"output_token_ids={self.output_token_ids}, "
                f"cumulative_logprob={self.cumulative_logprob})")
