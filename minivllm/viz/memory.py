"""How many blocks were used after each step, as a curve."""

from collections.abc import Sequence

from rich.text import Text

from minivllm.tracing.snapshot import Snapshot
from minivllm.viz.pen import DIM, Pen, span
from minivllm.viz.picture import Picture

_ROWS = 6
_COLOURS = {"gpu": "#56b4e9", "cpu": "#cc79a7"}


def memory(snapshot: Snapshot) -> Picture:
    """Draw the number of used blocks after each step up to this one."""
    history = snapshot.history()
    data = {"steps": [past.step for past in history],
            "gpu": [past.gpu.num_used for past in history],
            "cpu": [past.cpu.num_used for past in history]}
    return Picture(f"used blocks up to step {snapshot.step}", data,
                   lambda pen: draw_memory(snapshot, pen))


def draw_memory(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw the curve of the GPU pool, and that of the CPU pool if it was ever used."""
    history = snapshot.history()
    lines = _curve("GPU", [past.gpu.num_used for past in history], snapshot.gpu.num_blocks,
                   history, pen)
    cpu = [past.cpu.num_used for past in history]
    if any(cpu):
        lines += [Text(), *_curve("CPU", cpu, snapshot.cpu.num_blocks, history, pen)]
    return lines


def _curve(name: str, used: list[int], num_blocks: int, history: Sequence[Snapshot],
           pen: Pen) -> list[Text]:
    peak = max(used)
    peak_step = history[used.index(peak)].step
    label_width = len(str(num_blocks)) + 1
    room = pen.width - label_width - 2
    columns = _squeeze(used, room)
    cell = max(min(room // max(len(columns), 1), 3), 1)
    lines = [pen.heading(f"{name} blocks used",
                         f"now {used[-1]} of {num_blocks}, most {peak} in step {peak_step}")]
    for row in reversed(range(_ROWS)):
        label = {_ROWS - 1: str(num_blocks), 0: "0"}.get(row, "")
        line = span(f"{label:>{label_width}} {pen.glyphs.side}", DIM)
        bars = "".join(_bar(value, num_blocks, row, pen) * cell for value in columns)
        lines.append(line.append(bars, _COLOURS[name.lower()]))
    first, last = str(history[0].step), str(history[-1].step)
    gap = max(len(columns) * cell - len(first) - len(last), 1)
    return [*lines, span(" " * (label_width + 2) + first + " " * gap + last, DIM)]


def _squeeze(values: list[int], width: int) -> list[int]:
    """Return at most `width` values: each the largest of its share."""
    if len(values) <= width:
        return values
    bounds = [i * len(values) // width for i in range(width + 1)]
    return [max(values[low:high]) for low, high in zip(bounds, bounds[1:], strict=False)]


def _bar(value: int, num_blocks: int, row: int, pen: Pen) -> str:
    """Return the part of a column that lies in one row; what is used at all can be seen."""
    eighths = -(-value * _ROWS * 8 // max(num_blocks, 1)) - row * 8
    return pen.glyphs.bars[min(max(eighths, 0), 8)]
