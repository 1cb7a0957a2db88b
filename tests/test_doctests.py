"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import minivllm

MODULES = [module.name for module in pkgutil.walk_packages(minivllm.__path__, "minivllm.")
           if not module.name.endswith("__main__") and ".exercises." not in module.name]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


def test_there_are_examples() -> None:
    found = doctest.DocTestFinder().find(importlib.import_module("minivllm.utils"))
    assert any(test.examples for test in found)
