"""Measures a case: how fast it is, where its time goes, and what paging saves."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import median
from typing import Any

from minivllm.bench.cases import CASES, Case
from minivllm.bench.machine import Limits, Machine, describe_machine, measure_limits
from minivllm.bench.memory import MemoryWatch
from minivllm.bench.serving import TokenTimes, serve
from minivllm.bench.stages import StageTimes, watch_stages
from minivllm.engine.arg_utils import EngineArgs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.executor.cpu_executor import CPUExecutor
from minivllm.executor.executor_base import ExecutorBase

FORMAT = "minivllm-bench/1"


@dataclass
class VariantReport:
    """One way to serve a case.

    Attributes
    ----------
    settings : dict
        Of the engine, where they are not the defaults.
    seconds : list of float
        Of each run.
    tokens_per_second : list of float
        Of each run; prompt tokens if the case is about them, else generated ones.
    time_to_first_token, worst_gap : list of float
        Seconds: the median over a run's requests, and the longest time between two tokens of one.
    decode, prefill : StageTimes
        Where the time goes in steps without and with prompts, from one more run.
    mean_slots : dict of str to float
        Slots of the KV cache, the mean over steps; see `MemoryWatch`.
    hit_rate : float
        Part of all prompt tokens that was found in the prefix cache.
    """

    settings: dict[str, Any]
    seconds: list[float] = field(default_factory=list)
    tokens_per_second: list[float] = field(default_factory=list)
    time_to_first_token: list[float] = field(default_factory=list)
    worst_gap: list[float] = field(default_factory=list)
    decode: StageTimes = field(default_factory=StageTimes)
    prefill: StageTimes = field(default_factory=StageTimes)
    mean_slots: dict[str, float] = field(default_factory=dict)
    hit_rate: float = 0.0

    def add_run(self, seconds: float, num_tokens: int, times: list[TokenTimes]) -> None:
        """Note one run."""
        self.seconds.append(seconds)
        self.tokens_per_second.append(num_tokens / seconds)
        self.time_to_first_token.append(median(request.to_first_token for request in times))
        self.worst_gap.append(max((gap for request in times for gap in request.gaps),
                                  default=0.0))


@dataclass
class CaseReport:
    """What has been measured; `dataclasses.asdict` of it goes into a JSON file."""

    case: str
    description: str
    model: str
    counts_prompts: bool
    machine: Machine
    limits: Limits
    variants: dict[str, VariantReport]
    format: str = FORMAT


def run_case(name: str, model: str, runs: int = 5, attention_backend: str | None = None,
             progress: Callable[[str], None] = lambda text: None) -> CaseReport:
    """Measure a case of `CASES`.

    Each variant is warmed up by one run; then they take turns, so that what disturbs the machine
    disturbs them alike.

    Parameters
    ----------
    name : str
    model : str
        What `minivllm.LLM` takes.
    runs : int
        Of each variant.
    attention_backend : str, optional
    progress : callable
        Told what is about to happen.
    """
    if name not in CASES:
        raise ValueError(f"there is no case {name!r}; there are: {', '.join(CASES)}.")
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}.")
    case = CASES[name]
    progress("load the model")
    engines = _make_engines(case, model, attention_backend)
    progress("measure the machine")
    report = CaseReport(name, case.description, model, case.counts_prompts, describe_machine(),
                        measure_limits(),
                        {variant: VariantReport(settings)
                         for variant, settings in case.variants.items()})
    for run in range(runs + 1):  # run 0 warms up
        for variant, engine in engines.items():
            progress(f"{variant}: run {run} of {runs}" if run else f"{variant}: warm up")
            requests = case.make_requests(Random(run), engine.model_config.get_vocab_size())
            seconds, times = serve(engine, requests)
            if run:
                report.variants[variant].add_run(seconds, case.tokens_that_count(requests), times)
    for variant, engine in engines.items():
        progress(f"{variant}: time the stages")
        _look_inside(engine, case, report.limits, report.variants[variant], seed=runs + 1)
    return report


def _make_engines(case: Case, model: str, attention_backend: str | None) -> dict[str, LLMEngine]:
    """Return an engine for each variant; they share the weights."""
    executor_class: Callable[..., ExecutorBase] = CPUExecutor
    engines = {}
    for variant, settings in case.variants.items():
        args = EngineArgs(model, disable_log_stats=True, num_cpu_blocks_override=0, **settings)
        engine = LLMEngine.from_engine_args(args, executor_class=executor_class,
                                            attention_backend=attention_backend)
        executor: Any = engine.model_executor
        executor_class = partial(CPUExecutor, model=executor.driver_worker.model_runner.model)
        engines[variant] = engine
    return engines


def _look_inside(engine: LLMEngine, case: Case, limits: Limits, report: VariantReport,
                 seed: int) -> None:
    """Run once more, timing the stages and counting slots."""
    requests = case.make_requests(Random(seed), engine.model_config.get_vocab_size())
    memory = MemoryWatch()
    engine.observers.append(memory)
    with watch_stages(engine, limits) as clock:
        serve(engine, requests)
    engine.observers.remove(memory)
    report.decode, report.prefill = clock.decode, clock.prefill
    report.mean_slots, report.hit_rate = memory.mean_slots(), memory.hit_rate
