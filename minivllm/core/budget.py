"""What a step may still take on (mirrors ``SchedulingBudget`` in ``vllm/core/scheduler.py``).

vLLM notes who has taken what, since it counts some requests twice and takes others back.  Here
each request is counted once, when it is clear that it runs.
"""

from dataclasses import dataclass


@dataclass
class SchedulingBudget:
    """The tokens and seats of one step, and how many are taken.

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

    def remaining_token_budget(self) -> int:
        """Return how many tokens are left."""
        return self.token_budget - self.num_batched_tokens

    def remaining_seats(self) -> int:
        """Return how many sequences are left."""
        return self.max_num_seqs - self.num_curr_seqs
