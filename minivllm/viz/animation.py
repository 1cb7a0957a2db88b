"""The animated picture: one self-contained SVG that plays a trace step by step, with CSS only.

Request chips travel between the queues; sequences, pools and the reasons change with each step.
Pointing at the picture stops it where the viewer allows that.
"""

from collections.abc import Iterator, Sequence

from minivllm.tracing.snapshot import Snapshot
from minivllm.viz.diff import block_moves
from minivllm.viz.overview import line_text
from minivllm.viz.pen import Pen
from minivllm.viz.scene import (
    Area,
    PoolArea,
    block_width,
    chip,
    chip_width,
    draw_scene,
    label,
    pool_area,
    sequences_height,
)
from minivllm.viz.svg import card
from minivllm.viz.why import held_requests, reasons

# Of a longer trace the first steps are played.
MAX_STEPS = 60
SECONDS_PER_STEP = 2.5
# Share of a step that changes take.
_MOVE = 0.14
_MARGIN = 24
_HEADER = 54
_QUEUES = ("waiting", "running", "swapped")
_LANE = 30
_WHY_LINES = 3


def animated_svg(views: Sequence[Snapshot]) -> str:
    """Return an SVG that plays the first steps of a trace."""
    return _Animation(views[:MAX_STEPS]).svg()


