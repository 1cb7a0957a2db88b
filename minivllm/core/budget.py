"""What a step may still take on (mirrors ``SchedulingBudget`` in ``vllm/core/scheduler.py``)."""

from dataclasses import dataclass, field


@dataclass
class SchedulingBudget:
    """The tokens and seats of one step, and how many are taken.

    A request is counted once: the default policy counts the seats of all running groups before
    it looks at prompts, and meets the same groups again when it looks at decodes.

    Attributes
    ----------
    token_budget : int
        Most tokens in the step (`max_num_batched_tokens`).
    max_num_seqs : int
        Most sequences: seats.
    num_batched_tokens, num_curr_seqs : int
        Taken so far.
    num_cut_tokens : int
        Tokens of scheduled prompts that did not fit and are left for later steps.
    """

    token_budget: int
    max_num_seqs: int
    num_batched_tokens: int = 0
    num_curr_seqs: int = 0
    num_cut_tokens: int = 0
    _tokens_of: dict[str, int] = field(default_factory=dict)
    _seqs_of: dict[str, int] = field(default_factory=dict)

    def can_schedule(self, *, num_new_tokens: int, num_new_seqs: int) -> bool:
        """Return True if so many more tokens and sequences fit."""
        return (num_new_tokens <= self.remaining_token_budget()
                and num_new_seqs <= self.remaining_seats())

    def remaining_token_budget(self) -> int:
        """Return how many tokens are left."""
        return self.token_budget - self.num_batched_tokens

    def remaining_seats(self) -> int:
        """Return how many sequences are left."""
        return self.max_num_seqs - self.num_curr_seqs

    def add_num_batched_tokens(self, req_id: str, num_batched_tokens: int) -> None:
        """Take tokens for a request, unless it has taken some."""
        if req_id not in self._tokens_of:
            self._tokens_of[req_id] = num_batched_tokens
            self.num_batched_tokens += num_batched_tokens

    def subtract_num_batched_tokens(self, req_id: str, num_batched_tokens: int) -> None:
        """Give the request's tokens back, if it has taken some."""
        if self._tokens_of.pop(req_id, None) is not None:
            self.num_batched_tokens -= num_batched_tokens

    def add_num_seqs(self, req_id: str, num_curr_seqs: int) -> None:
        """Take seats for a request, unless it has taken some."""
        if req_id not in self._seqs_of:
            self._seqs_of[req_id] = num_curr_seqs
            self.num_curr_seqs += num_curr_seqs

    def has_seats(self, req_id: str) -> bool:
        """Return True if the request has taken its seats."""
        return req_id in self._seqs_of

    def subtract_num_seqs(self, req_id: str, num_curr_seqs: int) -> None:
        """Give the request's seats back, if it has taken some."""
        if self._seqs_of.pop(req_id, None) is not None:
            self.num_curr_seqs -= num_curr_seqs
