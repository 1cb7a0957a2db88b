"""From a directory or a GGUF file to a model; every way in which the files can be wrong."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from minivllm import LLM, SamplingParams
from minivllm.config import ModelConfig
from minivllm.model_executor.model_loader import get_model
from minivllm.transformers_utils.config import get_config
from minivllm.transformers_utils.download import resolve_model
from minivllm.transformers_utils.wheel import SMOLLM2, fetch_gguf
from tests.transformers_utils.tiny_gguf import TINY, write_gguf

LLAMAS = ["llama-mha", "llama-gqa-linear-bf16", "llama-rope3-sharded"]
Q_PROJ = "model.layers.0.self_attn.q_proj.weight"


def load(name_or_path):
    """Load a model as the engine does."""
    path = resolve_model(name_or_path)
    return get_model(ModelConfig(model=str(path), hf_config=get_config(path), path=path))


def weights_of(model):
    return {f"{name}.{kind}": array for name, module in model.named_modules()
            for kind, array in module.parameters()}


def assert_equal_weights(model, other):
    ours, theirs = weights_of(model), weights_of(other)
    assert ours.keys() == theirs.keys()
    assert len(ours) > 0
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def change_config(directory, **changes):
    """Change config.json; a value of None takes the key out."""
    values = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    values = {key: value for key, value in {**values, **changes}.items() if value is not None}
    (directory / "config.json").write_text(json.dumps(values), encoding="utf-8")


def change_weights(directory, **changes):
    """Change tensors of model.safetensors; None takes one out."""
    path = directory / "model.safetensors"
    tensors = {**load_file(path), **changes}
    save_file({name: values for name, values in tensors.items() if values is not None}, path)


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """A copy of the golden checkpoint llama-mha, to be damaged."""
    return Path(shutil.copytree(TINY / "llama-mha", tmp_path / "checkpoint"))


# What loads.


@pytest.mark.parametrize("name", LLAMAS)
def test_a_gguf_file_gives_the_same_model_as_safetensors(name, tmp_path):
    assert_equal_weights(load(write_gguf(tmp_path / "tiny.gguf", name)), load(TINY / name))


def test_weights_that_are_not_numbers_load(checkpoint):
    """It is sampling from their logits that reports them."""
    values = np.full((64, 64), np.nan, np.float32)
    change_weights(checkpoint, **{Q_PROJ: values})
    assert np.isnan(weights_of(load(checkpoint))["model.layers.0.self_attn.qkv_proj.weight"]).any()


def test_a_tied_head_in_the_file_is_ignored(checkpoint):
    change_config(checkpoint, tie_word_embeddings=True)
    model = load(checkpoint)
    assert model.lm_head is model.model.embed_tokens
    embedding = load_file(checkpoint / "model.safetensors")["model.embed_tokens.weight"]
    np.testing.assert_array_equal(model.lm_head.weight, embedding)


def test_a_tied_head_may_be_left_out(checkpoint):
    change_config(checkpoint, tie_word_embeddings=True)
    change_weights(checkpoint, **{"lm_head.weight": None})
    model = load(checkpoint)
    assert model.lm_head is model.model.embed_tokens


# What does not.


def test_an_untied_head_may_not_be_left_out(checkpoint):
    change_weights(checkpoint, **{"lm_head.weight": None})
    with pytest.raises(ValueError, match="checkpoint cannot be loaded.*lacks.*lm_head.weight"):
        load(checkpoint)


def test_an_unknown_model():
    with pytest.raises(FileNotFoundError, match="there is no model 'no-such-model'"):
        load("no-such-model")


def test_a_directory_without_config(checkpoint):
    (checkpoint / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="checkpoint has no config.json"):
        load(checkpoint)


def test_an_unsupported_architecture(checkpoint):
    change_config(checkpoint, architectures=["LlamaForCausalLn"])
    with pytest.raises(ValueError, match="LlamaForCausalLn is not supported.*nearest.*"
                                         "LlamaForCausalLM"):
        load(checkpoint)


def test_a_config_with_a_missing_key(checkpoint):
    change_config(checkpoint, num_hidden_layers=None)
    with pytest.raises(ValueError, match="config.json: key 'num_hidden_layers'.*missing"):
        load(checkpoint)


def test_no_weights(checkpoint):
    (checkpoint / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="checkpoint has no weights"):
        load(checkpoint)


def test_a_truncated_file(checkpoint):
    path = checkpoint / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="model.safetensors is truncated.*Download it again"):
        load(checkpoint)


def test_a_missing_tensor(checkpoint):
    change_weights(checkpoint, **{Q_PROJ: None})
    with pytest.raises(ValueError, match=f"checkpoint cannot be loaded.*lacks.*{Q_PROJ}"):
        load(checkpoint)


def test_an_unknown_tensor(checkpoint):
    change_weights(checkpoint, extra=np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="checkpoint cannot be loaded.*tensor 'extra'"):
        load(checkpoint)


def test_a_wrong_shape(checkpoint):
    change_weights(checkpoint, **{Q_PROJ: np.zeros((64, 63), np.float32)})
    with pytest.raises(ValueError, match=rf"{Q_PROJ}.*\(64, 63\).*\(64, 64\)"):
        load(checkpoint)


def test_an_unsupported_type(checkpoint):
    change_weights(checkpoint, **{Q_PROJ: np.zeros((64, 64), np.int8)})
    with pytest.raises(ValueError, match=f"tensor '{Q_PROJ}' is stored as I8"):
        load(checkpoint)


def test_a_missing_shard(tmp_path):
    directory = Path(shutil.copytree(TINY / "llama-rope3-sharded", tmp_path / "sharded"))
    (directory / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="no such file. Download the missing shard"):
        load(directory)


# The real model.


@pytest.mark.slow
def test_smollm2_generates_the_same_from_safetensors_and_from_gguf(smollm2_dir, tmp_path):
    """The GGUF file is fetched once more: what is kept is the converted directory only."""
    gguf_path = fetch_gguf(SMOLLM2, None, tmp_path)
    from_gguf = LLM(str(gguf_path), kv_cache_space=0.1, swap_space=0)
    from_safetensors = LLM(str(smollm2_dir), kv_cache_space=0.1, swap_space=0)
    models = [llm.llm_engine.model_executor.driver_worker.model_runner.model
              for llm in (from_gguf, from_safetensors)]
    assert_equal_weights(*models)
    prompts = ["The capital of France is", "def fibonacci(n):", "你好"]
    params = SamplingParams(temperature=0, max_tokens=16)
    outputs = [[output.outputs[0].token_ids for output in llm.generate(prompts, params)]
               for llm in (from_gguf, from_safetensors)]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 3


MEASURE = """
import sys
from pathlib import Path
from minivllm.config import ModelConfig
from minivllm.model_executor.model_loader import get_model
from minivllm.transformers_utils.config import get_config

def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key))

path = Path(sys.argv[1])
config = ModelConfig(model="smollm2", hf_config=get_config(path), path=path)
before = status("VmRSS:")
model = get_model(config)
print(status("VmHWM:") - before,
      sum(array.nbytes for _, module in model.named_modules() for _, array in module.parameters()))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measured through /proc")
def test_loading_takes_little_more_memory_than_the_weights(smollm2_dir):
    """Peak memory, mapped pages included, grows by 1.02 times the weights; more would be a copy."""
    done = subprocess.run([sys.executable, "-c", MEASURE, str(smollm2_dir)], check=True,
                          capture_output=True, text=True)
    growth, weights = map(int, done.stdout.split())
    assert weights == 538_060_032
    assert weights <= growth <= 1.1 * weights
