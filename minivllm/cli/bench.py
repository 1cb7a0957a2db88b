"""``minivllm bench``: measuring."""

import argparse
import dataclasses
import sys
from statistics import mean, median

from minivllm.bench.cases import CASES
from minivllm.bench.report import report_lines
from minivllm.bench.run import run_case
from minivllm.bench.sampler import time_sampler
from minivllm.bench.scheduler import time_schedule_calls
from minivllm.cli.options import add_model_option
from minivllm.entrypoints.llm import LLM
from minivllm.tracing.files import check_can_write, write_json
from minivllm.tracing.workload import read_workload
from minivllm.transformers_utils.download import DEFAULT_MODEL


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
    sampler = benches.add_parser(
        "sampler", help="milliseconds of the sampler's stages beside the forward pass",
        description="Decode a batch, then print the milliseconds of its forward pass and of the "
        "sampler's stages for several kinds of sampling from its logits.")
    add_model_option(sampler, DEFAULT_MODEL)
    sampler.add_argument("--batch-size", type=int, default=64, metavar="N",
                         help="sequences that decode side by side (default: 64)")
    sampler.add_argument("--repeat", type=int, default=7, metavar="N",
                         help="runs of each, of which the median is shown (default: 7)")
    sampler.set_defaults(run=_bench_sampler)
    run = benches.add_parser(
        "run", help="speed of a case, where its time goes, and how far that is from the limits",
        description="Run a case several times and print its speed, its stages' times beside the "
        "limits of the machine, and the memory that it takes.")
    run.add_argument("--case", required=True, choices=CASES, help="what to run: "
                     + "; ".join(f"{name}: {case.description}" for name, case in CASES.items()))
    add_model_option(run, "smollm2")
    run.add_argument("--runs", type=int, default=5, metavar="N",
                     help="runs, of which the median is shown (default: 5)")
    run.add_argument("--json", metavar="FILE", help="write all numbers to this file, too")
    run.set_defaults(run=_bench_run)
    return result


def _bench_scheduler(arguments: argparse.Namespace) -> None:
    for path in arguments.workloads:
        workload = read_workload(path)
        for run in range(arguments.repeat):
            seconds = time_schedule_calls(workload)
            print(f"{workload['name']} run {run}: {len(seconds)} schedule() calls, "
                  f"{sum(seconds):.4f} s in total, mean {mean(seconds):.3e} s, "
                  f"median {median(seconds):.3e} s per call", flush=True)


def _bench_sampler(arguments: argparse.Namespace) -> None:
    llm = LLM(arguments.model, attention_backend=arguments.attention_backend,
              max_num_seqs=max(arguments.batch_size, 1))
    forward, cases = time_sampler(llm, arguments.batch_size, arguments.repeat)
    print(f"forward pass of {arguments.batch_size} decodes: {forward:.1f} ms\n\n"
          "the sampler in ms (stages: on one thread; all: on all threads)")
    names = list(next(iter(cases.values())).stages)
    print(" " * 22 + "".join(f"{name:>11}" for name in [*names, "all", "of forward"]))
    for case, times in cases.items():
        numbers = "".join(f"{value:11.1f}" for value in [*times.stages.values(), times.total])
        print(f"{case:22}{numbers}{times.total / forward:11.1%}")


def _bench_run(arguments: argparse.Namespace) -> None:
    if arguments.json:
        check_can_write(arguments.json)
    report = run_case(arguments.case, arguments.model, arguments.runs, arguments.attention_backend,
                      lambda text: print(f"{text} ...", file=sys.stderr, flush=True))
    for line in report_lines(report):
        print(line)
    if arguments.json:
        write_json(arguments.json, dataclasses.asdict(report))
