"""A request's result does not depend on its company.

Each request of a crowded engine is run again alone, with more blocks than it needs, no caching,
no chunking and so no preemption.  In the stand-in model each token depends on all tokens before
it, so a mix-up between sequences would show.
"""

from collections import Counter
from typing import Any

import pytest

from minivllm.core.invariants import check_invariants
from minivllm.decisions import Verdict
from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.trace import TraceRecorder, finish_trace, trace_workload
from minivllm.workloads import Workload
from tests.schedule import golden
from tests.schedule.random_workloads import random_workload


class InvariantsObserver:
    """Checks the engine after every step."""

    def on_schedule(self, engine, seq_group_metadata_list, scheduler_outputs):
        pass

    def on_step(self, engine, scheduler_outputs, request_outputs):
        check_invariants(engine.scheduler)


def trace_and_check(workload: Workload) -> dict[str, Any]:
    """Return the trace of `workload`; the pools must be sound always and full at the end."""
    run = WorkloadRun(workload, [InvariantsObserver()])
    recorder = TraceRecorder(run.clock)
    run.engine.observers.append(recorder)
    for _ in run:
        assert len(recorder.steps) < 3000, "does this ever end?"
    trace = finish_trace(run, recorder)
    assert trace["final"]["free_gpu_blocks"] == workload["engine"]["num_gpu_blocks"]
    assert trace["final"]["free_cpu_blocks"] == workload["engine"]["num_cpu_blocks"]
    return trace


def trace_alone(workload: Workload, index: int) -> dict[str, Any]:
    engine = workload["engine"] | dict(
        num_gpu_blocks=5000, max_num_batched_tokens=5000, enable_chunked_prefill=False,
        enable_prefix_caching=False, use_v2_block_manager=False)
    trace = trace_workload(workload | {"engine": engine, "requests": [workload["requests"][index]]})
    assert trace["final"]["total_preemptions"] == 0
    return trace


def fits(trace: dict[str, Any], num_gpu_blocks: int) -> bool:
    """Return whether at every moment blocks held + running sequences <= number of blocks."""
    for step in trace["steps"]:
        for group in step["scheduled"]:
            blocks = {block for seq in group["seqs"] for block in seq["block_table"]}
            if len(blocks) + len(group["seqs"]) > num_gpu_blocks:
                return False
    return True


def check_workload_against_each_alone(workload: Workload, counts: Counter[str]) -> None:
    trace = trace_and_check(workload)
    count_mechanisms(trace, counts)
    together = trace["final"]["requests"]
    for index, request in enumerate(workload["requests"]):
        if request["abort_step"] is not None:
            # How far it has come by then does depend on others.
            continue
        alone = trace_alone(workload, index)
        if fits(alone, workload["engine"]["num_gpu_blocks"]):
            counts["requests compared"] += 1
            assert together[index] == alone["final"]["requests"][0], (
                workload["name"], request["request_id"])
        else:
            counts["requests too large for the pool"] += 1
            assert together[index]["finished"]


def count_mechanisms(trace: dict[str, Any], counts: Counter[str]) -> None:
    for step in trace["steps"]:
        counts.update(decision["verdict"].value for decision in step["decisions"])
        counts["blocks swapped in"] += len(step["blocks_to_swap_in"])
        counts["blocks copied"] += len(step["blocks_to_copy"])
        for group in step["scheduled"]:
            counts["prefix hits"] += group["is_prompt"] and group["computed_block_nums"] != []
            counts["groups recomputed"] += group["is_prompt"] and len(group["seqs"]) > 1
            counts["chunks"] += not group["do_sample"]
    for request in trace["final"]["requests"]:
        counts.update(f"ended: {output['finish_reason']}" for output in request["outputs"])


def report(counts: Counter[str]) -> None:
    for name, number in sorted(counts.items()):
        print(f"{number:7} {name}")
    for name in [*(verdict.value for verdict in (
            Verdict.ADMITTED, Verdict.SWAPPED_IN, Verdict.WAITS, Verdict.STAYS_SWAPPED,
            Verdict.RECOMPUTED, Verdict.SWAPPED_OUT, Verdict.IGNORED)),
            "blocks swapped in", "blocks copied", "prefix hits", "chunks", "requests compared",
            "requests too large for the pool", "ended: stop", "ended: length", "ended: abort"]:
        assert counts[name] > 0, name


@pytest.mark.slow
def test_golden_workloads():
    counts: Counter[str] = Counter()
    for folder in ("named", "random", "v2_prefix_bug", "upstream_faults"):
        for name in golden.names(folder):
            check_workload_against_each_alone(golden.workload(folder, name), counts)
    report(counts)


@pytest.mark.parametrize("seeds", [
    pytest.param(range(40), id="some"),
    pytest.param(range(40, 200), id="more", marks=pytest.mark.slow),
    pytest.param(range(200, 2000), id="many", marks=[pytest.mark.slow, pytest.mark.slow_full]),
])
def test_random_workloads(seeds):
    counts: Counter[str] = Counter()
    for seed in seeds:
        check_workload_against_each_alone(random_workload(seed), counts)
    report(counts)
    assert counts["groups recomputed"] > 0
