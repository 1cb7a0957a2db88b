"""The ``minivllm`` command: finds the sub-command and hands it the rest of the line.

A sub-command is a module with ``main(argv) -> exit code``, imported only when it is asked for,
so that ``minivllm --help`` is quick.  Errors of the user's making (`ValueError`, `OSError`) are
raised where they are found and become one line on stderr here.

Exit codes: 0 all well, 1 the answer is "no" (traces differ, a prompt was refused), 2 bad input,
130 interrupted.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from minivllm.utils import MissingExtraError
from minivllm.version import __version__


class Command(NamedTuple):
    """Where a sub-command lives, and what ``minivllm --help`` says of it."""

    module: str
    help: str


COMMANDS = {
    "generate": Command("minivllm.cli.generate", "continue prompts, as they are given"),
    "chat": Command("minivllm.cli.chat", "ask a model that has a chat template"),
    "simulate": Command("minivllm.cli.simulate",
                        "schedule a workload with a stand-in model, like vLLM, block for block"),
    "step": Command("minivllm.cli.step", "walk through scheduling, step by step, in the terminal"),
    "show": Command("minivllm.cli.show", "draw a recorded trace"),
    "download": Command("minivllm.cli.download", "fetch a model: smollm2, or a hub id"),
    "models": Command("minivllm.cli.models", "list the models that have a name"),
    "exercises": Command("minivllm.cli.exercises",
                         "complete a class of the engine; the check says what is wrong"),
    "bench": Command("minivllm.cli.bench", "measure: speeds, the sampler, the scheduler"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``minivllm`` with the arguments `argv` (default: the process's own)."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] not in COMMANDS:
        _parser().parse_args(argv or ["--help"])
        return 2
    _open_missing_streams()
    try:
        exit_code: int = importlib.import_module(COMMANDS[argv[0]].module).main(argv[1:])
        sys.stdout.flush()
        return exit_code
    except BrokenPipeError:
        # The reader (`head`, a pager) has gone.
        _drop_output()
        return 1
    except (ValueError, OSError, MemoryError, MissingExtraError) as error:
        print(f"minivllm {argv[0]}: error: {error or 'out of memory'}", file=sys.stderr)
        _drop_output()
        return 2
    except KeyboardInterrupt:
        return 130


def _open_missing_streams() -> None:
    """Let standard streams that the caller has closed be empty."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


def _drop_output() -> None:
    """Show what can still be shown, so that Python's own flush at exit does not fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    """Return the parser of what stands before a sub-command; it knows them by name only."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {command.help}" for name, command in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="minivllm", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A NumPy reference of vLLM's V0 engine.",
        epilog="\n".join(["commands:", *lines, "", "minivllm COMMAND --help says more."]))
    parser.add_argument("--version", action="version", version=f"minivllm {__version__}")
    parser.add_argument("command", metavar="COMMAND", choices=COMMANDS, help="one of those below")
    return parser
