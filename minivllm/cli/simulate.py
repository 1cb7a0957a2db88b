"""``minivllm simulate``: what vLLM would do with a workload, block for block."""

import argparse
import gc
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from minivllm.logger import without_warnings
from minivllm.tracing.compare import check_trace, first_difference
from minivllm.tracing.files import check_can_write, read_json, to_json, write_json
from minivllm.tracing.record import Recorder
from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.summary import RequestSummary, RunSummary
from minivllm.tracing.trace import TraceRecorder, finish_trace
from minivllm.tracing.workload import read_workload
from minivllm.workloads import Workload, poisson

# What `--random` runs.
RANDOM_RATE_PER_STEP = 1.0
RANDOM_PROMPT_LEN = 200
RANDOM_OUTPUT_LEN = 200

# Objects that a step may make before Python looks for cycles among all that is alive.  There are
# none: a step's objects go when it ends.  With Python's own limit, of hundreds, looking at every
# token of the workload again and again takes a third of the time.
_GC_THRESHOLD = 50_000

# A longer table says nothing more.
_MAX_REQUEST_LINES = 40

_EPILOG = f"""\
--random N makes N requests: arrivals are a Poisson process with {RANDOM_RATE_PER_STEP:g} request
a step on average; prompts and outputs have {RANDOM_PROMPT_LEN} tokens on average, drawn uniformly
from 1 to {2 * RANDOM_PROMPT_LEN - 1}; the engine has 8000 blocks of 16 tokens, 256 seats, and 2048
tokens a step.

Exit code 1: a trace differs from the expected one.  2: bad input."""


def main(argv: list[str]) -> int:
    """Run ``minivllm simulate`` with the arguments `argv`."""
    arguments = parser().parse_args(argv)
    thresholds = gc.get_threshold()
    gc.set_threshold(_GC_THRESHOLD)
    try:
        # They advise on an engine that somebody waits for.
        with without_warnings():
            return _run(arguments)
    finally:
        gc.set_threshold(*thresholds)


def _run(arguments: argparse.Namespace) -> int:
    workloads = [read_workload(path) for path in arguments.workloads]
    if arguments.random is not None:
        workloads.append(poisson(arguments.random, RANDOM_RATE_PER_STEP, RANDOM_PROMPT_LEN,
                                 RANDOM_OUTPUT_LEN, arguments.seed))
    _check_names(workloads)
    if arguments.expect is not None:
        return _compare(workloads, arguments.expect)
    if arguments.trace is not None:
        return _record(workloads, arguments.trace)
    if arguments.trace_dir is None:
        for workload in workloads:
            _show(workload)
        return 0
    if arguments.trace_dir != "-":
        Path(arguments.trace_dir).mkdir(parents=True, exist_ok=True)
    for workload in workloads:
        _write(_trace(workload), arguments.trace_dir)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm simulate", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run workloads through the engine with a stand-in model and show what\n"
                    "happened, write traces of it, or compare with an expected trace.",
        epilog=_EPILOG)
    result.add_argument("workloads", nargs="*", metavar="WORKLOAD.json",
                        help="workload files, .json or .json.gz")
    result.add_argument("--random", type=int, metavar="N",
                        help="a random workload of N requests (see below)")
    result.add_argument("--seed", type=int, default=0, metavar="S", help="for --random")
    result.add_argument("--trace-dir", metavar="DIR",
                        help="write DIR/NAME.trace.json for each workload's name; - is stdout")
    result.add_argument("--trace", metavar="FILE",
                        help="record this one workload for minivllm show and step --trace")
    result.add_argument("--expect", metavar="TRACE.json",
                        help="compare with this trace instead, and name the first difference")
    return result


def _check_names(workloads: list[Workload]) -> None:
    """Raise if there is no workload, or two of one name, which would share a trace file."""
    if not workloads:
        raise ValueError("nothing to run: name a workload file, or give --random N.")
    names = [workload["name"] for workload in workloads]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two workloads are called {name!r}.")


