"""``minivllm bench``: measuring."""

import argparse
from statistics import mean, median

from minivllm.bench.scheduler import time_schedule_calls
from minivllm.tracing.workload import read_workload


def main(argv: list[str]) -> int:
    """Run ``minivllm bench`` with the arguments `argv`."""
    arguments = parser().parse_args(argv)
    arguments.run(arguments)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(prog="minivllm bench", description="Measure.")
    benches = result.add_subparsers(metavar="WHAT", required=True)
    scheduler = benches.add_parser("scheduler", help="seconds per call of Scheduler.schedule()",
                                   description="Print seconds per call of Scheduler.schedule().")
    scheduler.add_argument("workloads", nargs="+", metavar="WORKLOAD.json",
                           help="workload files, .json or .json.gz")
    scheduler.add_argument("--repeat", type=int, default=3, metavar="N",
                           help="runs of each workload (default: 3)")
    scheduler.set_defaults(run=_bench_scheduler)
    return result


def _bench_scheduler(arguments: argparse.Namespace) -> None:
    for path in arguments.workloads:
        workload = read_workload(path)
        for run in range(arguments.repeat):
            seconds = time_schedule_calls(workload)
            print(f"{workload['name']} run {run}: {len(seconds)} schedule() calls, "
                  f"{sum(seconds):.4f} s in total, mean {mean(seconds):.3e} s, "
                  f"median {median(seconds):.3e} s per call", flush=True)
