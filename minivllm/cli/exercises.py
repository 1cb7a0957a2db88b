"""``minivllm exercises``: holes in the real engine, and checks that say what is wrong."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from minivllm.exercises import runner
from minivllm.exercises.runner import SOLUTION, STUB, Exercise


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm exercises",
        description="Complete a class of the engine; the check runs the engine with it.")
    commands = result.add_subparsers(metavar="WHAT", required=True)
    _add(commands, "list", list_all, "list the exercises")
    for name, run, text in (
            ("start", start, "copy the text and the class to complete to a folder"),
            ("check", check, "check the class; exit code 1: not yet"),
            ("hint", hint, "give a hint; they go from a nudge to almost the answer"),
            ("solution", solution, "show an answer, once yours passes")):
        command = _add(commands, name, run, text)
        command.add_argument("number", metavar="NN", help="the number of the exercise")
        if name == "hint":
            command.add_argument("level", nargs="?", type=int, default=1, metavar="LEVEL",
                                 help="which hint (default: 1)")
        else:
            command.add_argument("directory", nargs="?", type=Path, metavar="DIR",
                                 help="your folder (default: NN_name)")
        if name == "solution":
            command.add_argument("--force", action="store_true", help="show it all the same")
    return result


def _add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, run: object,
         text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    command.set_defaults(run=run)
    return command


def main(argv: Sequence[str]) -> int:
    """Run the sub-command."""
    args = parser().parse_args(argv)
    exit_code: int = args.run(args)
    return exit_code


def list_all(args: argparse.Namespace) -> int:
    """Print a line for each exercise."""
    for exercise in runner.exercises():
        print(f"{exercise.number}  {exercise.title}  ({exercise.chapter})")
    return 0


def start(args: argparse.Namespace) -> int:
    """Copy an exercise to the learner's folder."""
    exercise = runner.find(args.number)
    directory = _directory(args, exercise)
    runner.start(exercise, directory)
    where = f" {args.directory}" if args.directory else ""
    print(f"Read {directory / 'README.md'}, complete {directory / STUB}, then: "
          f"minivllm exercises check {exercise.number}{where}")
    return 0


def check(args: argparse.Namespace) -> int:
    """Check the learner's file."""
    exercise = runner.find(args.number)
    verdict = _grade(args, exercise)
    runner.show(exercise, verdict, Console())
    return 0 if verdict.passed else 1


def hint(args: argparse.Namespace) -> int:
    """Print one hint."""
    exercise = runner.find(args.number)
    if not 1 <= args.level <= len(exercise.hints):
        raise ValueError(f"exercise {exercise.number} has hints 1 to {len(exercise.hints)}, "
                         f"not {args.level}.")
    print(exercise.hints[args.level - 1])
    if args.level < len(exercise.hints):
        print(f"(More: minivllm exercises hint {exercise.number} {args.level + 1})")
    return 0


def solution(args: argparse.Namespace) -> int:
    """Print an answer if the learner's passes."""
    exercise = runner.find(args.number)
    if not args.force and not _grade(args, exercise).passed:
        print("Yours does not pass yet. --force shows an answer all the same; minivllm exercises "
              f"hint {exercise.number} helps without.")
        return 1
    print((exercise.folder / SOLUTION).read_text(encoding="utf-8"), end="")
    return 0


def _grade(args: argparse.Namespace, exercise: Exercise) -> runner.Verdict:
    path = _directory(args, exercise) / STUB
    return runner.grade(exercise, runner.load_class(exercise, path))


def _directory(args: argparse.Namespace, exercise: Exercise) -> Path:
    return args.directory or Path(exercise.folder.name)
