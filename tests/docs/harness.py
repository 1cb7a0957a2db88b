"""Executes the pages: every block of code, every output, every quotation, every picture.

===============  ==================================================================================
block            what is done with it
===============  ==================================================================================
``python``       run; the blocks of a page share their variables.  A last bare expression is shown.
                 Pictures that it writes are compared with the committed ones.
``python`` whose first line is ``# path.py: Name``
                 compared with the source of ``Name``
``pycon``        a REPL session, answers compared
``console``      ``$ minivllm ...`` commands and their output
``bash``         commands without prompt
``text``         what the ``python`` or ``bash`` block right above prints
``diff``         an experiment: the old lines must be in the file that the first line names
``markdown``     shows how a page is written; not executed
``{directive}``  Sphinx's; not executed
===============  ==================================================================================

A comment ``<!-- not run: reason -->`` on the line above leaves a block alone.  With
``--update-docs`` whatever differs is rewritten in the page instead of failing.
"""

import difflib
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sybil import Document, Example, Region, Sybil

from tests.docs.experiments import check_change, read_change
from tests.docs.fences import Fence, Section, find_fences, find_sections, output_of
from tests.docs.pictures import check_picture
from tests.docs.quoting import ROOT, quotation, quoted_name
from tests.docs.running import (
    commands_of_session,
    run_commands,
    run_python,
    run_session,
)
from tests.docs.sections import make_section

NOT_EXECUTED = ("markdown",)


class Page(Document):
    """A Markdown page, the folder in which its code runs, and what is to be rewritten in it."""

    update_docs = False  # set by pytest's option

    def __init__(self, text: str, path: str) -> None:
        super().__init__(text, path)
        self.namespace["__name__"] = Path(path).stem
        self.updates: list[tuple[int, int, str]] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """Where the page's code runs; files that one block writes the next can read."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="page-")
            for pictures in ("img", "docs/img"):
                (Path(self._folder.name) / pictures).mkdir(parents=True)
        return Path(self._folder.name)

    def committed(self, made: Path) -> Path:
        """Return where a picture made in `folder` is kept; ``docs/...`` is the repository's."""
        name = made.relative_to(self.folder)
        return (ROOT if name.parts[0] == "docs" else Path(self.path).parent) / name

    def check(self, expected: str, made: str, start: int, end: int) -> str | None:
        """Compare a part of the page with what it should be, or rewrite it."""
        if made == expected:
            return None
        if self.update_docs:
            self.updates.append((start, end, made))
            self._rewrite()
            return None
        return "".join(difflib.unified_diff(
            expected.splitlines(keepends=True), made.splitlines(keepends=True),
            "in the page", "in truth", n=3)) or "the page differs in its line ends"

    def _rewrite(self) -> None:
        text = self.text
        for start, end, made in sorted(self.updates, reverse=True):
            text = text[:start] + made + text[end:]
        Path(self.path).write_text(text, encoding="utf-8", newline="\n")


def parse_page(page: Document) -> Iterator[Region]:
    """Yield a region for each block that is executed and each section that is made."""
    fences = find_fences(page.text)
    outputs = {output.start for fence in fences
               if (output := output_of(fence, fences, page.text)) and prints(fence)}
    for fence in fences:
        if fence.start in outputs or is_left_alone(fence):
            continue
        output = output_of(fence, fences, page.text) if prints(fence) else None
        end = output.end if output else fence.end
        yield Region(fence.start, end, (fence, output), partial(evaluate, evaluator_of(fence)))
    for section in find_sections(page.text):
        yield Region(section.start, section.end, section, evaluate_section)


def is_left_alone(fence: Fence) -> bool:
    """Return True for a block that nobody executes."""
    return bool(fence.not_run or fence.language in NOT_EXECUTED or fence.language.startswith("{"))


def prints(fence: Fence) -> bool:
    """Return True if a ``text`` block after `fence` is its output."""
    return fence.language in ("python", "bash")


Evaluator = Callable[[Page, Fence, Fence | None], str | None]


