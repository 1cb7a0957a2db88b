"""Making workloads: the distributions are what they say, and nothing changes from run to run."""

import json

import pytest

from minivllm.workloads import poisson, shared_prefix


def test_poisson():
    workload = poisson(4000, 0.5, prompt_len=20, output_len=30, seed=1)
    requests = workload["requests"]
    assert [request["request_id"] for request in requests[:3]] == ["r0", "r1", "r2"]
    arrivals = [request["arrival_step"] for request in requests]
    assert arrivals[0] == 0 and arrivals == sorted(arrivals)
    assert arrivals[-1] == pytest.approx(4000 / 0.5, rel=0.05)
    prompt_lens = [len(request["prompt_token_ids"]) for request in requests]
    assert (min(prompt_lens), max(prompt_lens)) == (1, 39)
    assert sum(prompt_lens) / 4000 == pytest.approx(20, rel=0.05)
    output_lens = [request["sampling"]["max_tokens"] for request in requests]
    assert (min(output_lens), max(output_lens)) == (1, 59)
    assert sum(output_lens) / 4000 == pytest.approx(30, rel=0.05)


def test_shared_prefix():
    workload = shared_prefix(200, 1.0, num_prefixes=3, prefix_len=16, suffix_len=4, output_len=4,
                             seed=1)
    beginnings = {tuple(request["prompt_token_ids"][:16]) for request in workload["requests"]}
    assert len(beginnings) == 3
    assert workload["engine"]["enable_prefix_caching"]


def test_the_same_arguments_make_the_same_workload():
    assert poisson(20, 1.0, 5, 5, seed=7) == poisson(20, 1.0, 5, 5, seed=7)
    assert poisson(20, 1.0, 5, 5, seed=7) != poisson(20, 1.0, 5, 5, seed=8)
    first = poisson(3, 0.5, 4, 3, seed=0)["requests"][0]
    # Pinned: a change of these numbers would change every workload that was made before.
    assert first["prompt_token_ids"] == [30894, 15549, 29383]
    assert first["sampling"]["max_tokens"] == 3


def test_it_is_json():
    workload = poisson(3, 1.0, 5, 5, seed=0)
    assert json.loads(json.dumps(workload)) == workload


def test_engine_fields_can_be_set():
    workload = poisson(3, 1.0, 5, 5, seed=0, block_size=4, preemption_mode="swap")
    assert workload["engine"]["block_size"] == 4
    assert workload["engine"]["max_num_seqs"] == 256
    with pytest.raises(TypeError, match="num_blocks.*num_gpu_blocks"):
        poisson(3, 1.0, 5, 5, seed=0, num_blocks=4)


@pytest.mark.parametrize(("arguments", "named"), [
    ((0, 1.0, 5, 5), "num_requests"), ((3, 0.0, 5, 5), "rate_per_step"),
    ((3, 1.0, 0, 5), "mean length"), ((3, 1.0, 5, 0), "mean length"),
])
def test_impossible_arguments(arguments, named):
    with pytest.raises(ValueError, match=named):
        poisson(*arguments, seed=0)
