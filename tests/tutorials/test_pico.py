"""`tutorials/pico.py`: one small file with NumPy alone, and the same tokens as the engine."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

from minivllm import LLM, SamplingParams
from minivllm.exercises.runner import load_module

PICO = Path(__file__).parents[2] / "tutorials" / "pico.py"
QUICK_START = ["Hello, my name is", "The president of the United States is",
               "The capital of France is", "The future of AI is"]


@pytest.fixture(scope="module")
def pico():
    return load_module(PICO)


@pytest.fixture(scope="module")
def llm():
    return LLM()


@pytest.fixture(scope="module")
def model(pico):
    return pico.Model(pico.MODEL)


def test_it_is_small_and_needs_numpy_alone():
    source = PICO.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 200
    imported = {alias.name.split(".")[0] for node in ast.walk(ast.parse(source))
                if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module.split(".")[0] for node in ast.walk(ast.parse(source))
                 if isinstance(node, ast.ImportFrom)}
    assert imported - sys.stdlib_module_names == {"numpy"}


@pytest.mark.parametrize("num_blocks", [64, 16, 12])
def test_its_tokens_are_those_of_the_engine(pico, model, llm, num_blocks):
    engine = pico.Engine(model, num_blocks)
    tokenizer = pico.Tokenizer(pico.MODEL)
    ours = engine.generate([tokenizer.encode(prompt) for prompt in QUICK_START], max_tokens=24)
    outputs = llm.generate(QUICK_START, SamplingParams(temperature=0.0, max_tokens=24),
                           use_tqdm=False)
    assert ours == [output.outputs[0].token_ids for output in outputs]
    assert len(engine.free) == num_blocks
    assert engine.num_preemptions > 0 or num_blocks == 64


def test_its_tokenizer_is_that_of_the_model(pico, llm):
    tokenizer = pico.Tokenizer(pico.MODEL)
    for text in [*QUICK_START, "Tom's red ball, isn't it?", "1 + 12 = 13.", "a  b\n\n c ",
                 "Größe, déjà vu, 你好!", "It's   \tfine...\n"]:
        ids = tokenizer.encode(text)
        assert ids == llm.get_tokenizer().encode(text)
        assert tokenizer.decode(ids) == text


def test_its_command_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pico.py", "The capital of France is"])
    runpy.run_path(str(PICO), run_name="__main__")
    assert capsys.readouterr().out.startswith("The capital of France is Paris")
