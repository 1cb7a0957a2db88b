"""``minivllm generate`` and the options that are made from docstrings."""

import inspect

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
