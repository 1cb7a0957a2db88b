"""The chapters' "break it" experiments: change a line, and a test fails.

An experiment is a ``diff`` block, whose first line names a file, and the next ``bash`` block, whose
command runs the test::

    # minivllm/core/policy.py
    -        return now - seq_group.metrics.arrival_time
    +        return 0.0
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.docs.fences import find_fences
from tests.docs.quoting import ROOT

_HEADER = re.compile(r"# (?P<path>[\w/]+\.py)\n")


@dataclass(frozen=True)
class Change:
    """Lines of a file, and what they are replaced with."""

    path: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Make the change in the repository at `root`.

        Raises
        ------
        ValueError
            If the old lines do not stand there exactly once.
        """
        file = root / self.path
        source = file.read_text(encoding="utf-8")
        if source.count(self.old) != 1:
            raise ValueError(f"{self.path} has these lines {source.count(self.old)} times:\n"
                             f"{self.old}")
        file.write_text(source.replace(self.old, self.new), encoding="utf-8")


@dataclass(frozen=True)
class Experiment:
    """A change, and the pytest arguments of the test that must fail with it."""

    change: Change
    pytest_arguments: list[str]


def read_change(body: str) -> Change:
    """Read a ``diff`` block; lines that begin with a space stand in both."""
    match = _HEADER.match(body)
    if match is None:
        raise ValueError("the first line of a diff must name the file: # minivllm/....py")
    lines = body[match.end():].splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if line[0] in "- ")
    new = "".join(f"{line[1:]}\n" for line in lines if line[0] in "+ ")
    return Change(match["path"], old, new)


def check_change(change: Change) -> str | None:
    """Return what is wrong with a change, without making it."""
    source = (ROOT / change.path).read_text(encoding="utf-8")
    if source.count(change.old) == 1:
        return None
    return f"{change.path} has these lines {source.count(change.old)} times:\n{change.old}"


def find_experiments(text: str) -> list[Experiment]:
    """Return the experiments of a page."""
    fences = find_fences(text)
    experiments = []
    for i, fence in enumerate(fences):
        if fence.language == "diff":
            command = next(f.body for f in fences[i:] if f.language == "bash")
            words = shlex.split(command.splitlines()[0])
            if words[0] != "pytest":
                raise ValueError(f"an experiment ends with pytest, not with {command!r}.")
            experiments.append(Experiment(read_change(fence.body), words[1:]))
    return experiments
