"""A snapshot with its pictures."""

import os
from dataclasses import dataclass
from typing import Any

from minivllm.tracing.snapshot import Snapshot
from minivllm.viz.attention import attention
from minivllm.viz.blocks import blocks
from minivllm.viz.diff import diff
from minivllm.viz.memory import memory
from minivllm.viz.overview import line, overview
from minivllm.viz.picture import Picture
from minivllm.viz.queues import queues
from minivllm.viz.table import table
from minivllm.viz.timeline import timeline
from minivllm.viz.why import why


@dataclass(frozen=True, repr=False)
class View(Snapshot):
    """A snapshot with its pictures; each has ``.svg(path)`` and, as plain data, ``.data``."""

    def line(self) -> Picture:
        """Say in one line what the step did, and whom it held back."""
        return line(self)

    def picture(self) -> Picture:
        """Draw it all: queues, block pools, tables, reasons."""
        return overview(self)

    def queues(self) -> Picture:
        """Draw who waits, runs, and is swapped out."""
        return queues(self)

    def blocks(self) -> Picture:
        """Draw the block pools: who holds which block, how full it is, who shares it."""
        return blocks(self)

    def table(self, name: str | None = None) -> Picture:
        """Draw block tables: of one sequence (``"r0.1"``), one request, or all."""
        return table(self, name)

    def timeline(self) -> Picture:
        """Draw what every request did in each step so far."""
        return timeline(self)

    def memory(self) -> Picture:
        """Draw how many blocks were used after each step so far."""
        return memory(self)

    def diff(self) -> Picture:
        """Draw what the step changed."""
        return diff(self)

    def why(self, name: str | None = None) -> Picture:
        """Say why a request ran or did not, and what would have let it run."""
        return why(self, name)

    def attention(self, name: str | None = None) -> Picture:
        """Draw which slots decoding tokens read, if that has been recorded."""
        return attention(self, name)

    def svg(self, path: str | os.PathLike[str] | None = None, width: int = 100) -> str:
        """Return the whole picture as SVG; write it to `path` if one is given."""
        return self.picture().svg(path, width)

    def __repr__(self) -> str:
        return repr(self.picture())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return self.picture()._repr_mimebundle_(**kwargs)
