"""Finding exercises, starting them, checking answers, giving hints."""

import importlib.util
import shutil
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console, RenderableType

from minivllm.exercises.grading import Wrong

_HERE = Path(__file__).parent
STUB, SOLUTION, TEXT = "exercise.py", "solution.py", "README.md"


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes
    ----------
    number : str
        Two digits.
    folder : Path
        Where its text, stub, solution and check are.
    title : str
        What is to be built, in a few words.
    class_name : str
        The class that the learner completes.
    chapter : str
        What to read before.
    hints : tuple of str
        From a nudge to almost the answer.
    """

    number: str
    folder: Path
    title: str
    class_name: str
    chapter: str
    hints: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    """What a check says: passed or not, a message, and perhaps a picture."""

    passed: bool
    message: str
    picture: RenderableType | None = None


def exercises() -> list[Exercise]:
    """Return all exercises in order."""
    return [_read(folder) for folder in sorted(_HERE.glob("[0-9][0-9]_*"))]


def find(number: str) -> Exercise:
    """Return the exercise with a number, "3" or "03"."""
    known = exercises()
    for exercise in known:
        if exercise.number == number.zfill(2):
            return exercise
    raise ValueError(f"there is no exercise {number}; there are: "
                     f"{', '.join(exercise.number for exercise in known)}.")


def _read(folder: Path) -> Exercise:
    about = load_module(folder / "check.py")
    return Exercise(folder.name[:2], folder, about.TITLE, about.CLASS_NAME, about.CHAPTER,
                    tuple(about.HINTS))


def load_module(path: Path) -> ModuleType:
    """Run a Python file and return its module; a learner's file need not be importable."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file.")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look a class's module up by name.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} of {path}: {error.msg}.") from error
    return module


def start(exercise: Exercise, directory: Path) -> None:
    """Copy text and stub to `directory`; a file that is there already is never overwritten."""
    target = directory / STUB
    if target.exists():
        raise ValueError(f"{target} exists already; move it away to start again.")
    directory.mkdir(parents=True, exist_ok=True)
    for name in (TEXT, STUB):
        shutil.copyfile(exercise.folder / name, directory / name)


def load_class(exercise: Exercise, path: Path) -> type[Any]:
    """Return the learner's class from their file."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist; minivllm exercises start {exercise.number} makes it. If "
            f"yours is elsewhere, name its folder: minivllm exercises check {exercise.number} DIR")
    module = load_module(path)
    found = getattr(module, exercise.class_name, None)
    if not isinstance(found, type):
        raise ValueError(f"{path} has no class {exercise.class_name}.")
    return found


def grade(exercise: Exercise, learners_class: type[Any]) -> Verdict:
    """Check a class."""
    try:
        message = load_module(exercise.folder / "check.py").check(learners_class)
    except NotImplementedError as error:
        return Verdict(False, f"{error}: this is what you are to write.")
    except Wrong as wrong:
        return Verdict(False, str(wrong), wrong.picture)
    return Verdict(True, message)


def check(number: str, learners_class: type[Any]) -> None:
    """Check a class and print what comes of it, for notebooks and the REPL.

    Parameters
    ----------
    number : str
        Of the exercise, for example ``"03"``.
    learners_class : type
        The completed class.
    """
    exercise = find(number)
    show(exercise, grade(exercise, learners_class), Console())


def show(exercise: Exercise, verdict: Verdict, console: Console) -> None:
    """Print a verdict."""
    head = f"exercise {exercise.number}: {'passed' if verdict.passed else 'not yet'}"
    console.print(head, markup=False, style="bold green" if verdict.passed else "bold",
                  highlight=False)
    for paragraph in verdict.message.split("\n"):
        # Rich would leave the spaces at which it folds.
        console.print(textwrap.fill(paragraph, console.width), markup=False, highlight=False)
    if verdict.picture is not None:
        console.print(verdict.picture)
    if not verdict.passed:
        console.print(f"A hint: minivllm exercises hint {exercise.number}", style="dim",
                      highlight=False)
