"""A request's result does not depend on its company.

Each request of the golden workloads is run again alone on the same engine.  Its tokens depend on
all tokens before them, so a mix-up between sequences would show.
"""

import copy
from typing import Any

import pytest

from minivllm.tracing.trace import trace_workload
from minivllm.workloads import Workload
from tests.schedule import golden


def results(trace: dict[str, Any]) -> dict[str, Any]:
    return {request["request_id"]: request["outputs"] for request in trace["final"]["requests"]}


def only(workload: Workload, request_id: str) -> Workload:
    alone = copy.copy(workload)
    alone["requests"] = [r for r in workload["requests"] if r["request_id"] == request_id]
    return alone


@pytest.mark.parametrize("folder", ["named", "random"])
def test_alone_and_together(folder):
    num_requests = num_preemptions = num_steps = 0
    for name in golden.names(folder):
        workload = golden.workload(folder, name)
        trace = trace_workload(workload)
        num_preemptions += trace["final"]["total_preemptions"]
        num_steps += len(trace["steps"])
        together = results(trace)
        for request in workload["requests"]:
            if request["abort_step"] is not None:
                # When it is cut off depends on how far it has come, which may depend on others.
                continue
            request_id = request["request_id"]
            alone = results(trace_workload(only(workload, request_id)))[request_id]
            assert together[request_id] == alone, (name, request_id)
            num_requests += 1
    print(f"{folder}: {num_requests} requests, {num_preemptions} preemptions, {num_steps} steps")
    assert num_requests > 200 and num_preemptions > 50
