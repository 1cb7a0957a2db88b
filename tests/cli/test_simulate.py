"""``minivllm simulate`` and ``minivllm bench scheduler``, from arguments to exit code."""

import json
import os
import subprocess
import sys

import pytest

from minivllm.cli import main, simulate
from minivllm.tracing.files import check_can_write, read_json, write_json
from minivllm.workloads import poisson
from tests.schedule import golden

WORKLOAD = golden.GOLDEN / "named" / "preempt_swap_v1.workload.json.gz"
TRACE = golden.GOLDEN / "named" / "preempt_swap_v1.trace.json.gz"


def test_expect_equal(capsys):
    assert main(["simulate", str(WORKLOAD), "--expect", str(TRACE)]) == 0
    assert "preempt_swap_v1: equal" in capsys.readouterr().out


def test_expect_names_the_first_difference(tmp_path, capsys):
    expected = read_json(TRACE)
    expected["steps"][3]["num_batched_tokens"] = 99
    write_json(tmp_path / "t.json", expected)
    assert main(["simulate", str(WORKLOAD), "--expect", str(tmp_path / "t.json")]) == 1
    assert "step 3: num_batched_tokens: ours " in capsys.readouterr().out


def test_writes_a_trace_for_each_workload(tmp_path):
    names = ["preempt_swap_v1", "beam_plain"]
    paths = [str(golden.GOLDEN / "named" / f"{name}.workload.json.gz") for name in names]
    assert main(["simulate", *paths, "--trace-dir", str(tmp_path / "new")]) == 0
    for name in names:
        trace = read_json(tmp_path / "new" / f"{name}.trace.json")
        expected = golden.expected_trace("named", name)
        # Ours has the decisions besides.
        assert [{key: step[key] for key in expected["steps"][0]} for step in trace["steps"]] == \
            expected["steps"]
        assert {key: trace[key] for key in expected if key != "steps"} == \
            {key: value for key, value in expected.items() if key != "steps"}


def test_a_dash_writes_one_line_for_each_trace_to_stdout(capsys):
    assert main(["simulate", str(WORKLOAD), "--trace-dir", "-"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["workload"] == "preempt_swap_v1"


def test_summary(capfd):
    assert main(["simulate", str(WORKLOAD)]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    for word in ["preempt_swap_v1", "steps", "preemptions", "blocks swapped out", "peak blocks"]:
        assert word in out
    for request in golden.workload("named", "preempt_swap_v1")["requests"]:
        assert request["request_id"] in out


def test_summary_does_not_read_request_ids_as_markup(tmp_path, capsys):
    workload = poisson(1, 1.0, 4, 4, seed=0)
    workload["requests"][0]["request_id"] = "[bold]x[/]"
    write_json(tmp_path / "w.json", workload)
    assert main(["simulate", str(tmp_path / "w.json")]) == 0
    assert "[bold]x[/]" in capsys.readouterr().out


def test_random(capsys):
    assert main(["simulate", "--random", "50", "--seed", "1"]) == 0
    first = capsys.readouterr().out
    assert "poisson-50-1" in first and "and 10 more requests" in first
    assert main(["simulate", "--random", "50", "--seed", "1"]) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(("arguments", "named"), [
    ([], "--random"),
    (["nowhere.json"], "nowhere.json"),
    ([str(TRACE)], "format"),
    ([str(WORKLOAD), str(WORKLOAD)], "preempt_swap_v1"),
    ([str(WORKLOAD), "--expect", str(WORKLOAD)], "not a trace"),
    ([str(WORKLOAD), "--expect", "nowhere.json"], "nowhere.json"),
    ([str(WORKLOAD), "--random", "3", "--expect", str(TRACE)], "got 2"),
    (["--random", "0"], "num_requests"),
])
def test_bad_input_is_one_line_and_exit_code_2(arguments, named, capsys):
    assert main(["simulate", *arguments]) == 2
    error = capsys.readouterr().err
    assert named in error and error.count("\n") == 1


def test_bench_scheduler(capsys):
    assert main(["bench", "scheduler", str(WORKLOAD), "--repeat", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    num_steps = len(golden.expected_trace("named", "preempt_swap_v1")["steps"])
    assert f"{num_steps} schedule() calls" in lines[0] and "s per call" in lines[0]


def test_python_m_minivllm_is_the_same_command():
    run = subprocess.run([sys.executable, "-m", "minivllm", "simulate", str(WORKLOAD), "--expect",
                          str(TRACE)], capture_output=True, text=True, check=False)
    assert (run.returncode, "equal" in run.stdout) == (0, True), run.stderr


@pytest.mark.parametrize("option", ["--trace", "--trace-dir"])
def test_a_place_where_nothing_can_be_written_is_noticed_before_the_run(option, capsys,
                                                                        monkeypatch):
    monkeypatch.setattr(simulate, "_go", lambda run: pytest.fail("it ran"))
    assert main(["simulate", str(WORKLOAD), option, f"{os.devnull}/there"]) == 2
    assert os.devnull in capsys.readouterr().err


def test_what_can_be_written_is_not_refused(tmp_path):
    check_can_write(os.devnull)
    check_can_write(tmp_path / "new.json")
    (tmp_path / "there.json").write_text("{}")
    check_can_write(tmp_path / "there.json")
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        check_can_write(tmp_path)
    with pytest.raises(FileNotFoundError, match="make it first"):
        check_can_write(tmp_path / "no" / "new.json")