def _compare(workloads: list[Workload], expected_path: str) -> int:
    if len(workloads) != 1:
        raise ValueError(f"--expect compares one workload, got {len(workloads)}.")
    expected = check_trace(read_json(expected_path), expected_path)
    ours = _trace(workloads[0])
    difference = first_difference(ours, expected)
    name = workloads[0]["name"]
    if difference is None:
        print(f"{name}: equal ({len(ours['steps'])} steps)")
        return 0
    print(f"{name}: {difference}")
    return 1


def _record(workloads: list[Workload], path: str) -> int:
    """Write a trace from which pictures can be drawn."""
    if len(workloads) != 1:
        raise ValueError(f"--trace records one workload, got {len(workloads)}.")
    check_can_write(path)
    run = WorkloadRun(workloads[0])
    recorder = Recorder(run.engine)
    run.engine.observers.append(recorder)
    _go(run)
    final = finish_trace(run, recorder.format_recorder)["final"]
    recorder.trace.save(path, workloads[0]["name"], final)
    return 0


def _trace(workload: Workload) -> dict[str, Any]:
    run = WorkloadRun(workload)
    recorder = TraceRecorder(run.clock)
    run.engine.observers.append(recorder)
    _go(run)
    return finish_trace(run, recorder)


def _write(trace: dict[str, Any], trace_dir: str) -> None:
    if trace_dir == "-":
        sys.stdout.write(to_json(trace))
        return
    write_json(Path(trace_dir, f"{trace['workload']}.trace.json"), trace)


def _go(run: WorkloadRun) -> None:
    """Run to the end, with a progress bar if somebody is looking."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("requests", total=len(run.workload["requests"]))
        for outputs in run:
            num_finished = sum(output.finished for output in outputs)
            if num_finished:
                progress.advance(task, num_finished)


def _show(workload: Workload) -> None:
    """Run `workload` and print what happened."""
    summary = RunSummary()
    run = WorkloadRun(workload, [summary])
    _go(run)
    summary.requests += [RequestSummary.of(output) for output in run.aborted.values()]
    console = Console()
    console.print(Text(workload["name"], style="bold"))
    console.print(_numbers(workload, summary))
    console.print(_request_table(workload, summary))
    num_left_out = len(workload["requests"]) - _MAX_REQUEST_LINES
    if num_left_out > 0:
        console.print(f"... and {num_left_out} more requests")


def _numbers(workload: Workload, summary: RunSummary) -> Table:
    num_output_tokens = sum(request.num_output_tokens for request in summary.requests)
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column()
    for name, number, remark in [
        ("steps", summary.num_steps, ""),
        ("requests", len(summary.requests), f"{summary.num_ignored} ignored"),
        ("tokens computed", summary.num_batched_tokens, "again after a preemption included"),
        ("tokens returned", num_output_tokens, ""),
        ("preemptions", summary.num_preemptions, ""),
        ("blocks swapped out", summary.num_blocks_swapped_out, ""),
        ("blocks swapped in", summary.num_blocks_swapped_in, ""),
        ("blocks copied", summary.num_blocks_copied, ""),
        ("prefix hits", summary.num_prefix_hits, f"{summary.num_hit_blocks} blocks"),
        ("peak blocks", summary.peak_gpu_blocks, f"of {workload['engine']['num_gpu_blocks']}"),
    ]:
        grid.add_row(name, f"{number:,}", remark)
    return grid


def _request_table(workload: Workload, summary: RunSummary) -> Table:
    """Return a line for each request, in file order; steps count from 0."""
    table = Table("request", "arrives", "starts", "ends", "prompt", "output", "finish", box=None,
                  pad_edge=False)
    for column in table.columns[1:6]:
        column.justify = "right"
    ended = {request.request_id: request for request in summary.requests}
    for request in workload["requests"][:_MAX_REQUEST_LINES]:
        end = ended[request["request_id"]]
        table.add_row(
            Text(request["request_id"]), str(request["arrival_step"]), _or_dash(end.first_step),
            _or_dash(end.last_step), str(end.num_prompt_tokens), str(end.num_output_tokens),
            end.finish_reason)
    return table


def _or_dash(step: int | None) -> str:
    return "-" if step is None else str(step)
