"""What is measured: requests, and engine settings to compare.

The first four cases are those of which other programs' speeds are known (``tests/bench/peers.py``).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any


@dataclass(frozen=True)
class TimedRequest:
    """A prompt that arrives before the engine's step `arrival_step`; all its tokens are made."""

    prompt_token_ids: list[int]
    max_tokens: int
    arrival_step: int = 0

    @property
    def num_tokens(self) -> int:
        """Length at the end."""
        return len(self.prompt_token_ids) + self.max_tokens


@dataclass(frozen=True)
class Case:
    """Requests, and one or two ways to serve them.

    Attributes
    ----------
    description : str
    make_requests : callable
        Takes random numbers and the size of the vocabulary; each run has other prompts.
    variants : dict of str to dict
        Name of a way -> settings of `minivllm.EngineArgs`.
    counts_prompts : bool
        Speed is prompt tokens per second instead of generated ones.
    """

    description: str
    make_requests: Callable[[Random, int], list[TimedRequest]]
    variants: dict[str, dict[str, Any]] = field(default_factory=lambda: {"default": {}})
    counts_prompts: bool = False

    def tokens_that_count(self, requests: list[TimedRequest]) -> int:
        """Return how many tokens the speed is about."""
        return sum(len(request.prompt_token_ids) if self.counts_prompts else request.max_tokens
                   for request in requests)


def random_tokens(random: Random, vocab_size: int, num_tokens: int) -> list[int]:
    """Return a prompt of which nothing is cached."""
    return random.choices(range(vocab_size), k=num_tokens)


def _alike(description: str, num_prompts: int, prompt_len: int, output_len: int,
           counts_prompts: bool = False) -> Case:
    def make_requests(random: Random, vocab_size: int) -> list[TimedRequest]:
        return [TimedRequest(random_tokens(random, vocab_size, prompt_len), output_len)
                for _ in range(num_prompts)]

    return Case(f"{description}: {num_prompts} x ({prompt_len} in, {output_len} out)",
                make_requests, counts_prompts=counts_prompts)


def _shared_prefix(random: Random, vocab_size: int) -> list[TimedRequest]:
    prefix = random_tokens(random, vocab_size, 512)
    return [TimedRequest(prefix + random_tokens(random, vocab_size, 32), 16, arrival_step=2 * i)
            for i in range(16)]


def _mixed(random: Random, vocab_size: int) -> list[TimedRequest]:
    short = [TimedRequest(random_tokens(random, vocab_size, 32), 96) for _ in range(8)]
    long = [TimedRequest(random_tokens(random, vocab_size, 960), 16, arrival_step=step)
            for step in (20, 50)]
    return short + long


CASES = {
    "latency": _alike("one short request", 1, 32, 64),
    "batch8": _alike("a small batch", 8, 32, 64),
    "throughput": _alike("a large batch", 64, 128, 64),
    "prefill": _alike("a long prompt", 1, 1024, 1, counts_prompts=True),
    "shared-prefix": Case(
        "16 x (512 in common + 32 in, 16 out), one every second step", _shared_prefix,
        {"without prefix caching": {}, "with prefix caching": {"enable_prefix_caching": True}}),
    "mixed": Case(
        "8 x (32 in, 96 out), and 960 in, 16 out at steps 20 and 50", _mixed,
        {"whole prompts": {},
         "chunked prefill": {"enable_chunked_prefill": True, "max_num_batched_tokens": 128,
                             "max_num_seqs": 64}}),
}
