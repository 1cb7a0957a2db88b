"""Workloads: which requests arrive when, at an engine of which shape.

A workload is a plain dict in the form of a ``minivllm-workload/1`` file (``json.dump`` writes
one); the functions here make random ones.  `minivllm.tracing.workload` reads and checks files.

Time is counted in engine steps.  The same arguments always make the same workload.
"""

from random import Random
from typing import Any, TypedDict

FORMAT = "minivllm-workload/1"


class EngineSpec(TypedDict):
    """The shape of the engine: two block pools, the limits of a step, and the modes."""

    block_size: int
    num_gpu_blocks: int
    num_cpu_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    enable_chunked_prefill: bool
    enable_prefix_caching: bool
    use_v2_block_manager: bool
    preemption_mode: str | None


class SamplingSpec(TypedDict):
    """The sampling parameters that matter to scheduling; see `minivllm.SamplingParams`."""

    n: int
    best_of: int | None
    use_beam_search: bool
    length_penalty: float
    early_stopping: bool | str
    temperature: float
    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    stop_token_ids: list[int]


class RequestSpec(TypedDict):
    """A request, the step before which it arrives, and perhaps one before which it is aborted."""

    request_id: str
    arrival_step: int
    abort_step: int | None
    prompt_token_ids: list[int]
    sampling: SamplingSpec


class Workload(TypedDict):
    """Requests in order, and the engine they go to."""

    format: str
    name: str
    engine: EngineSpec
    vocab_size: int
    eos_token_id: int
    requests: list[RequestSpec]


DEFAULT_ENGINE = EngineSpec(
    block_size=16, num_gpu_blocks=8000, num_cpu_blocks=8000, max_num_seqs=256,
    max_num_batched_tokens=2048, max_model_len=2048, enable_chunked_prefill=False,
    enable_prefix_caching=False, use_v2_block_manager=False, preemption_mode=None)

GREEDY = SamplingSpec(
    n=1, best_of=None, use_beam_search=False, length_penalty=1.0, early_stopping=False,
    temperature=0.0, max_tokens=16, min_tokens=0, ignore_eos=True, stop_token_ids=[])

VOCAB_SIZE = 32000
EOS_TOKEN_ID = 2


def poisson(num_requests: int, rate_per_step: float, prompt_len: int, output_len: int,
            seed: int, **engine: Any) -> Workload:
    """Make unrelated requests that arrive independently of each other.

    Parameters
    ----------
    num_requests : int
        How many; they are called r0, r1, ...
    rate_per_step : float
        Requests per step on average: the time between two arrivals is exponentially
        distributed (a Poisson process), the first arrives at step 0.
    prompt_len, output_len : int
        Mean number of tokens; each request's is drawn uniformly from 1 to ``2 * mean - 1``.
    seed : int
        For the random numbers.
    **engine
        Fields of the engine other than `DEFAULT_ENGINE`'s.

    Returns
    -------
    Workload
        Greedy requests without stop tokens: each runs to its length.

    Examples
    --------
    >>> workload = poisson(3, 0.5, prompt_len=8, output_len=4, seed=0, num_gpu_blocks=64)
    >>> [request["arrival_step"] for request in workload["requests"]]
    [0, 3, 6]
    """
    rng = Random(seed)
    arrivals = _arrival_steps(rng, num_requests, rate_per_step)
    requests = [_request(index, step, _tokens(rng, _length(rng, prompt_len)),
                         _length(rng, output_len))
                for index, step in enumerate(arrivals)]
    return _workload(f"poisson-{num_requests}-{seed}", requests, engine)


def shared_prefix(num_requests: int, rate_per_step: float, num_prefixes: int, prefix_len: int,
                  suffix_len: int, output_len: int, seed: int, **engine: Any) -> Workload:
    """Make requests whose prompts begin alike, as with a few system prompts.

    Parameters
    ----------
    num_requests, rate_per_step, output_len, seed
        As in `poisson`.
    num_prefixes : int
        How many different beginnings there are; each prompt takes one at random.
    prefix_len : int
        Tokens of each beginning.
    suffix_len : int
        Mean number of a prompt's own tokens after it, drawn as in `poisson`.
    **engine
        Fields of the engine other than `DEFAULT_ENGINE`'s; prefix caching is on by default.
    """
    if num_prefixes < 1:
        raise ValueError(f"num_prefixes must be at least 1, got {num_prefixes}.")
    rng = Random(seed)
    arrivals = _arrival_steps(rng, num_requests, rate_per_step)
    prefixes = [_tokens(rng, prefix_len) for _ in range(num_prefixes)]
    requests = [_request(index, step,
                         rng.choice(prefixes) + _tokens(rng, _length(rng, suffix_len)),
                         _length(rng, output_len))
                for index, step in enumerate(arrivals)]
    return _workload(f"shared-prefix-{num_requests}-{seed}", requests,
                     {"enable_prefix_caching": True} | engine)


def _arrival_steps(rng: Random, num_requests: int, rate_per_step: float) -> list[int]:
    if num_requests < 1:
        raise ValueError(f"num_requests must be at least 1, got {num_requests}.")
    if rate_per_step <= 0:
        raise ValueError(f"rate_per_step must be above 0, got {rate_per_step}.")
    time, steps = 0.0, []
    for _ in range(num_requests):
        steps.append(int(time))
        time += rng.expovariate(rate_per_step)
    return steps


def _length(rng: Random, mean: int) -> int:
    if mean < 1:
        raise ValueError(f"a mean length must be at least 1, got {mean}.")
    return rng.randint(1, 2 * mean - 1)


def _tokens(rng: Random, num_tokens: int) -> list[int]:
    return rng.choices(range(VOCAB_SIZE), k=num_tokens)


def _request(index: int, arrival_step: int, prompt_token_ids: list[int],
             max_tokens: int) -> RequestSpec:
    return RequestSpec(
        request_id=f"r{index}", arrival_step=arrival_step, abort_step=None,
        prompt_token_ids=prompt_token_ids,
        sampling=GREEDY | SamplingSpec(max_tokens=max_tokens))  # type: ignore[typeddict-item]


def _workload(name: str, requests: list[RequestSpec], engine: dict[str, Any]) -> Workload:
    for field in engine:
        if field not in DEFAULT_ENGINE:
            raise TypeError(f"unknown field of the engine: {field!r}; there are: "
                            f"{', '.join(DEFAULT_ENGINE)}.")
    return Workload(
        format=FORMAT, name=name, engine=DEFAULT_ENGINE | engine,  # type: ignore[typeddict-item]
        vocab_size=VOCAB_SIZE, eos_token_id=EOS_TOKEN_ID, requests=requests)
