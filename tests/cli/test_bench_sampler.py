"""``minivllm bench sampler``: a line of milliseconds for each kind of sampling."""

from pathlib import Path

import pytest

from minivllm.bench.sampler import CASES, SamplerTimes, time_sampler
from minivllm.cli.bench import main
from minivllm.entrypoints.llm import LLM

TINY = Path(__file__).parents[1] / "golden" / "tiny" / "llama-mha"


def test_a_line_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sampler", "--model", str(TINY), "--batch-size", "3", "--repeat", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("forward pass of 3 decodes: ")
    assert [line[:22].strip() for line in lines[4:]] == list(CASES)
    assert all(line.endswith("%") for line in lines[4:])


def test_the_model_is_given_back() -> None:
    llm = LLM(str(TINY), num_gpu_blocks_override=50, num_cpu_blocks_override=0)
    runner = llm.llm_engine.model_executor.driver_worker.model_runner  # type: ignore[attr-defined]
    model = runner.model
    forward, cases = time_sampler(llm, batch_size=2, repeat=2)
    assert runner.model is model
    assert forward > 0
    for times in cases.values():
        assert isinstance(times, SamplerTimes)
        assert times.total > 0
        assert list(times.stages) == ["min_tokens", "penalties", "check", "filters", "softmax",
                                      "choice", "logprobs"]
