"""Continuous integration runs the README's full test command, and nothing else is hidden in it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_ci_runs_the_full_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^pip install '\.\[models,test,dev,docs\]'.*$", readme, re.MULTILINE)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert command.replace("pip install", "pip install --quiet") in script
    assert not re.search(r"MINIVLLM_|pytest .*(-k|-m|--deselect|--ignore)", script)
