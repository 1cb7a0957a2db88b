"""Where the time of a step goes, measured from outside.

For a while, functions of the engine are replaced by ones that note the time and call them.  The
time of a function that runs within another counts for itself alone.  Noting takes about a
microsecond a call, in some hundreds of calls a step: speeds are measured without.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from inspect import isfunction
from typing import Any

import numpy as np

from minivllm.attention.backends.abstract import AttentionMetadata
from minivllm.attention.layer import Attention
from minivllm.bench.machine import Limits
from minivllm.engine.llm_engine import LLMEngine
from minivllm.model_executor.layers import activation, layernorm, rotary_embedding
from minivllm.model_executor.layers import linear as linear_layers
from minivllm.model_executor.module import Array, Module
from minivllm.model_executor.sampling_metadata import SamplingMetadata

# What a call must at least do: bytes read from memory, floating point operations.
Work = tuple[float, float]

_FLOAT32_BYTES = 4
# All that these files define, whatever a model takes of it, is the stage "norm, rope, act".
_SMALL_LAYERS = {file.__name__ for file in (activation, layernorm, rotary_embedding)}


@dataclass
class StageTimes:
    """Steps of one kind.

    Attributes
    ----------
    num_steps : int
    seconds : dict of str to float
        Of each stage, all steps together.
    least_seconds : dict of str to float
        What the hardware's limits allow, for stages that have one.
    """

    num_steps: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    least_seconds: dict[str, float] = field(default_factory=dict)

    def add(self, stage: str, seconds: float, least_seconds: float = 0.0) -> None:
        """Add to the times of a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        if least_seconds:
            self.least_seconds[stage] = self.least_seconds.get(stage, 0.0) + least_seconds

    def add_step(self, step: "StageTimes") -> None:
        """Add the times of one step."""
        self.num_steps += 1
        for stage, seconds in step.seconds.items():
            self.add(stage, seconds, step.least_seconds.get(stage, 0.0))


class StageClock:
    """Adds up the time of stages, for steps with prompts and for steps without.

    Attributes
    ----------
    prefill, decode : StageTimes
        Of steps with at least one prompt, and of others.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.prefill, self.decode = StageTimes(), StageTimes()
        self._step = StageTimes()
        self._running: list[str] = []
        self._last = 0.0

    def step(self, step: Callable[[], Any], is_prefill: Callable[[], bool]) -> Callable[[], Any]:
        """Return `step`, timed as a whole; `is_prefill` tells afterwards what kind it was."""
        timed_step = self.timed("rest", step)

        def counted_step() -> Any:
            self._step = StageTimes()
            self._last = time.perf_counter()
            result = timed_step()
            (self.prefill if is_prefill() else self.decode).add_step(self._step)
            return result

        return counted_step

    def timed(self, stage: str, function: Callable[..., Any],
              work: Callable[..., Work] | None = None) -> Callable[..., Any]:
        """Return `function`, its time counted as that of `stage`; `work` takes its arguments."""
        @wraps(function)
        def timed_function(*args: Any, **kwargs: Any) -> Any:
            if work is not None:
                self._step.add(stage, 0.0, self.limits.seconds(*work(*args, **kwargs)))
            self._charge()
            self._running.append(stage)
            try:
                return function(*args, **kwargs)
            finally:
                self._charge()
                self._running.pop()

        return timed_function

    def _charge(self) -> None:
        """Count the time since the last call for the innermost stage that runs."""
        now = time.perf_counter()
        if self._running:
            self._step.add(self._running[-1], now - self._last)
        self._last = now


@contextmanager
def watch_stages(engine: LLMEngine, limits: Limits) -> Iterator[StageClock]:
    """Time the stages of an engine's steps inside a ``with`` block."""
    clock = StageClock(limits)
    runner: Any = engine.model_executor.driver_worker.model_runner  # type: ignore[attr-defined]
    batches: list[Any] = []

    def schedule() -> Any:
        batches[:] = schedule_itself()
        return tuple(batches)

    schedule_itself = engine.scheduler.schedule
    with ExitStack() as stack:
        def replace(owner: Any, name: str, replacement: Any) -> None:
            original = vars(owner).get(name)
            setattr(owner, name, replacement)
            if original is None:
                stack.callback(delattr, owner, name)
            else:
                stack.callback(setattr, owner, name, original)

        def watch(stage: str, owner: Any, name: str,
                  work: Callable[..., Work] | None = None) -> None:
            replace(owner, name, clock.timed(stage, getattr(owner, name), work))

        replace(engine.scheduler, "schedule", clock.timed("scheduler", schedule))
        watch("inputs", runner, "prepare_input")
        watch("linear", linear_layers, "linear", _linear_work)
        watch("attention", Attention, "__call__", _attention_work)
        for owner, name in _small_layers(runner.model):
            watch("norm, rope, act", owner, name)
        watch("logits", runner.model, "compute_logits", _logits_work(runner.model))
        watch("sampler", runner.model, "sample")
        watch("outputs", engine, "_process_model_outputs")
        if engine.detokenizer is not None:
            watch("detokenizer", engine.detokenizer, "decode_sequence_inplace")
        replace(engine, "step",
                clock.step(engine.step, lambda: any(group.is_prompt for group in batches[0])))
        yield clock


def _small_layers(model: Module) -> set[tuple[Any, str]]:
    """Return where they are called: a class and its method, a layer and its plain function."""
    modules = [module for _, module in model.named_modules()]
    methods = {(type(module), "__call__") for module in modules
               if type(module).__module__ in _SMALL_LAYERS}
    functions = {(module, name) for module in modules for name, value in vars(module).items()
                 if isfunction(value) and value.__module__ in _SMALL_LAYERS}
    return methods | functions


def _linear_work(x: Array, weight: Array, kernels: Any = None) -> Work:
    return weight.nbytes, 2 * len(x) * weight.size


def _logits_work(model: Any) -> Callable[..., Work]:
    def work(hidden_states: Array, sampling_metadata: SamplingMetadata) -> Work:
        num_rows, weight = len(sampling_metadata.selected_token_indices), model.lm_head.weight
        return weight.nbytes, 2 * num_rows * weight.size

    return work


def _attention_work(layer: Attention, query: Array, key: Array, value: Array,
                    kv_cache: Array, metadata: AttentionMetadata) -> Work:
    """Return the work of full attention; a sliding window would spare some."""
    per_token = 2 * layer.num_kv_heads * layer.head_size * _FLOAT32_BYTES
    new = (metadata.seq_lens - metadata.context_lens).astype(np.int64)  # (num_seqs,)
    pairs = new * metadata.context_lens + new * (new + 1) // 2  # (num_seqs,)
    return (float(per_token * metadata.seq_lens.sum()),
            float(4 * layer.num_heads * layer.head_size * pairs.sum()))
