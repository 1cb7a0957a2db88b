"""What the sampler costs beside the forward pass that feeds it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minivllm.entrypoints.llm import LLM
from minivllm.model_executor.layers.sampler import (
    Sampler,
    apply_filters,
    apply_min_tokens,
    apply_penalties,
    check_logits,
    group_output,
    sample,
    slab_rows,
)
from minivllm.model_executor.layers.sampling.draws import softmax
from minivllm.model_executor.sampling_metadata import SamplingMetadata, SamplingTensors
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import SamplerOutput

CASES = {
    "greedy": SamplingParams(temperature=0.0),
    "greedy, 5 logprobs": SamplingParams(temperature=0.0, logprobs=5),
    "temperature 0.8": SamplingParams(temperature=0.8),
    "top-k 50": SamplingParams(top_k=50),
    "top-p 0.9": SamplingParams(top_p=0.9),
    "min-p 0.05": SamplingParams(min_p=0.05),
    "penalties, top-p 0.9": SamplingParams(repetition_penalty=1.2, frequency_penalty=0.3,
                                           presence_penalty=0.3, top_p=0.9),
}

_OPENINGS = [
    "The history of the city begins with a river and a bridge. The first houses were built by",
    "To bake bread at home you need flour, water, salt and time. Mix the flour with",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "Dear Sir or Madam, I am writing to you about the parcel that I ordered in",
    "Once upon a time there was a fox who lived at the edge of a deep forest. Every",
    "Photosynthesis is the process by which plants turn light into chemical energy. In the",
    "1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233,",
    "Q: What is the largest planet of the solar system?\nA:",
]


class WatchedModel:
    """A model that notes how long its forward passes take and what it last sampled from.

    Attributes
    ----------
    seconds : list of float
        Of each forward pass, logits included.
    logits : (num_rows, vocab_size) float32
    sampling_metadata : SamplingMetadata
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.seconds: list[float] = []

    def __call__(self, *inputs: Any) -> Any:
        """Run the layers."""
        self.start = time.perf_counter()
        return self.model(*inputs)

    def compute_logits(self, hidden_states: NDArray[np.float32],
                       sampling_metadata: SamplingMetadata) -> NDArray[np.float32]:
        """Run the output layer; here a forward pass ends."""
        logits: NDArray[np.float32] = self.model.compute_logits(hidden_states, sampling_metadata)
        self.seconds.append(time.perf_counter() - self.start)
        self.logits, self.sampling_metadata = logits, sampling_metadata
        return logits

    def sample(self, logits: NDArray[np.float32],
               sampling_metadata: SamplingMetadata) -> SamplerOutput:
        """Choose tokens."""
        output: SamplerOutput = self.model.sample(logits, sampling_metadata)
        return output


@dataclass
class SamplerTimes:
    """Milliseconds of one case.

    Attributes
    ----------
    total : float
        Of a call of `Sampler`, which shares the batch among threads.
    stages : dict of str to float
        Of its parts on one thread, measured one by one.
    """

    total: float
    stages: dict[str, float] = field(default_factory=dict)


def time_sampler(llm: LLM, batch_size: int = 64,
                 repeat: int = 7) -> tuple[float, dict[str, SamplerTimes]]:
    """Decode a batch with `llm`, then sample from its last logits in all ways of `CASES`.

    Parameters
    ----------
    llm : LLM
        A real model.
    batch_size : int
        Sequences that decode side by side.
    repeat : int
        Forward passes and calls of the sampler; of each, the median counts.

    Returns
    -------
    forward : float
        Milliseconds of one forward pass of the batch.
    cases : dict of str to SamplerTimes
    """
    runner = llm.llm_engine.model_executor.driver_worker.model_runner  # type: ignore[attr-defined]
    watched = runner.model = WatchedModel(runner.model)
    try:
        prompts = [_OPENINGS[i % len(_OPENINGS)] for i in range(batch_size)]
        llm.generate(prompts, SamplingParams(max_tokens=repeat + 1, ignore_eos=True),
                     use_tqdm=False)
    finally:
        runner.model = watched.model
    cases = {}
    for name, params in CASES.items():
        metadata = _with_params(watched.sampling_metadata, params)
        total = _milliseconds(partial(Sampler(), watched.logits, metadata), repeat)
        cases[name] = SamplerTimes(total, _time_stages(watched.logits, metadata, repeat))
    # The last passes are decodes; the first was the prompts.
    return median(watched.seconds[-repeat:]) * 1e3, cases


def _with_params(sampling_metadata: SamplingMetadata, params: SamplingParams) -> SamplingMetadata:
    return replace(sampling_metadata, seq_groups=[
        replace(group, sampling_params=params, generator=np.random.default_rng(i))
        for i, group in enumerate(sampling_metadata.seq_groups)])


def _milliseconds(function: Callable[[], Any], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return median(seconds) * 1e3


def _time_stages(logits: NDArray[np.float32], sampling_metadata: SamplingMetadata,
                 repeat: int) -> dict[str, float]:
    """Time what `Sampler` does, step by step, on one thread."""
    times: dict[str, float] = {}

    def stage(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        times[name] = times.get(name, 0.0) + _milliseconds(partial(function, *arguments), repeat)
        return function(*arguments)

    logits = stage("min_tokens", apply_min_tokens, logits, sampling_metadata)
    logits = stage("penalties", apply_penalties, logits, sampling_metadata)
    stage("check", check_logits, logits, sampling_metadata)
    for rows, slab in sampling_metadata.slabs(slab_rows(logits.shape[1])):
        tensors = SamplingTensors.from_sampling_metadata(slab, logits.shape[1])
        filtered = stage("filters", apply_filters, logits[rows], tensors)
        probs, logprobs = stage("softmax", softmax, filtered)
        samples = [stage("choice", sample, probs, logprobs, group) for group in slab.seq_groups]
        for group, chosen in zip(slab.seq_groups, samples, strict=True):
            stage("logprobs", group_output, logprobs, group, chosen)
    return times
