"""Finding the parts of a Markdown page that can be executed or made: fences and sections.

A *fence* is a block between lines of three or more backticks.  A *section* is made by a function
of `tests.docs.sections` and stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.
"""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)[ ]*$",
                    flags=re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^<!-- begin (?P<name>\w+) -->\n(?P<body>.*?)^<!-- end (?P=name) -->$",
                      flags=re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^\n]+) -->\n\Z")


@dataclass(frozen=True)
class Fence:
    """One fenced block.

    Attributes
    ----------
    language : str
        The word after the opening backticks.
    body : str
        What stands between the backticks, with its last newline.
    start, end : int
        Offsets of the whole fence in the page.
    body_start : int
        Offset of the body.
    not_run : str or None
        The reason in a ``<!-- not run: reason -->`` on the line above.
    """

    language: str
    body: str
    start: int
    end: int
    body_start: int
    not_run: str | None

    @property
    def body_end(self) -> int:
        """Offset of the closing backticks."""
        return self.body_start + len(self.body)


@dataclass(frozen=True)
class Section:
    """A part of a page that a function makes."""

    name: str
    body: str
    start: int
    end: int
    body_start: int

    @property
    def body_end(self) -> int:
        """Offset of the closing comment."""
        return self.body_start + len(self.body)


def find_fences(text: str) -> list[Fence]:
    """Return the fences of a page, in order."""
    fences = []
    for match in _FENCE.finditer(text):
        not_run = _NOT_RUN.search(text, 0, match.start())
        fences.append(Fence(match["info"].strip(), match["body"], match.start(), match.end(),
                            match.start("body"), not_run["reason"] if not_run else None))
    return fences


def find_sections(text: str) -> list[Section]:
    """Return the sections of a page, in order; what is inside a fence is no section."""
    fences = find_fences(text)
    return [Section(match["name"], match["body"], match.start(), match.end(), match.start("body"))
            for match in _SECTION.finditer(text)
            if not any(fence.start < match.start() < fence.end for fence in fences)]


def output_of(fence: Fence, fences: list[Fence], text: str) -> Fence | None:
    """Return the ``text`` fence that shows what `fence` prints: it follows with nothing between."""
    following = next((other for other in fences if other.start >= fence.end), None)
    if following is None or following.language != "text":
        return None
    return following if not text[fence.end:following.start].strip() else None
