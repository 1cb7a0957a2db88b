"""The exercises are part of what is installed, not only of the repository."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_an_installed_wheel_runs_the_exercises_in_an_empty_folder(tmp_path):
    wheels, site, empty = tmp_path / "wheels", tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    # A copy: building leaves a folder behind.
    source = tmp_path / "source"
    shutil.copytree(ROOT / "minivllm", source / "minivllm",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
                    "--wheel-dir", str(wheels), str(source)], check=True, cwd=empty)
    [wheel] = wheels.glob("minivllm-*.whl")
    zipfile.ZipFile(wheel).extractall(site)

    def minivllm(*arguments):
        return subprocess.run([sys.executable, "-m", "minivllm", *arguments], cwd=empty,
                              env={"PYTHONPATH": str(site), "COLUMNS": "80"},
                              capture_output=True, text=True)

    assert minivllm("exercises", "list").stdout.count("\n") >= 3
    for number in ("01", "02", "03"):
        assert minivllm("exercises", "start", number).returncode == 0
        answer = minivllm("exercises", "solution", number, "--force").stdout
        [folder] = empty.glob(f"{number}_*")
        assert "not yet" in minivllm("exercises", "check", number).stdout
        (folder / "exercise.py").write_text(answer, encoding="utf-8")
        assert "passed" in minivllm("exercises", "check", number).stdout
