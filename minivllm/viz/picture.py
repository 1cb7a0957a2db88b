"""A picture: plain data, a way to draw it, and its faces in a terminal, a notebook and an SVG.

A `Picture` is a rich renderable; ``print`` gives plain text, a bare name in a REPL shows it in
colour where stdout is a terminal (and NO_COLOR is unset), a notebook shows the SVG.
"""

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from minivllm.viz.pen import Pen
from minivllm.viz.svg import as_svg

DEFAULT_WIDTH = 80


class Picture:
    """Something drawn from a snapshot.

    Parameters
    ----------
    title : str
        What it shows.
    data : object
        What is drawn, as plain data.
    draw : callable
        Takes a `Pen`, returns lines no wider than its width.
    """

    def __init__(self, title: str, data: Any, draw: Callable[[Pen], Iterable[Text]]) -> None:
        self.title = title
        self.data = data
        self.draw = draw

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        encoding = "ascii" if options.legacy_windows else options.encoding
        for line in self.draw(Pen(options.max_width, encoding)):
            line.no_wrap = True
            line.overflow = "crop"
            yield line

    def text(self, width: int = DEFAULT_WIDTH, encoding: str = "utf-8") -> str:
        """Return it as plain text."""
        return self._render(width, encoding, colour=False)

    def svg(self, path: str | os.PathLike[str] | None = None, width: int = 100) -> str:
        """Return it as SVG, `width` characters wide; write it to `path` if one is given."""
        svg = as_svg(self, self.title, width)
        if path is not None:
            Path(path).write_text(svg, encoding="utf-8")
        return svg

    def __str__(self) -> str:
        return self.text(*_stdout_shape())

    def __repr__(self) -> str:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        return self._render(*_stdout_shape(), colour=colour)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self.svg()}

    def _render(self, width: int, encoding: str, colour: bool) -> str:
        raw = io.BytesIO()
        file = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
        console = Console(file=file, width=width, force_terminal=colour, legacy_windows=False,
                          color_system="auto" if colour else None, highlight=False)
        console.print(self, end="")
        file.flush()
        text = raw.getvalue().decode(encoding).rstrip("\n")
        return text if colour else "\n".join(line.rstrip() for line in text.split("\n"))


def _stdout_shape() -> tuple[int, str]:
    """Return width and encoding of stdout; what is no terminal is 80 wide."""
    width = DEFAULT_WIDTH
    if sys.stdout.isatty():
        width = shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return width, getattr(sys.stdout, "encoding", None) or "utf-8"
