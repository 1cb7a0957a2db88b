"""Where a stepper's engine comes from: prompts, a workload, or the classic example."""

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from minivllm.engine.arg_utils import EngineArgs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.executor.simulated_executor import SimulatedExecutor
from minivllm.inputs import PromptInputs
from minivllm.sampling_params import SamplingParams
from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.workload import check_workload, read_workload
from minivllm.transformers_utils.download import BUILT_IN, DEFAULT_MODEL
from minivllm.workloads import EOS_TOKEN_ID, FORMAT, GREEDY, EngineSpec, RequestSpec, Workload

# The classic walk-through: prompts of 5, 5 and 3 tokens, at an engine that is too small for them.
CLASSIC_TEXTS = ["Hello, my name is", "The future of AI is", "The life is"]
CLASSIC_TOKEN_IDS = [[15, 3, 21, 33, 9], [11, 47, 25, 60, 9], [11, 52, 9]]
CLASSIC_PROMPTS: list[Any] = list(CLASSIC_TEXTS if BUILT_IN else CLASSIC_TOKEN_IDS)
CLASSIC_ENGINE = {"block_size": 4, "num_gpu_blocks": 5, "num_cpu_blocks": 4, "max_num_seqs": 8,
                  "max_num_batched_tokens": 12, "max_model_len": 12}
# What the stand-in model's engine is like otherwise.
STAND_IN_ENGINE = EngineSpec(
    block_size=4, num_gpu_blocks=64, num_cpu_blocks=64, max_num_seqs=64,
    max_num_batched_tokens=256, max_model_len=256, enable_chunked_prefill=False,
    enable_prefix_caching=False, use_v2_block_manager=False, preemption_mode=None)
STAND_IN_VOCAB_SIZE = 97
# What would be looked for at a stepper, but belongs to its requests.
_SAMPLING = (inspect.signature(SamplingParams).parameters.keys()
             - inspect.signature(EngineArgs).parameters.keys())


@dataclass(frozen=True)
class Source:
    """An engine and what it is going to do.

    Attributes
    ----------
    engine : LLMEngine
        To be observed.
    run : callable
        Returns an iterator that makes a step each time; called again once requests were added.
    arrivals : list of str
        Its requests, in words.
    """

    engine: LLMEngine
    run: Callable[[], Iterator[Any]]
    arrivals: list[str]


def start(prompts_or_workload: Any, engine_args: dict[str, Any]) -> Source:
    """Return an engine for prompts, a workload, or (None) the classic three requests."""
    for name in _SAMPLING.intersection(engine_args):
        raise TypeError(f"{name} is a sampling parameter: s = Stepper([]), then s.add(prompt, "
                        f"{name}={engine_args[name]!r}).")
    if prompts_or_workload is None:
        prompts_or_workload = CLASSIC_PROMPTS
        engine_args = CLASSIC_ENGINE | engine_args
    engine_args = dict(engine_args)
    classes: dict[str, Any] = {name: engine_args.pop(name)
                               for name in ("block_manager", "attention_backend")
                               if name in engine_args}
    if isinstance(prompts_or_workload, str | os.PathLike) and str(
            prompts_or_workload).endswith((".json", ".json.gz")):
        prompts_or_workload = read_workload(str(prompts_or_workload))
    if isinstance(prompts_or_workload, str):
        prompts_or_workload = [prompts_or_workload]
    if isinstance(prompts_or_workload, dict):
        workload = _with_engine(check_workload(prompts_or_workload), engine_args)
    elif "model" not in engine_args and all(not isinstance(p, str) for p in prompts_or_workload):
        workload = stand_in_workload(prompts_or_workload, engine_args)
    else:
        return _start_model(prompts_or_workload, engine_args, classes)
    run = WorkloadRun(workload, block_manager=classes.get("block_manager"))
    arrivals = [f"{request['request_id']} ({len(request['prompt_token_ids'])} tokens, step "
                f"{request['arrival_step']})" for request in workload["requests"]]
    return Source(run.engine, run.__iter__, arrivals)


def _start_model(prompts: Sequence[Any], engine_args: dict[str, Any],
                 classes: dict[str, Any]) -> Source:
    overrides = {f"{name}_override": engine_args.pop(name)
                 for name in ("num_gpu_blocks", "num_cpu_blocks") if name in engine_args}
    args = EngineArgs.from_kwargs(**{"model": DEFAULT_MODEL} | overrides | engine_args)
    engine = LLMEngine.from_engine_args(args, **classes)
    for number, prompt in enumerate(prompts):
        engine.add_request(f"r{number}", prompt_inputs(engine, prompt),
                           sampling_params(engine, {}), arrival_time=float(number))

    def steps() -> Iterator[Any]:
        while engine.has_unfinished_requests():
            yield engine.step()

    arrivals = [f"{group.request_id} ({group.get_seqs()[0].get_len()} tokens)"
                for group in engine.scheduler.waiting]
    return Source(engine, steps, arrivals)


def stand_in_workload(prompts: Sequence[list[int]], engine_args: dict[str, Any]) -> Workload:
    """Return a workload in which all `prompts` arrive at once."""
    requests = [RequestSpec(request_id=f"r{number}", arrival_step=0, abort_step=None,
                            prompt_token_ids=list(prompt), sampling=GREEDY)
                for number, prompt in enumerate(prompts)]
    workload = Workload(format=FORMAT, name="stepper", engine=STAND_IN_ENGINE,
                        vocab_size=STAND_IN_VOCAB_SIZE, eos_token_id=EOS_TOKEN_ID,
                        requests=requests)
    return _with_engine(workload, engine_args)


def _with_engine(workload: Workload, engine_args: dict[str, Any]) -> Workload:
    """Return `workload` with another engine; its names are those of a workload file."""
    args = {name.removesuffix("_override"): value for name, value in engine_args.items()}
    unknown = args.keys() - workload["engine"].keys()
    if unknown:
        raise TypeError(f"unknown engine argument {sorted(unknown)[0]!r}; a simulated engine has: "
                        f"{', '.join(workload['engine'])}")
    engine: Any = {**workload["engine"], **args}
    return check_workload({**workload, "engine": engine})


def sampling_params(engine: LLMEngine, sampling: dict[str, Any]) -> SamplingParams:
    """Return parameters that are greedy unless `sampling` says otherwise."""
    defaults = {"temperature": 0.0, "detokenize": engine.tokenizer is not None}
    return SamplingParams(**defaults | sampling)


def prompt_inputs(engine: LLMEngine, prompt: PromptInputs | list[int]) -> PromptInputs:
    """Return a prompt as `LLMEngine.add_request` takes it; a list is token ids.

    Raises
    ------
    ValueError
        If it is a text, and the engine's model is the stand-in.
    """
    if isinstance(prompt, str) and isinstance(engine.model_executor, SimulatedExecutor):
        raise ValueError("this Stepper runs the stand-in model, which has no words: add token ids "
                         f"(0 to {engine.model_config.get_vocab_size() - 1}), or make it with "
                         f"model={DEFAULT_MODEL!r}.")
    return {"prompt_token_ids": prompt} if isinstance(prompt, list) else prompt
