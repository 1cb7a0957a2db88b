"""Workload files: what is accepted, and how each mistake is named."""

import copy
import gzip
import json

import pytest

from minivllm.tracing.workload import check_workload, read_workload
from minivllm.workloads import poisson, shared_prefix


def workload():
    return copy.deepcopy(poisson(2, 1.0, prompt_len=4, output_len=4, seed=0))


def test_what_workloads_makes_is_a_workload():
    check_workload(poisson(50, 0.5, 8, 8, seed=1))
    check_workload(shared_prefix(50, 2.0, 3, 16, 4, 8, seed=1, use_v2_block_manager=True))


@pytest.mark.parametrize("name", ["w.json", "w.json.gz"])
def test_reads_plain_and_gzipped_files(tmp_path, name):
    data = json.dumps(workload()).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert read_workload(tmp_path / name) == workload()


def test_other_keys_are_ignored():
    check_workload(workload() | {"comment": "hello"})


# Each: where to write what, and what the message must name.
@pytest.mark.parametrize(("path", "value", "named"), [
    (["format"], "minivllm-workload/2", ["format", "minivllm-workload/1"]),
    (["name"], "", ["name"]),
    (["name"], "../../etc/x", ["name", "../../etc/x"]),
    (["vocab_size"], 0, ["vocab_size"]),
    (["eos_token_id"], 32000, ["eos_token_id", "31999"]),
    (["requests"], {}, ["requests", "a list"]),
    (["engine"], [], ["engine", "an object"]),
    (["engine", "block_size"], 0, ["engine", "block_size", "at least 1"]),
    (["engine", "block_size"], 1.5, ["engine", "block_size", "1.5"]),
    (["engine", "num_gpu_blocks"], 0, ["num_gpu_blocks"]),
    (["engine", "num_cpu_blocks"], -1, ["num_cpu_blocks", "-1"]),
    (["engine", "max_num_seqs"], True, ["max_num_seqs", "True"]),
    (["engine", "max_num_batched_tokens"], 100, ["engine", "max_num_batched_tokens", "100"]),
    (["engine", "enable_chunked_prefill"], 1, ["enable_chunked_prefill", "true or false"]),
    (["engine", "preemption_mode"], "drop", ["preemption_mode", '"swap"', "drop"]),
    (["requests", 1], "r1", ["requests[1]", "an object"]),
    (["requests", 1, "request_id"], "r0", ["requests[1]", "request_id", "r0"]),
    (["requests", 1, "request_id"], 7, ["requests[1]", "request_id"]),
    (["requests", 1, "arrival_step"], -1, ["requests[1]", "arrival_step", "-1"]),
    (["requests", 1, "abort_step"], "soon", ["requests[1]", "abort_step", "soon"]),
    (["requests", 1, "prompt_token_ids"], [], ["requests[1]", "prompt_token_ids", "not empty"]),
    (["requests", 1, "prompt_token_ids"], [1, 32000], ["r1", "prompt_token_ids", "32000"]),
    (["requests", 1, "prompt_token_ids"], [1, "a"], ["r1", "prompt_token_ids", "'a'"]),
    (["requests", 1, "sampling", "n"], 0, ["r1", "sampling", "n must"]),
    (["requests", 1, "sampling", "best_of"], 0, ["r1", "best_of"]),
    (["requests", 1, "sampling", "n"], 2, ["r1", "best_of", "temperature"]),
    (["requests", 1, "sampling", "early_stopping"], "maybe", ["r1", "early_stopping", "maybe"]),
    (["requests", 1, "sampling", "max_tokens"], None, ["r1", "max_tokens"]),
    (["requests", 1, "sampling", "min_tokens"], 1000, ["r1", "min_tokens", "1000"]),
    (["requests", 1, "sampling", "stop_token_ids"], [-1], ["r1", "stop_token_ids", "-1"]),
])
def test_a_mistake_is_named(path, value, named):
    wrong = workload()
    place = wrong
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValueError) as error:
        check_workload(wrong, "w.json")
    for word in ["w.json", *named]:
        assert word in str(error.value)


@pytest.mark.parametrize("path", [
    ["vocab_size"], ["engine", "block_size"], ["requests", 0, "abort_step"],
    ["requests", 0, "sampling", "best_of"],
])
def test_a_missing_field_is_named(path):
    wrong = workload()
    place = wrong
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    with pytest.raises(ValueError, match=f"w.json.*{path[-1]} is missing"):
        check_workload(wrong, "w.json")


def test_more_samples_than_seats():
    wrong = workload()
    wrong["engine"]["max_num_seqs"] = 2
    wrong["requests"][1]["sampling"] |= {"n": 3, "temperature": 1.0}
    with pytest.raises(ValueError, match=r"r1.*best_of.*max_num_seqs \(2\), got 3"):
        check_workload(wrong)


def test_a_beam_search_needs_enough_tokens():
    wrong = workload()
    wrong |= {"vocab_size": 5, "eos_token_id": 2}
    for request in wrong["requests"]:
        request["prompt_token_ids"] = [1, 2]
    wrong["requests"][1]["sampling"] |= {"n": 3, "use_beam_search": True}
    with pytest.raises(ValueError, match="r1.*best_of=3 and vocab_size=5"):
        check_workload(wrong)


def test_files_that_are_no_workload(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        read_workload(tmp_path / "nowhere.json")
    (tmp_path / "broken.json").write_text('{"format": \n oops}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.json: not JSON: .*line 2"):
        read_workload(tmp_path / "broken.json")
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xe4"}')
    with pytest.raises(ValueError, match=r"latin\.json: not JSON"):
        read_workload(tmp_path / "latin.json")
    (tmp_path / "plain.json.gz").write_bytes(b"{}")
    with pytest.raises(ValueError, match=r"plain\.json\.gz: not a gzip file"):
        read_workload(tmp_path / "plain.json.gz")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"list\.json: must be an object"):
        read_workload(tmp_path / "list.json")