def evaluate(evaluator: Evaluator, example: Example) -> str | None:
    """Evaluate one block of a page, then compare the pictures that it has left."""
    page = example.document
    assert isinstance(page, Page)
    fence, output = example.parsed
    wrong = evaluator(page, fence, output)
    pictures = [check_picture(made, page.committed(made), page.update_docs)
                for made in sorted(page.folder.rglob("*.svg"))]
    for made in page.folder.rglob("*.svg"):
        made.unlink()
    return wrong or next((picture for picture in pictures if picture), None)


def evaluator_of(fence: Fence) -> Evaluator:
    """Return the function that checks a block."""
    if fence.language == "python" and quoted_name(fence.body):
        return evaluate_quotation
    evaluators: dict[str, Evaluator] = {
        "python": evaluate_python, "pycon": evaluate_session, "console": evaluate_console,
        "bash": evaluate_bash, "text": evaluate_text, "diff": evaluate_diff}
    return evaluators.get(fence.language, evaluate_unknown)


def evaluate_quotation(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Compare a quotation with the source."""
    name = quoted_name(fence.body)
    assert name is not None
    return page.check(fence.body, quotation(*name), fence.body_start, fence.body_end)


def evaluate_python(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Run a block and compare what it prints."""
    line = page.text.count("\n", 0, fence.body_start)
    made = run_python(fence.body, page.path, line, page.namespace, page.folder)
    return check_output(page, fence, output, made)


def evaluate_session(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Run a REPL session and compare its answers."""
    made = run_session(fence.body, page.namespace, page.folder)
    return page.check(fence.body, made, fence.body_start, fence.body_end)


def evaluate_console(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Run the commands of a block and compare what each prints."""
    commands = commands_of_session(fence.body)
    made = "".join(f"$ {command}\n{shown}" for command, shown
                   in zip(commands, run_commands(commands, page.folder), strict=True))
    return page.check(fence.body, made, fence.body_start, fence.body_end)


def evaluate_bash(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Run the lines of a block and compare what they print."""
    commands = fence.body.replace("\\\n", "").splitlines()
    return check_output(page, fence, output, "".join(run_commands(commands, page.folder)))


def check_output(page: Page, fence: Fence, output: Fence | None, made: str) -> str | None:
    """Compare the ``text`` block after `fence` with what was printed; add one if need be."""
    if output is not None:
        return page.check(output.body, made, output.body_start, output.body_end)
    if not made:
        return None
    return page.check("", f"\n\n```text\n{made}```", fence.end, fence.end)


def evaluate_text(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Refuse an output that nothing prints."""
    return "a text block must follow, with nothing between, the block that prints it."


def evaluate_diff(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Check that an experiment's lines are there; `tests.docs.test_experiments` makes it."""
    return check_change(read_change(fence.body))


def evaluate_unknown(page: Page, fence: Fence, output: Fence | None) -> str | None:
    """Refuse a block that would be read and never executed."""
    return (f"nobody executes a block of {fence.language or 'no'} language; "
            "tests/docs/harness.py says which languages there are.")


def evaluate_section(example: Example) -> str | None:
    """Compare a made section of a page with what its function makes."""
    page, section = example.document, example.parsed
    assert isinstance(page, Page) and isinstance(section, Section)
    return page.check(section.body, make_section(section.name), section.body_start,
                      section.body_end)


def is_page(path: Path) -> bool:
    """Return True for the pages of the repository."""
    if path.suffix != ".md" or ROOT not in path.parents:
        return False
    place = path.relative_to(ROOT).parts
    return (place == ("README.md",) or place[0] in ("docs", "tutorials")
            or place[:2] == ("minivllm", "exercises"))


def page_sybil() -> Sybil:
    """Return the Sybil that collects the pages."""
    return Sybil([parse_page], pattern="*.md", document_types={".md": Page}, path=str(ROOT))


def check_page(path: Path) -> list[str]:
    """Return what is wrong with a page, block by block (for the tests of this harness)."""
    page = Page.parse(str(path), parse_page)
    failures = []
    for example in page:
        try:
            example.evaluate()
        except Exception as error:
            failures.append(str(error))
    return failures


