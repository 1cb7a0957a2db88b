"""Each chapter's experiment really breaks what it says: the change is made, the test fails."""

import shutil
import subprocess
import sys

import pytest

from tests.docs.experiments import Change, check_change, find_experiments, read_change
from tests.docs.quoting import ROOT

CHAPTERS = sorted((ROOT / "tutorials").glob("[0-9]*.md"))
EXPERIMENTS = [pytest.param(experiment, id=f"{chapter.stem}-{i}") for chapter in CHAPTERS
               for i, experiment in enumerate(find_experiments(chapter.read_text("utf-8")))]


def test_every_chapter_has_an_experiment():
    assert len(CHAPTERS) >= 4
    assert [chapter.stem for chapter in CHAPTERS
            if not find_experiments(chapter.read_text("utf-8"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_experiment_breaks_its_test(experiment, tmp_path):
    for name in ("minivllm", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name,
                        ignore=shutil.ignore_patterns("__pycache__", "golden"))
    (tmp_path / "tests" / "golden").symlink_to(ROOT / "tests" / "golden")
    shutil.copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")

    # That the test passes without the change is what the rest of the suite shows.
    experiment.change.apply(tmp_path)
    assert run(experiment.pytest_arguments, tmp_path) == 1, "the test passes in spite of it"


def run(arguments, folder):
    """Return pytest's exit code: 0 all passed, 1 some failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=300).returncode


def test_a_change_names_its_file_and_its_lines():
    change = read_change("# minivllm/core/policy.py\n def f():\n-    return 1\n+    return 2\n")
    assert change == Change("minivllm/core/policy.py", "def f():\n    return 1\n",
                            "def f():\n    return 2\n")
    assert "0 times" in check_change(change)
    with pytest.raises(ValueError, match="must name the file"):
        read_change("-x\n+y\n")


def test_a_change_that_fits_is_made(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n", encoding="utf-8")
    Change("a.py", "x = 1\n", "x = 3\n").apply(tmp_path)
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 3\ny = 2\n"
    with pytest.raises(ValueError, match="0 times"):
        Change("a.py", "x = 1\n", "x = 3\n").apply(tmp_path)
