"""Draws the figure of the house from the table of imports.

``pytest --update-docs tests/docs`` writes it; ``tests/docs/test_figures.py`` keeps it true.
"""

from collections.abc import Iterator

from minivllm.viz.svg import card
from tests.test_imports import FLOORS, PACKAGE

# What is said of each room.  Rooms of floor 0 that are one small module share a line.
ROOMS = {
    "cli": "the command",
    "stepper": "REPL: step, back, why",
    "exercises": "holes in the engine",
    "bench": "measuring",
    "viz": "pictures of snapshots",
    "tracing": "snapshots, trace files",
    "entrypoints": "LLM: a whole batch",
    "engine": "add_request, step",
    "core": "who runs, which blocks",
    "executor": "runs a step",
    "worker": "arrays, the KV cache",
    "model_executor": "the transformer",
    "attention": "paged attention",
    "lora": "adapters",
    "distributed": "tensor parallel",
    "sequence": "requests",
    "block": "blocks",
    "decisions": "why",
    "config": "settings",
    "sampling_params": "what is asked",
    "inputs": "what goes in",
    "outputs": "what comes out",
    "transformers_utils": "tokenizer, config",
    "workloads": "made requests",
}
# The rooms that a step passes, in order.
STEP = ["entrypoints", "engine", "core", "executor", "worker", "model_executor", "attention"]

WIDTH, LEFT, GAP, HEIGHT, FLOOR_HEIGHT, TOP = 880, 92, 10, 52, 72, 52
CSS = """
.house-name { font: 600 14px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
.house-says, .house-floor { font: 12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif }
.house-room { fill: #8881; stroke: #8888 }
.house-on-path { fill: #0072b222; stroke: #0072b2; stroke-width: 1.5 }
.house-number { font: 600 11px system-ui, 'DejaVu Sans', sans-serif; fill: #ffffff }
.house-badge { fill: #0072b2 }
"""


def house() -> str:
    """Return the house as SVG: a band for each floor, a box for each room."""
    floors = [[room for room in floor if room in ROOMS and exists(room)] for floor in FLOORS]
    rows = [row for number in range(len(floors) - 1, -1, -1)
            for row in _rows(number, floors[number])]
    body = ['<text x="16" y="30" class="house-says mv-ink">A room imports only from floors below '
            'it. Numbers: the way of one step.</text>']
    for y, (number, rooms) in enumerate(rows):
        body += _floor(number, rooms, TOP + y * FLOOR_HEIGHT)
    return card("The house: rooms of minivllm by floor", WIDTH, TOP + len(rows) * FLOOR_HEIGHT + 8,
                body, CSS)


def exists(room: str) -> bool:
    """Return True if the room is built."""
    return (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").is_file()


def _rows(number: int, rooms: list[str]) -> list[tuple[int | None, list[str]]]:
    """Cut a floor into rows of at most five rooms; only the first has the floor's number."""
    rows = [rooms[i:i + 5] for i in range(0, len(rooms), 5)]
    return [(number if i == 0 else None, row) for i, row in enumerate(rows)]


def _floor(number: int | None, rooms: list[str], y: int) -> Iterator[str]:
    if number is not None:
        yield (f'<line x1="16" y1="{y - 10}" x2="{WIDTH - 16}" y2="{y - 10}" '
               'class="mv-line-edge"/>')
        yield (f'<text x="20" y="{y + HEIGHT / 2 + 4}" class="house-floor mv-dim">'
               f'floor {number}</text>')
    width = (WIDTH - LEFT - 16 + GAP) / len(rooms) - GAP
    for i, room in enumerate(rooms):
        yield from _room(room, LEFT + i * (width + GAP), y, width)


def _room(room: str, x: float, y: int, width: float) -> Iterator[str]:
    on_path = room in STEP
    kind = "house-on-path" if on_path else "house-room"
    yield (f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{HEIGHT}" rx="6" class="{kind}"/>')
    middle = x + width / 2
    yield (f'<text x="{middle:g}" y="{y + 22}" text-anchor="middle" class="house-name mv-ink">'
           f'{room}</text>')
    yield (f'<text x="{middle:g}" y="{y + 40}" text-anchor="middle" class="house-says mv-dim">'
           f'{ROOMS[room]}</text>')
    if on_path:
        yield f'<circle cx="{x + 2:g}" cy="{y + 2}" r="9" class="house-badge"/>'
        yield (f'<text x="{x + 2:g}" y="{y + 6}" text-anchor="middle" class="house-number">'
               f'{STEP.index(room) + 1}</text>')
