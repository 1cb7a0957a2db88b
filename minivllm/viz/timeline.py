"""Requests against steps: one glyph says what a request did in a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from minivllm.tracing.snapshot import SequenceState, Snapshot
from minivllm.viz.pen import DIM, Pen, fill_of, ink_of, span
from minivllm.viz.picture import Picture

PREFILL, DECODE, PAUSED, WAITING, SWAPPED, PREEMPTED = "P", "D", "-", "w", "s", "X"
_WORDS = {PREFILL: "prefill", DECODE: "decode", PAUSED: "running, but not in this step",
          WAITING: "waiting", SWAPPED: "swapped out", PREEMPTED: "preempted"}
_MAX_ROWS = 24


@dataclass
class _Life:
    """What one request did: glyphs by step, from its first one on, and how it ended."""

    seq_id: int
    glyphs: dict[int, str]
    end: str = ""


def timeline(snapshot: Snapshot) -> Picture:
    """Draw what every request did in each step up to this one."""
    lives = request_lives(snapshot.history())
    return Picture(f"timeline up to step {snapshot.step}",
                   {name: life.glyphs for name, life in lives.items()},
                   lambda pen: draw_timeline(snapshot, pen))


def request_lives(history: Sequence[Snapshot]) -> dict[str, _Life]:
    """Return for each request what it did in each step."""
    lives: dict[str, _Life] = {}
    for snapshot in history:
        for request_id in snapshot.aborted:
            lives[request_id].end = "abort"
        first_seqs: dict[str, SequenceState] = {}
        for seq in snapshot.sequences.values():
            first_seqs.setdefault(seq.request_id, seq)
        for request_id, glyph in _glyphs_of_step(snapshot).items():
            seq = first_seqs[request_id]
            life = lives.setdefault(request_id, _Life(seq.seq_id, {}))
            life.glyphs[snapshot.step] = glyph
        for request_id in snapshot.finished:
            lives[request_id].end = first_seqs[request_id].finish_reason or ""
    return lives


def _glyphs_of_step(snapshot: Snapshot) -> dict[str, str]:
    glyphs = {request_id: PAUSED for request_id in snapshot.running}
    glyphs |= {request_id: WAITING for request_id in (*snapshot.waiting, *snapshot.ignored)}
    glyphs |= {request_id: SWAPPED for request_id in snapshot.swapped}
    glyphs |= {request_id: PREEMPTED for request_id in snapshot.preempted}
    glyphs |= {request.request_id: PREFILL if request.is_prompt else DECODE
               for request in snapshot.scheduled}
    return glyphs


def draw_timeline(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw the newest steps that fit, and the requests that are in them."""
    history = snapshot.history()
    lives = request_lives(history)
    label_width = min(max(map(len, lives), default=2), pen.width // 4)
    room = max(pen.width - label_width - 10, 1)
    cell = max(min(room // len(history), 3), 1)
    steps = [past.step for past in history[-(room // cell):]]
    title = f"steps {steps[0]} to {steps[-1]}"
    if len(steps) < len(history):
        title += f", {len(history) - len(steps)} earlier ones not shown"
    lines = [pen.heading("timeline", title), _ruler(steps, label_width, cell)]
    shown = {name: life for name, life in lives.items() if life.glyphs.keys() & set(steps)}
    for name, life in list(shown.items())[-_MAX_ROWS:]:
        lines.append(_life_line(name, life, steps, label_width, cell, pen))
    if len(shown) > _MAX_ROWS:
        lines.append(span(f"{pen.glyphs.more} {len(shown) - _MAX_ROWS} earlier requests", DIM))
    used = {life.glyphs.get(step) for life in shown.values() for step in steps}
    return [*lines, *pen.wrap([span(f"{glyph} {words}", DIM) for glyph, words in _WORDS.items()
                               if glyph in used])]


def _ruler(steps: list[int], label_width: int, cell: int) -> Text:
    """Return the numbers of some steps, above their columns."""
    line = " " * (label_width + 2)
    for column, step in enumerate(steps):
        place = label_width + 2 + column * cell + (cell - 1) // 2
        if step % (10 if cell == 1 else 5) == 0 and len(line) <= place:
            line = line.ljust(place) + f"{step} "
    return span(line, DIM)


def _life_line(name: str, life: _Life, steps: list[int], label_width: int, cell: int,
               pen: Pen) -> Text:
    line = Text(f"{pen.fit(name, label_width):<{label_width}}  ")
    end = max(life.glyphs)
    for step in steps:
        if step > end:
            break
        glyph = life.glyphs.get(step, " ")
        line.append(glyph.center(cell), _style(glyph, life.seq_id))
    if life.end:
        line.append(f" {life.end}", DIM)
    return line


def _style(glyph: str, seq_id: int) -> str:
    if glyph in (PREFILL, DECODE):
        weight = "bold " if glyph == PREFILL else ""
        return f"{weight}{ink_of(seq_id)} on {fill_of(seq_id)}"
    return "bold" if glyph == PREEMPTED else DIM

