"""Statistics of a step, under vLLM's names."""

import logging

import pytest

from minivllm.engine.metrics import StatLogger, Stats, StatsObserver
from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.source import CLASSIC_ENGINE, CLASSIC_TOKEN_IDS, stand_in_workload
from minivllm.workloads import Workload


def classic() -> Workload:
    return stand_in_workload(CLASSIC_TOKEN_IDS, CLASSIC_ENGINE)


def observed(workload: Workload) -> tuple[StatsObserver, list[Stats]]:
    observer = StatsObserver()
    stats = []
    for _ in WorkloadRun(workload, [observer]):
        assert observer.stats is not None
        stats.append(observer.stats)
    return observer, stats


def test_the_first_steps_of_the_classic_example():
    """The clock counts steps: a first token in step 1 has taken 1."""
    _, stats = observed(classic())
    assert [(s.num_running_sys, s.num_waiting_sys, s.num_swapped_sys) for s in stats[:3]] == [
        (2, 1, 0), (3, 0, 0), (2, 1, 0)]
    assert [s.gpu_cache_usage_sys for s in stats[:3]] == pytest.approx([0.8, 1.0, 0.8])
    assert [s.num_prompt_tokens_iter for s in stats[:3]] == [10, 3, 0]
    assert [s.num_generation_tokens_iter for s in stats[:3]] == [2, 1, 2]
    assert [s.num_preemption_iter for s in stats[:3]] == [0, 0, 1]
    # r0 arrives at 0, r1 at 1 and r2 at 2, as far as the order of arrival goes.
    assert stats[1].time_to_first_tokens_iter == [1.0 - 2.0]
    # r0 and r1 decode in step 2; step 1 was r2's.
    assert stats[2].time_per_output_tokens_iter == [2.0, 2.0]


def test_totals_are_those_of_the_run():
    observer, stats = observed(classic())
    assert observer.num_preemptions == sum(s.num_preemption_iter for s in stats) > 0
    assert observer.generation_tokens == sum(
        sum(s.num_generation_tokens_requests) for s in stats)
    assert observer.prompt_tokens == sum(s.num_prompt_tokens_iter for s in stats)
    assert [reason for s in stats for reason in s.finished_reason_requests] == ["length"] * 3
    assert sum((s.n_requests for s in stats), []) == [1, 1, 1]


def test_a_recompute_is_no_first_token():
    _, stats = observed(classic())
    assert sum(len(s.time_to_first_tokens_iter) for s in stats) == 3


def test_several_sequences_count_each():
    workload = stand_in_workload([[5, 6, 7]], {"max_model_len": 16, "max_num_batched_tokens": 64})
    workload["requests"][0]["sampling"] = {**workload["requests"][0]["sampling"], "n": 2,
                                           "temperature": 1.0, "max_tokens": 3}
    observer, stats = observed(workload)
    assert [s.num_generation_tokens_iter for s in stats] == [2, 2, 2]
    assert stats[-1].best_of_requests == [2]
    assert stats[-1].num_generation_tokens_requests == [3, 3]


def test_the_logger_prints_a_line_every_few_seconds(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="minivllm"):
        logging.getLogger("minivllm").propagate = True
        for _ in WorkloadRun(classic(), [StatLogger(local_interval=5.0)]):
            pass
    lines = [record.message for record in caplog.records if "throughput" in record.message]
    # 22 steps; the clock counts one second for each.
    assert len(lines) == 3
    assert lines[0] == (
        "Avg prompt throughput: 2.8 tokens/s, Avg generation throughput: 1.8 tokens/s, "
        "Running: 1 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 60.0%, "
        "CPU KV cache usage: 0.0%.")
