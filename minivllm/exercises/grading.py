"""What checks share: running toy workloads with a learner's class, and finding the mistake."""

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from rich.console import RenderableType

from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.decisions import sentence
from minivllm.logger import without_warnings
from minivllm.tracing.record import record
from minivllm.tracing.recording import Trace
from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.snapshot import Snapshot
from minivllm.workloads import DEFAULT_ENGINE, FORMAT, GREEDY, EngineSpec, SamplingSpec, Workload

# Longer than any toy workload; a wrong answer may make an engine run for ever.
_MAX_STEPS = 100

_EXPECTED = {"prefill": "prefilled", "decode": "decoded", "preempted": "preempted",
             "swapped out": "swapped out", "waiting": "waiting", "paused": "paused"}
_YOURS = {"prefill": "prefills it", "decode": "decodes it", "preempted": "preempts it",
          "swapped out": "swaps it out", "waiting": "lets it wait", "paused": "pauses it"}


class Wrong(Exception):
    """The learner's class does something wrong.

    Parameters
    ----------
    message : str
        What, where, and what was expected.
    picture : RenderableType, optional
        Shows it.
    """

    def __init__(self, message: str, picture: RenderableType | None = None) -> None:
        super().__init__(message)
        self.picture = picture


class ToyRun(NamedTuple):
    """What a run left: the steps that it made, and why it stopped early, if it did."""

    trace: Trace
    error: str | None


def toy_workload(prompt_lens: list[int], num_gpu_blocks: int, *, num_cpu_blocks: int = 0,
                 n: int = 1, max_tokens: int = 16,
                 stop_token_ids: Iterable[int] = ()) -> Workload:
    """Return requests r0, r1, ... on the engine of the tutorials: blocks of 4, 12 tokens a step."""
    engine = DEFAULT_ENGINE | EngineSpec(  # type: ignore[typeddict-item]
        block_size=4, num_gpu_blocks=num_gpu_blocks, num_cpu_blocks=num_cpu_blocks,
        max_num_seqs=8, max_num_batched_tokens=12, max_model_len=12)
    sampling = GREEDY | SamplingSpec(  # type: ignore[typeddict-item]
        n=n, temperature=float(n > 1), max_tokens=max_tokens,
        stop_token_ids=list(stop_token_ids))
    return Workload(
        format=FORMAT, name="toy", engine=engine, vocab_size=97, eos_token_id=0,
        requests=[{"request_id": f"r{i}", "arrival_step": 0, "abort_step": None,
                   "prompt_token_ids": [(10 * i + k) % 96 + 1 for k in range(length)],
                   "sampling": sampling} for i, length in enumerate(prompt_lens)])


def run_toy(workload: Workload, block_manager: type[BlockSpaceManager]) -> ToyRun:
    """Run a workload with a block manager; the real engine does all the rest."""
    run = WorkloadRun(workload, block_manager=block_manager)
    with record(run.engine) as trace, without_warnings():
        try:
            for _ in run:
                if len(trace) > _MAX_STEPS:
                    return ToyRun(trace, f"after {_MAX_STEPS} steps the requests are still not "
                                         "finished.")
        except NotImplementedError:
            raise
        except Exception as error:
            return ToyRun(trace, f"step {run.clock.step}: {describe_error(error)}")
    return ToyRun(trace, None)


def compare_with_real(workload: Workload, block_manager: type[BlockSpaceManager]) -> Trace:
    """Run a workload with the learner's manager and with the real one; return the learner's run.

    Raises
    ------
    Wrong
        With the first request that does something else, or has another block table; else with
        the error that the learner's run ended with.
    """
    expected, yours = run_toy(workload, BlockSpaceManagerV1), run_toy(workload, block_manager)
    for right, mine in zip(expected.trace, yours.trace, strict=False):
        difference = first_difference(right, mine)
        if difference:
            raise Wrong(f"step {right.step}, {difference}", mine.blocks())
    if yours.error is not None:
        missed = [f" In the real one, {sentence(decision)}"
                  for right in expected.trace[len(yours.trace):len(yours.trace) + 1]
                  for decision in right.decisions if decision.request_id in right.preempted]
        raise Wrong("".join([yours.error, *missed]))
    return yours.trace


def first_difference(expected: Snapshot, yours: Snapshot) -> str | None:
    """Return what two runs of one workload do differently in a step, None if nothing."""
    for request_id in expected.request_ids:
        right, mine = deed(expected, request_id), deed(yours, request_id)
        if right != mine:
            reasons = [f" In {whose}, {sentence(decision)}"
                       for whose, snapshot in (("the real one", expected), ("yours", yours))
                       for decision in snapshot.decisions if decision.request_id == request_id]
            return "".join([f"{request_id}: expected {_EXPECTED[right]}, yours {_YOURS[mine]}.",
                            *reasons])
    for seq_id, right_seq in expected.sequences.items():
        my_seq = yours.sequences[seq_id]
        if right_seq.block_table != my_seq.block_table:
            return (f"{right_seq.name}: expected the block table {list(right_seq.block_table)}, "
                    f"yours has {list(my_seq.block_table)}.")
    if expected.gpu.num_free != yours.gpu.num_free:
        return (f"after the step: expected {expected.gpu.num_free} free blocks, yours has "
                f"{yours.gpu.num_free}.")
    return None


def deed(snapshot: Snapshot, request_id: str) -> str:
    """Return what a request did in a step."""
    scheduled = snapshot.scheduled_request(request_id)
    if scheduled is not None:
        return "prefill" if scheduled.is_prompt else "decode"
    if request_id in snapshot.swapped:
        return "swapped out"
    if request_id in snapshot.preempted:
        return "preempted"
    return "paused" if request_id in snapshot.running else "waiting"


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a method of the learner's; an error of theirs becomes a message."""
    try:
        return function(*args)
    except (NotImplementedError, Wrong):
        raise
    except Exception as error:
        raise Wrong(describe_error(error)) from error


def describe_error(error: BaseException) -> str:
    """Name an error, and the learner's line that it came from."""
    name = f"{type(error).__name__}: {error}"
    line = _learners_line(error.__traceback__)
    return f"{name} ({line})" if line else name


def _learners_line(trace: TracebackType | None) -> str | None:
    """Return the last line outside this package and the libraries, or in ``exercise.py``."""
    package = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(trace)):
        path = Path(frame.filename)
        mine = path.name == "exercise.py" or package not in path.parents
        if mine and "site-packages" not in path.parts and path.suffix != "":
            return f"line {frame.lineno} of {path.name}, in {frame.name}"
    return None