class _Animation:
    """The measures of one animation, and its parts."""

    def __init__(self, views: Sequence[Snapshot]) -> None:
        self.views = views
        last = views[-1]
        width = block_width(last.limits.block_size)
        lanes_bottom = _HEADER + _LANE * len(_QUEUES) + 34
        pool_x = _MARGIN + 86 + width + 150
        self.gpu = pool_area([view.gpu for view in views], pool_x, lanes_bottom, width)
        height = max(sequences_height(view, as_lines=self.gpu.as_squares) for view in views)
        self.left = Area(_MARGIN, lanes_bottom, 86 + width, height)
        self.cpu: PoolArea | None = None
        bottom = self.gpu.y + self.gpu.height
        if any(view.cpu.blocks for view in views):
            self.cpu = pool_area([view.cpu for view in views], pool_x, bottom + 34, width)
            bottom = self.cpu.y + self.cpu.height
        self.width = pool_x + width + 110
        self.why_y = max(bottom, self.left.y + self.left.height) + 30
        self.height = self.why_y + _WHY_LINES * 19 + 34

    def svg(self) -> str:
        """Return the whole file."""
        seconds = len(self.views) * SECONDS_PER_STEP
        css = [_STYLE, _show_keyframes(len(self.views), seconds)]
        body = list(self._still_parts())
        for index, view in enumerate(self.views):
            css.append(f".mv-f{index} {{ animation-delay: {index * SECONDS_PER_STEP:g}s }}")
            body += [f'<g class="mv-frame mv-f{index}">', *self._frame(view, index), "</g>"]
        for number, name in enumerate(self._request_ids()):
            keyframes, element = self._travel(name, number, seconds)
            css.append(keyframes)
            body.append(element)
        title = f"{len(self.views)} steps of scheduling, played"
        return card(title, self.width, self.height, body, "\n".join(css))

    def _still_parts(self) -> Iterator[str]:
        for queue, name in enumerate(_QUEUES):
            y = _HEADER + queue * _LANE
            yield label(_MARGIN, y + 15, name, "mv-ink mv-bold")
            width = self.width - 2 * _MARGIN - 74
            yield (f'<rect x="{_MARGIN + 74}" y="{y - 3}" width="{width:g}" height="26" rx="6" '
                   'class="mv-lane"/>')
        yield label(self.left.x, self.left.y - 12, "sequences", "mv-ink mv-bold")
        what = "their blocks" if self.gpu.as_squares else "logical blocks and their tokens"
        yield label(self.left.x + 78, self.left.y - 12, what, "mv-dim")

    def _frame(self, view: Snapshot, index: int) -> Iterator[str]:
        """Draw what changes from step to step."""
        step, _, what = line_text(view).partition("  ")
        yield label(_MARGIN, 32, step, "mv-ink mv-big")
        yield label(_MARGIN + 12 * len(step) + 14, 32, what.split(" | ")[0], "mv-ink mv-mid")
        yield from draw_scene(view, self.left, self.gpu, self.cpu)
        for i, line in enumerate(self._why_lines(view)):
            yield label(_MARGIN, self.why_y + i * 19, line, "mv-ink")
        for dot in range(len(self.views)):
            x = self.width / 2 + (dot - len(self.views) / 2 + 0.5) * min(
                16, (self.width - 2 * _MARGIN) / len(self.views))
            css = "mv-ink" if dot == index else "mv-line"
            yield f'<circle cx="{x:g}" cy="{self.height - 18:g}" r="4" class="{css}"/>'

    def _why_lines(self, view: Snapshot) -> list[str]:
        pen = Pen(int((self.width - 2 * _MARGIN) // 7.25))
        held = held_requests(view)
        sentences = list(dict.fromkeys(
            sentence for request_id in held for sentence in reasons(view, request_id)))
        sentences += block_moves(view)
        sentences += [f"{name} is finished." for name in view.finished if name not in view.ignored]
        lines = [line.plain for sentence in sentences for line in pen.prose(sentence)]
        if len(lines) > _WHY_LINES:
            lines = [*lines[:_WHY_LINES - 1], pen.fit(lines[_WHY_LINES - 1], pen.width - 2) + " …"]
        return lines

    def _request_ids(self) -> list[str]:
        """Return the requests that can be seen in a queue at some time."""
        most = int(self.width // chip_width(""))
        seen = {request_id for view in self.views
                for queue in (view.waiting, view.running, view.swapped)
                for request_id in queue[:most] if self._place(view, request_id) is not None}
        everyone = dict.fromkeys(name for view in self.views for name in view.request_ids)
        return [name for name in everyone if name in seen]

    def _travel(self, name: str, number: int, seconds: float) -> tuple[str, str]:
        """Return a chip that stands in its queue in each step, and the CSS that moves it."""
        places = [self._place(view, name) for view in self.views]
        at = next(place for place in places if place is not None)
        shown = False
        stops = [_stop(0, at, shown)]
        for index, place in enumerate(places):
            if (place or at, place is not None) == (at, shown):
                continue
            start = index / len(places) * 100
            stops.append(_stop(start, at, shown))
            at, shown = place or at, place is not None
            stops.append(_stop(start + _MOVE / len(places) * 100, at, shown))
        stops.append(_stop(100, at, shown))
        seq_id = next(view.seqs_of(name)[0].seq_id for view in self.views if view.seqs_of(name))
        keyframes = (f"@keyframes mv-r{number} {{ {' '.join(stops)} }}\n"
                     f".mv-r{number} {{ animation: mv-r{number} {seconds:g}s ease-in-out "
                     "infinite }")
        return keyframes, f'<g class="mv-chip mv-r{number}">{chip(0, 0, name, seq_id)}</g>'

    def _place(self, view: Snapshot, name: str) -> tuple[float, float] | None:
        """Return where a request's chip stands after a step; None if it cannot be seen."""
        for queue, queue_name in enumerate(_QUEUES):
            members: tuple[str, ...] = getattr(view, queue_name)
            if name in members:
                before = members[:members.index(name)]
                x = _MARGIN + 84 + sum(chip_width(other) + 8 for other in before)
                if x + chip_width(name) < self.width - _MARGIN:
                    return x, _HEADER + queue * _LANE
        return None


def _stop(percent: float, place: tuple[float, float], shown: bool) -> str:
    return (f"{percent:.3f}% {{ transform: translate({place[0]:g}px, {place[1]:g}px); "
            f"opacity: {int(shown)} }}")


def _show_keyframes(num_steps: int, seconds: float) -> str:
    """Return the CSS that shows each frame for its share of the time."""
    share = 100 / num_steps
    fade = share * _MOVE / 2
    return (f"@keyframes mv-show {{ 0% {{ opacity: 0 }} {fade:.3f}% {{ opacity: 1 }} "
            f"{share:.3f}% {{ opacity: 1 }} {share + fade:.3f}% {{ opacity: 0 }} "
            "100% { opacity: 0 } }\n"
            f".mv-frame {{ animation: mv-show {seconds:g}s linear infinite }}")


_STYLE = """\
.mv-text { font-size: 12px }
.mv-bold { font-weight: bold }
.mv-big { font-size: 20px; font-weight: bold }
.mv-mid { font-size: 15px }
.mv-lane { fill: #8b949e; fill-opacity: 0.12 }
.mv-frame { opacity: 0 }
.mv-f0 { opacity: 1 }
svg:hover .mv-frame, svg:hover .mv-chip { animation-play-state: paused !important }
@media (prefers-reduced-motion: reduce) {
  .mv-frame, .mv-chip { animation-timing-function: step-end !important }
}"""
