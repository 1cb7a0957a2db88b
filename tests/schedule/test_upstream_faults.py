"""Workloads with which vLLM 0.5.0.post1 runs to the end, but wrongly.  Ours does right.

Each is equal to vLLM up to its fault.
"""

from typing import Any

from minivllm.tracing.compare import first_difference
from minivllm.tracing.trace import trace_workload
from tests.schedule import golden


def both(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return (trace_workload(golden.workload("upstream_faults", name)),
            golden.expected_trace("upstream_faults", name))


def results(trace: dict[str, Any]) -> dict[str, list[tuple[int, str]]]:
    """Return (number of tokens, finish reason) of each request's outputs."""
    return {request["request_id"]: [(len(output["token_ids"]), output["finish_reason"])
                                    for output in request["outputs"]]
            for request in trace["final"]["requests"]}


def test_a_swapped_group_that_is_given_up_returns_its_cpu_blocks():
    for name, step, num_cpu_blocks in [("lone_sequence_outgrows_pool_swap_v1", 10, 16),
                                       ("groups_swap_singles_recompute", 28, 16)]:
        ours, vllm = both(name)
        difference = first_difference(ours, vllm)
        assert difference is not None
        assert difference.where == f"step {step}: free_cpu_blocks"
        assert difference.ours > difference.expected
        # Nothing else of the run changes.
        assert first_difference(ours, vllm, ignore=("free_cpu_blocks",)) is None
        assert results(ours) == results(vllm)
        assert vllm["final"]["free_cpu_blocks"] < num_cpu_blocks
        assert ours["final"]["free_cpu_blocks"] == num_cpu_blocks


def test_the_models_length_limit_wins_over_min_tokens():
    ours, vllm = both("max_model_len_vs_min_tokens")
    # Prompts of 12 tokens, max_model_len 16: the 17th token ends it; r0 asks for 9 at least.
    assert results(vllm) == {"r0": [(9, "length")], "r1": [(5, "length")]}
    assert results(ours) == {"r0": [(5, "length")], "r1": [(5, "length")]}


def test_a_prompt_over_the_models_limit_is_ignored_though_its_chunks_are_not():
    ours, vllm = both("chunked_prompt_over_model_len")
    assert results(vllm)["r0"] == [(1, "length")]
    assert results(ours)["r0"] == [(0, "length")]
    assert ours["steps"][0]["ignored"] == ["r0"]
    # Nobody else's result changes.
    assert results(ours)["r1"] == results(vllm)["r1"]


def test_a_prompt_that_fills_the_pool_does_not_preempt_itself_for_ever():
    ours, vllm = both("r100_v2_chunked_single")
    # r6 has 33 tokens and max_model_len is 32: in vLLM its chunks pass the limit, and it preempts
    # itself until it is aborted, at step 24.
    assert results(vllm)["r6"] == results(vllm)["r6"][:1] == [(0, "abort")]
    assert results(ours)["r6"] == [(0, "length")]
    assert {**results(ours), "r6": None} == {**results(vllm), "r6": None}
    assert ours["final"]["total_preemptions"] < vllm["final"]["total_preemptions"]
