"""Comparing traces: equal ones are equal, and the first difference is named."""

import copy

import pytest

from minivllm.tracing.compare import check_trace, first_difference
from minivllm.tracing.trace import trace_workload
from minivllm.workloads import poisson


@pytest.fixture(scope="module")
def trace():
    return trace_workload(poisson(4, 1.0, prompt_len=6, output_len=5, seed=0))


def test_a_trace_equals_itself(trace):
    assert first_difference(trace, copy.deepcopy(trace)) is None


@pytest.mark.parametrize(("path", "value", "where"), [
    (["steps", 1, "preempted"], 3, "step 1: preempted"),
    (["steps", 1, "waiting"], ["r9"], "step 1: waiting"),
    (["steps", 0, "scheduled", 0, "is_prompt"], False, "step 0: scheduled[0].is_prompt"),
    (["steps", 0, "scheduled", 0, "seqs", 0, "block_table"], [7],
     "step 0: scheduled[0].seqs[0].block_table"),
    (["steps", 0, "scheduled"], [], "step 0: scheduled"),
    (["steps", 2, "outputs", 0, "outputs", 0, "cumulative_logprob"], 0.5,
     "step 2: outputs[0].outputs[0].cumulative_logprob"),
    (["final", "free_gpu_blocks"], 0, "final: free_gpu_blocks"),
    (["final", "requests", 3, "outputs", 0, "token_ids"], [], "final: requests[3].outputs[0]"),
    (["stalled"], True, "stalled"),
    (["workload"], "another", "workload"),
])
def test_the_first_difference_is_named(trace, path, value, where):
    expected = copy.deepcopy(trace)
    place = expected
    for step in path[:-1]:
        place = place[step]
    ours, place[path[-1]] = place[path[-1]], value
    difference = first_difference(trace, expected)
    assert difference is not None and difference.where.startswith(where)
    assert (difference.ours, difference.expected) == (ours, value)
    assert repr(value) in str(difference) and repr(ours) in str(difference)


def test_of_two_differences_the_earlier_one(trace):
    expected = copy.deepcopy(trace)
    expected["steps"][2]["scheduled"] = []
    expected["steps"][1]["outputs"] = []
    difference = first_difference(trace, expected)
    assert difference is not None and difference.where == "step 1: outputs"


def test_a_field_that_is_not_there_differs(trace):
    expected = copy.deepcopy(trace)
    del expected["steps"][0]["scheduled"][0]["do_sample"]
    difference = first_difference(trace, expected)
    assert difference is not None and difference.expected == "(nothing)"
    difference = first_difference(expected, trace)
    assert difference is not None and difference.ours == "(nothing)"


def test_another_number_of_steps(trace):
    expected = copy.deepcopy(trace)
    num_steps = len(expected["steps"])
    del expected["steps"][-1]
    assert first_difference(trace, expected) == ("number of steps", num_steps, num_steps - 1)


def test_decisions_and_ignored_fields_do_not_count(trace):
    expected = copy.deepcopy(trace)
    for step in expected["steps"]:
        del step["decisions"]
        for scheduled in step["scheduled"]:
            scheduled["computed_block_nums"] = [1]
    assert first_difference(trace, expected, ignore=("computed_block_nums",)) is None
    difference = first_difference(trace, expected)
    assert difference is not None and difference.where.endswith("computed_block_nums")


@pytest.mark.parametrize("value", [[], {}, {"format": "minivllm-trace/1"}, {
    "format": "minivllm-trace/1", "steps": [{}], "final": {}}])
def test_what_is_no_trace(value):
    with pytest.raises(ValueError, match=r"t\.json"):
        check_trace(value, "t.json")
