"""Draws the figures of docs/performance.md, and makes its tables, from the JSON of measurements.

``docs/bench/peers.json`` has the rounds of three runs of ``python -m tests.bench.peers --json``,
the others are what ``minivllm bench run --json`` wrote.  ``pytest --update-docs docs tests/docs``
makes all anew.
"""

import json
from collections.abc import Iterator
from statistics import median
from typing import Any

from minivllm.bench.cases import CASES
from minivllm.viz.svg import card
from tests.docs.quoting import ROOT

MEASURED = ROOT / "docs" / "bench"
COLOURS = {"minivllm": "#0072b2", "llamacpp": "#e69f00", "transformers": "#009e73",
           "vllm": "#cc79a7", "linear": "#0072b2", "logits": "#56b4e9", "attention": "#e69f00",
           "norm, rope, act": "#009e73", "sampler": "#cc79a7"}
NAMES = {"llamacpp": "llama.cpp", "vllm": "vLLM (CPU)"}
STEPS = [("latency", "decode", "1 sequence"), ("batch8", "decode", "8 sequences"),
         ("throughput", "decode", "64 sequences"), ("prefill", "prefill", "1,024 prompt tokens")]
# Stages shown one by one; the others are "rest".
STAGES = ["linear", "logits", "attention", "norm, rope, act", "sampler"]

WIDTH, LEFT, RIGHT, BAR, TOP = 880, 180, 130, 18, 48
CSS = """
.speed-text { font: 13px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif }
.speed-name { font-weight: 600 }
"""


def peers_table() -> str:
    """Return tokens per second of each program in each case."""
    names = _speeds(next(_peers()))
    lines = ["| case | " + " | ".join(NAMES.get(name, name) for name in names)
             + " | ratio to the best other |", "|---" * (2 + len(names)) + "|"]
    for entry in _peers():
        lines.append(f"| `{entry['case']}`: {CASES[entry['case']].description.split(': ')[1]} | "
                     + " | ".join(f"{speed:.1f}" for speed in _speeds(entry).values())
                     + f" | {entry['ratio_to_best_other']:.2f} |")
    return "\n".join(lines)


def stages_table() -> str:
    """Return milliseconds of each stage of a step, and the least that the machine allows."""
    steps = [_step(case, kind) for case, kind, _ in STEPS]
    lines = ["| stage | " + " | ".join(f"{title} | limit" for _, _, title in STEPS) + " |",
             "|---" * (1 + 2 * len(STEPS)) + "|"]
    for stage in [*STAGES, "rest"]:
        cells = [f"{seconds.get(stage, 0) * 1e3:.1f} | "
                 + (f"{least[stage] * 1e3:.1f}" if stage in least else "")
                 for seconds, least in steps]
        lines.append(f"| {stage} | " + " | ".join(cells) + " |")
    totals = [f"{sum(seconds.values()) * 1e3:.1f} | " for seconds, _ in steps]
    return "\n".join([*lines, "| all | " + " | ".join(totals) + " |"])


def peers_figure() -> str:
    """Return bars: each program's speed in each case, as a part of the fastest one's."""
    body, y = [], TOP
    for entry in _peers():
        speeds = _speeds(entry)
        body.append(_text(16, y + 13, entry["case"], "speed-name"))
        for name, speed in speeds.items():
            width = (WIDTH - LEFT - RIGHT) * speed / max(speeds.values())
            body += [_bar(LEFT, y, width, name),
                     _text(LEFT + width + 8, y + 13, f"{speed:.0f} {NAMES.get(name, name)}")]
            y += BAR + 3
        y += 14
    title = "Tokens per second beside other programs (the fastest of a case fills the width)"
    return card(title, WIDTH, y + 4, [_text(16, 28, title), *body], CSS)


def stages_figure() -> str:
    """Return bars: where the time of a step goes."""
    body = [_text(16, 28, "Where the time of a step goes")]
    x = 250
    for stage in [*STAGES, "rest"]:
        body += [_bar(x, 17, 12, stage, 12), _text(x + 17, 28, stage)]
        x += 42 + 7 * len(stage)
    for row, (case, kind, title) in enumerate(STEPS):
        y, (seconds, _) = TOP + row * (BAR + 14), _step(case, kind)
        total = sum(seconds.values())
        body.append(_text(16, y + 13, title, "speed-name"))
        x = LEFT
        for stage in [*STAGES, "rest"]:
            width = (WIDTH - LEFT - RIGHT) * seconds.get(stage, 0.0) / total
            body.append(_bar(x, y, width, stage))
            x += width
        body.append(_text(x + 8, y + 13, f"{total * 1e3:,.0f} ms"))
    return card("Where the time of a step goes", WIDTH, TOP + len(STEPS) * (BAR + 14) + 4, body,
                CSS)


def _peers() -> Iterator[dict[str, Any]]:
    yield from json.loads((MEASURED / "peers.json").read_text("utf-8"))["cases"]


def _speeds(entry: dict[str, Any]) -> dict[str, float]:
    return {program["name"]: median(program["tokens_per_second"])
            for program in entry["programs"]}


def _step(case: str, kind: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return a mean step's seconds in each stage, and the least for those that have a limit."""
    report = json.loads((MEASURED / f"{case}.json").read_text("utf-8"))
    times = report["variants"]["default"][kind]
    seconds: dict[str, float] = {}
    for stage, value in times["seconds"].items():
        name = stage if stage in STAGES else "rest"
        seconds[name] = seconds.get(name, 0.0) + value / times["num_steps"]
    return seconds, {stage: value / times["num_steps"]
                     for stage, value in times["least_seconds"].items()}


def _bar(x: float, y: float, width: float, name: str, height: float = BAR) -> str:
    return (f'<rect x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}" '
            f'fill="{COLOURS.get(name, "#999999")}"/>')


def _text(x: float, y: float, text: str, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:g}" class="speed-text mv-ink {extra}">{text}</text>'
