"""From ``architectures`` to a class."""

import ast
from pathlib import Path

import pytest

from minivllm.model_executor import models
from minivllm.model_executor.models.registry import MODELS, get_model_class
from minivllm.transformers_utils.config import FAMILIES, PretrainedConfig, normalize_config


def test_every_architecture_has_a_class_and_a_row_for_its_config():
    assert sorted(MODELS) == sorted(FAMILIES)
    assert all(name == cls.__name__ for name, cls in MODELS.items())


def test_the_first_supported_architecture_is_taken():
    config = PretrainedConfig(architectures=["SomethingNew", "OPTForCausalLM"])
    assert get_model_class(config).__name__ == "OPTForCausalLM"


@pytest.mark.parametrize("check", [
    lambda names: get_model_class(PretrainedConfig(architectures=names)),
    lambda names: normalize_config({"architectures": names})])
def test_an_unsupported_one_gets_the_list_and_the_nearest_name(check):
    with pytest.raises(ValueError) as error:
        check(["Qwen2MoeForCausalLM"])
    assert "Qwen2MoeForCausalLM is not supported" in str(error.value)
    assert "nearest name is Qwen2ForCausalLM" in str(error.value)
    assert all(name in str(error.value) for name in MODELS)


@pytest.mark.parametrize("architectures", [None, [], ["T5"]])
def test_nothing_near_is_no_nearest_name(architectures):
    with pytest.raises(ValueError) as error:
        get_model_class(PretrainedConfig(architectures=architectures))
    assert "nearest" not in str(error.value)
    assert "LlamaForCausalLM" in str(error.value)


@pytest.mark.parametrize("path", sorted(Path(models.__path__[0]).glob("*.py")),
                         ids=lambda path: path.name)
def test_a_model_file_is_short_and_knows_no_batches_blocks_ranks_or_backends(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 200
    names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    forbidden = {"block_tables", "slot_mapping", "seq_lens", "context_lens", "query_start_loc",
                 "num_prefills", "num_decode_tokens", "block_size", "backend", "rank"}
    assert not names & forbidden
