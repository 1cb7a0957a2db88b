"""The run loop: who is added and aborted when, and which steps are recorded."""

import pytest

from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.summary import RunSummary
from minivllm.tracing.trace import trace_workload
from minivllm.utils import InternalError
from minivllm.workloads import Workload, poisson, shared_prefix


def workload(*requests: dict, **engine) -> Workload:
    """Return a workload with these fields of its requests set."""
    made = poisson(len(requests), 1.0, prompt_len=4, output_len=4, seed=0,
                   **{"block_size": 4, "num_gpu_blocks": 16} | engine)
    for request, fields in zip(made["requests"], requests, strict=True):
        request["arrival_step"] = 0
        request["prompt_token_ids"] = [5, 6, 7]
        request["sampling"]["max_tokens"] = 3
        request.update(fields)
    return made


def test_an_idle_engine_jumps_to_the_next_arrival():
    trace = trace_workload(workload({}, {"arrival_step": 100}))
    assert [step["step"] for step in trace["steps"]] == [0, 1, 2, 100, 101, 102]


def test_requests_of_one_step_are_served_in_file_order():
    trace = trace_workload(workload({"arrival_step": 1}, {"arrival_step": 0},
                                    {"arrival_step": 1}))
    scheduled = [[group["request_id"] for group in step["scheduled"]] for step in trace["steps"]]
    assert scheduled[:3] == [["r1"], ["r0", "r2"], ["r1", "r0", "r2"]]


def test_an_abort_comes_just_before_its_step():
    trace = trace_workload(workload({"abort_step": 2}, {}))
    scheduled = [[group["request_id"] for group in step["scheduled"]] for step in trace["steps"]]
    assert scheduled == [["r0", "r1"], ["r0", "r1"], ["r1"]]
    [output] = trace["final"]["requests"][0]["outputs"]
    assert (len(output["token_ids"]), output["finish_reason"]) == (2, "abort")
    assert trace["final"]["free_gpu_blocks"] == 16


def test_a_request_aborted_as_it_arrives_leaves_no_step():
    trace = trace_workload(workload({"abort_step": 0}))
    assert trace["steps"] == []
    [output] = trace["final"]["requests"][0]["outputs"]
    assert (output["token_ids"], output["finish_reason"]) == ([], "abort")


@pytest.mark.parametrize("abort_step", [0, 50])
def test_aborting_what_is_not_there_does_nothing(abort_step):
    trace = trace_workload(workload({"arrival_step": 1, "abort_step": abort_step}))
    [output] = trace["final"]["requests"][0]["outputs"]
    assert output["finish_reason"] == "length"


def test_an_endless_run_is_an_error():
    run = WorkloadRun(workload({}))
    run.engine.step = lambda: []
    with pytest.raises(InternalError, match="nothing has run for 64 steps"):
        list(run)


def test_summary():
    made = shared_prefix(30, 2.0, num_prefixes=2, prefix_len=16, suffix_len=8, output_len=30,
                         seed=3, block_size=4, num_gpu_blocks=60, max_num_seqs=16)
    summary = RunSummary()
    trace = []
    for outputs in WorkloadRun(made, [summary]):
        trace.append(outputs)
    assert summary.num_steps == len(trace)
    assert sorted(r.request_id for r in summary.requests) == sorted(
        r["request_id"] for r in made["requests"])
    steps = trace_workload(made)["steps"]
    assert summary.num_preemptions == sum(step["preempted"] for step in steps) > 0
    assert summary.num_batched_tokens == sum(step["num_batched_tokens"] for step in steps)
    assert 0 < summary.num_prefix_hits <= summary.num_hit_blocks
    assert 50 < summary.peak_gpu_blocks <= 60
    by_id = {request.request_id: request for request in summary.requests}
    for request in made["requests"]:
        end = by_id[request["request_id"]]
        assert end.num_prompt_tokens == len(request["prompt_token_ids"])
        assert end.num_output_tokens == request["sampling"]["max_tokens"]
        assert request["arrival_step"] <= end.first_step <= end.last_step
        assert end.finish_reason == "length"
