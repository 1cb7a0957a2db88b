"""Running a workload: the loop that adds, aborts and steps at the right times.

The engine is the real one with the stand-in model (`SimulatedExecutor`); its clock shows the
index of the step.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from minivllm.config import CacheConfig, ModelConfig
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.engine.llm_engine import LLMEngine, StepObserver
from minivllm.executor.simulated_executor import SimulatedExecutor
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput
from minivllm.sequence import SequenceGroup
from minivllm.tracing.workload import sampling_params, scheduler_config
from minivllm.transformers_utils.config import PretrainedConfig
from minivllm.utils import InternalError
from minivllm.workloads import RequestSpec, Workload

# So many steps in a row in which nothing happens, with nobody still to arrive, never end.
_IDLE_STEPS_ARE_LIVELOCK = 64


@dataclass
class StepClock:
    """A clock that shows the index of the step."""

    step: int = 0

    def __call__(self) -> float:
        """Return the time."""
        return float(self.step)


def simulated_engine(workload: Workload, clock: StepClock,
                     block_manager: type[BlockSpaceManager] | None = None) -> LLMEngine:
    """Return an engine of the workload's shape whose model is the hash LM."""
    spec = workload["engine"]
    hf_config = PretrainedConfig(
        vocab_size=workload["vocab_size"], eos_token_id=workload["eos_token_id"],
        max_position_embeddings=spec["max_model_len"])
    return LLMEngine(
        ModelConfig("hash-lm", hf_config, skip_tokenizer_init=True),
        CacheConfig(spec["block_size"], num_gpu_blocks_override=spec["num_gpu_blocks"],
                    num_cpu_blocks_override=spec["num_cpu_blocks"],
                    enable_prefix_caching=spec["enable_prefix_caching"]),
        scheduler_config(spec), SimulatedExecutor, block_manager=block_manager, clock=clock)


class WorkloadRun:
    """One run of a workload; iterate over it to go through its steps.

    Parameters
    ----------
    workload : Workload
        Checked (`minivllm.tracing.workload.check_workload`).
    observers : sequence of StepObserver
        Who watches the engine.
    block_manager : type of BlockSpaceManager, optional
        A class of your own instead of V1 or V2.

    Attributes
    ----------
    engine : LLMEngine
        Built when the run is.
    clock : StepClock
        Shows the current step.
    aborted : dict of str to RequestOutput
        Requests that were aborted, as they were then.
    """

    def __init__(self, workload: Workload, observers: Sequence[StepObserver] = (),
                 block_manager: type[BlockSpaceManager] | None = None) -> None:
        self.workload = workload
        self.clock = StepClock()
        self.engine = simulated_engine(workload, self.clock, block_manager)
        self.engine.observers.extend(observers)
        self.aborted: dict[str, RequestOutput] = {}
        requests = workload["requests"]
        self._arrivals = _by_step((request["arrival_step"], request) for request in requests)
        self._aborts = _by_step((request["abort_step"], request) for request in requests)
        self._num_arrived = 0

    def __iter__(self) -> Iterator[list[RequestOutput | EmbeddingRequestOutput]]:
        """Yield the outputs of each step; an idle engine jumps to the next arrival."""
        num_idle_steps = 0
        while self.engine.has_unfinished_requests() or self._arrivals:
            if not self.engine.has_unfinished_requests():
                self.clock.step = max(self.clock.step, next(iter(self._arrivals)))
            self._add_and_abort()
            if self.engine.has_unfinished_requests():
                outputs = self.engine.step()
                yield outputs
                num_idle_steps = 0 if outputs else num_idle_steps + 1
                if num_idle_steps >= _IDLE_STEPS_ARE_LIVELOCK and not self._arrivals:
                    raise InternalError(f"step {self.clock.step}: nothing has run for "
                                        f"{num_idle_steps} steps, with requests unfinished.")
            self.clock.step += 1

    def _add_and_abort(self) -> None:
        for request in self._arrivals.pop(self.clock.step, ()):
            self.engine.add_request(
                request["request_id"], {"prompt_token_ids": request["prompt_token_ids"]},
                sampling_params(request["sampling"]), arrival_time=float(self._num_arrived))
            self._num_arrived += 1
        for request in self._aborts.pop(self.clock.step, ()):
            seq_group = self._find(request["request_id"])
            if seq_group is not None:
                self.engine.abort_request(request["request_id"])
                self.aborted[request["request_id"]] = RequestOutput.from_seq_group(seq_group)

    def _find(self, request_id: str) -> SequenceGroup | None:
        """Return the unfinished request of this name."""
        scheduler = self.engine.scheduler
        for queue in (scheduler.waiting, scheduler.running, scheduler.swapped):
            for seq_group in queue:
                if seq_group.request_id == request_id:
                    return seq_group
        return None


def _by_step(
    requests: Iterable[tuple[int | None, RequestSpec]]
) -> dict[int, list[RequestSpec]]:
    """Return step -> its requests in file order, earliest step first."""
    by_step: dict[int, list[RequestSpec]] = defaultdict(list)
    for step, request in requests:
        if step is not None:
            by_step[step].append(request)
    return dict(sorted(by_step.items()))
