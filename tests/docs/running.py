"""Running what a page shows as a reader would: Python blocks, REPL sessions, command lines."""

import ast
import contextlib
import io
import os
import re
import runpy
import shlex
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from minivllm.cli import main as minivllm_main
from tests.docs.quoting import ROOT

# What a page may show beside `minivllm`, and nobody runs here.
INSTALLING = ("pip", "git", "python3", "source", "sphinx-build", "ruff", "mypy")


@contextlib.contextmanager
def terminal(folder: Path) -> Iterator[io.TextIOWrapper]:
    """Catch what is printed, in `folder`, as if into an 80 column terminal without colours."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        with mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}), \
                contextlib.redirect_stdout(out):
            yield out
    finally:
        os.chdir(here)


def printed(out: io.TextIOWrapper) -> str:
    """Return what was printed so far, without the spaces at line ends."""
    out.flush()
    buffer: Any = out.buffer
    lines = buffer.getvalue().decode("utf-8").splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


def run_python(source: str, page: str, line: int, namespace: dict[str, Any],
               folder: Path) -> str:
    """Run a block as a notebook cell: the value of a last bare expression is shown.

    Parameters
    ----------
    source : str
        The block.
    page : str
        The page's path and, `line`, where the block begins there: for tracebacks.
    namespace : dict
        The page's variables.
    folder : Path
        Where files are read and written.
    """
    tree = ast.parse("\n" * line + source, page)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with terminal(folder) as out:
        exec(compile(tree, page, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), page, "eval"), namespace)
            if value is not None:
                print(repr(value))
        return printed(out)


def run_session(session: str, namespace: dict[str, Any], folder: Path) -> str:
    """Run a REPL session; return it with the answers as they come."""
    shown = ""
    for source in _inputs(session):
        with terminal(folder) as out:
            try:
                exec(compile(source, "<session>", "single"), namespace)
            except Exception as error:
                print("Traceback (most recent call last):\n  ...")
                print("".join(traceback.format_exception_only(error)), end="")
            shown += _with_prompts(source) + printed(out)
    return shown


def _inputs(session: str) -> list[str]:
    """Return the statements of a session, without prompts and answers."""
    inputs: list[str] = []
    for line in session.splitlines():
        if line.startswith(">>> "):
            inputs.append(line[4:] + "\n")
        elif line.startswith("... ") and inputs:
            inputs[-1] += line[4:] + "\n"
    return inputs


def _with_prompts(source: str) -> str:
    first, *rest = source.splitlines()
    return "".join([f">>> {first}\n", *(f"... {line}\n" for line in rest)])


def run_commands(commands: list[str], folder: Path) -> list[str]:
    """Run command lines; return what each prints.

    Only ``minivllm``, ``python -m minivllm`` and the scripts of this repository are run.  Of what
    installs or tests, the paths are checked.
    """
    return ["".join(run_words(part, folder)
                    for part in _split_at_and(shlex.split(command, comments=True)))
            for command in commands]


def _split_at_and(words: list[str]) -> list[list[str]]:
    """Cut a command line at each ``&&``."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == "&&":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def run_words(words: list[str], folder: Path) -> str:
    """Run one command; a failing one shows its error as well.

    The reader stands in the repository, the command runs in `folder`: files of the repository are
    found all the same.
    """
    if words[:3] == ["python", "-m", "minivllm"]:
        words = ["minivllm", *words[3:]]
    if not words or words[0] in INSTALLING:
        return ""
    if words[0] == "pytest":
        check_test_paths(words[1:])
        return ""
    words = [str(ROOT / word) if "/" in word and (ROOT / word).is_file() else word
             for word in words]
    error = io.StringIO()
    with terminal(folder) as out, contextlib.redirect_stderr(error):
        exit_code = _run(words)
        if exit_code:
            print(error.getvalue(), end="")
        return printed(out)


def _run(words: list[str]) -> int:
    try:
        if words[0] == "minivllm":
            return minivllm_main(words[1:])
        if words[0] == "python" and (ROOT / words[1]).is_file():
            with mock.patch.object(sys, "argv", words[1:]):
                runpy.run_path(str(ROOT / words[1]), run_name="__main__")
            return 0
    except SystemExit as error:
        return int(error.code or 0)
    raise ValueError(f"a page shows a command that nobody runs: {shlex.join(words)}")


def check_test_paths(words: list[str]) -> None:
    """Raise if a pytest command names a file or a test that does not exist."""
    for word in words:
        path, *names = word.split("::")
        if ".py" not in path and not path.endswith("/"):
            continue
        if not (ROOT / path).exists():
            raise ValueError(f"{word}: there is no {path}")
        for name in names:
            if not re.search(rf"(def|class) {re.escape(name.split('[')[0])}\b",
                             (ROOT / path).read_text(encoding="utf-8")):
                raise ValueError(f"{word}: there is no {name} in {path}")


def commands_of_session(session: str) -> list[str]:
    r"""Return the commands of a ``console`` block; one may go on after a backslash.

    >>> commands_of_session("$ minivllm --version\nminivllm 0.1\n$ pip list\n")
    ['minivllm --version', 'pip list']
    """
    joined = session.replace("\\\n", "\\\0")
    return [line[2:].replace("\\\0", "\\\n") for line in joined.splitlines()
            if line.startswith("$ ")]
