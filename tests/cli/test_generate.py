"""``minivllm generate`` and the options that are made from docstrings."""

import inspect
import os
import subprocess
import sys

import pytest

from minivllm.cli import main
from minivllm.cli.generate import parser
from minivllm.cli.options import field_descriptions
from minivllm.engine.arg_utils import EngineArgs
from minivllm.sampling_params import SamplingParams


def test_several_outputs_of_a_prompt_have_numbers(capsys):
    arguments = ["--n", "2", "--temperature", "1", "--seed", "1", "--max-tokens", "3"]
    assert main(["generate", "The life is", "Hello", *arguments]) == 0
    lines = capsys.readouterr().out.split("\n\n")[:-1]
    assert [line.split("]")[0] for line in lines] == ["[1.1", "[1.2", "[2.1", "[2.2"]
    assert lines[1].startswith("[1.2] The life is ")


def test_without_a_prompt_the_usage_is_short(capsys):
    with pytest.raises(SystemExit):
        main(["generate"])
    assert capsys.readouterr().err == (
        "usage: minivllm generate [options] PROMPT [PROMPT ...]\n"
        "minivllm generate: error: the following arguments are required: PROMPT\n")


@pytest.mark.parametrize("cls", [SamplingParams, EngineArgs])
def test_every_field_has_a_text_of_its_own(cls):
    texts = field_descriptions(cls)
    assert texts.keys() == inspect.signature(cls).parameters.keys()
    assert len(set(texts.values())) == len(texts)


def test_the_help_has_no_markup_of_docstrings():
    assert "``" not in parser().format_help()


def test_a_recording_calls_the_request_r0(tmp_path, capsys):
    path = tmp_path / "t.json"
    assert main(["generate", "The life is", "--max-tokens", "2", "--trace", str(path)]) == 0
    assert main(["show", str(path), "--step", "0"]) == 0
    assert "step 0  prefill r0" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, says", [
    (["--logprobs", "21"], "logprobs must be at most 20"),
    (["--num-gpu-blocks-override", "99999999999"], "there is no memory for 99,999,999,999 GPU"),
    (["--kv-cache-space", "inf"], "kv_cache_space must be above 0 GiB, got inf"),
    (["--max-tokens", "2", "--trace", os.devnull + "/t.json"], "t.json"),
])
def test_bad_input_is_one_line(capsys, arguments, says):
    assert main(["generate", "Hello", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("minivllm generate: error: ") and says in err and err.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell closes the streams")
@pytest.mark.parametrize("redirection, code, says", [
    (">&-", 0, ""),
    ("2>&-", 0, ""),
    (">/dev/full", 2, "minivllm generate: error: [Errno 28] No space left on device\n"),
])
def test_streams_that_cannot_be_written_to(redirection, code, says):
    if "full" in redirection and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    result = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m minivllm generate Hello --max-tokens 2 {redirection}"],
        capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (code, says)
