"""How a picture shows itself: in a terminal, without colour, in a notebook, as SVG."""

import dataclasses
import io
import re
import sys
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minivllm.viz.animation import MAX_STEPS, animated_svg
from minivllm.viz.blocks import blocks
from minivllm.viz.pen import fill_of
from minivllm.viz.table import table
from tests.viz.snapshots import LIMITS, classic, make_seq, make_snapshot

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class FakeTerminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", FakeTerminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_repr_is_coloured_in_a_terminal(monkeypatch: pytest.MonkeyPatch):
    use_terminal(monkeypatch)
    picture = blocks(classic()[1])
    assert ANSI.search(repr(picture))
    rows = [row.rstrip() for row in ANSI.sub("", repr(picture)).split("\n")]
    assert rows == picture.text(72).split("\n")


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch):
    use_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not ANSI.search(repr(blocks(classic()[1])))


def test_repr_is_plain_elsewhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    picture = blocks(classic()[1])
    assert repr(picture) == str(picture) == picture.text(80)


def test_str_is_plain_even_in_a_terminal(monkeypatch: pytest.MonkeyPatch):
    use_terminal(monkeypatch)
    assert not ANSI.search(str(blocks(classic()[1])))


def test_output_that_cannot_hold_the_glyphs_gets_ascii(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    assert repr(blocks(classic()[1])).isascii()


def test_a_notebook_gets_svg_and_plain_text():
    bundle = blocks(classic()[1])._repr_mimebundle_()
    assert bundle["text/html"].startswith("<svg")
    assert bundle["text/plain"] == blocks(classic()[1]).text()


def texts_of(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter()
            if element.tag.endswith("}text")]


def fills_of(svg: str) -> set[str]:
    return {element.get("fill", "") for element in ElementTree.fromstring(svg).iter()}


def test_svg_has_the_words_and_the_colours(tmp_path: Path):
    svg = blocks(classic()[1]).svg(tmp_path / "step1.svg")
    assert (tmp_path / "step1.svg").read_text(encoding="utf-8") == svg
    assert [text for text in texts_of(svg) if text != "·"] == [
        "GPU", "block", "pool", "5", "blocks", "of", "4", "slots:", "5", "used,", "0", "free",
        "0", "1", "2", "3", "4", "r2", "r1", "r1", "r0", "r0",
        "in", "the", "cache", "still", "to", "be", "computed", "empty"]
    assert {fill_of(0), fill_of(1), fill_of(2)} <= fills_of(svg)


def test_svg_is_the_same_every_time_and_stands_alone():
    svg = table(classic()[1]).svg()
    assert svg == table(classic()[1]).svg()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|@font-face|<script", svg)
    assert "prefers-color-scheme: dark" in svg


def test_svg_gives_chinese_two_cells():
    seq = make_seq("r0", 1, 1, (0,), texts=["你好"])
    svg = table(make_snapshot(0, [seq])).svg()
    width = re.search(r'textLength="(\d+)"[^>]*>你好<', svg)
    assert width and int(width.group(1)) == 4 * 9


def test_svg_escapes_what_tokens_contain():
    seq = make_seq("r0", 2, 2, (0,), texts=["<b>", "&"])
    assert "<b>" in texts_of(table(make_snapshot(0, [seq])).svg())


def test_animation_plays_every_step_with_css_only():
    svg = animated_svg(classic())
    root = ElementTree.fromstring(svg)
    frames = [element for element in root.iter() if "mv-frame" in element.get("class", "")]
    assert len(frames) == 3
    assert [texts_of(ElementTree.tostring(frame, encoding="unicode"))[0] for frame in frames] == [
        "step 0", "step 1", "step 2"]
    chips = [element for element in root.iter() if "mv-chip" in element.get("class", "")]
    assert [texts_of(ElementTree.tostring(chip, encoding="unicode")) for chip in chips] == [
        ["r0"], ["r1"], ["r2"]]
    assert "@keyframes" in svg
    assert not re.search(r"<script|<animate|https?://(?!www\.w3\.org/2000/svg)", svg)
    # Where CSS does not run, the first frame shows.
    assert ".mv-f0 { opacity: 1 }" in svg


def test_chips_travel_between_the_queues():
    """r2 waits in step 0, runs in step 1, and waits again in step 2."""
    svg = animated_svg(classic())
    stops = re.search(r"@keyframes mv-r2 \{(.*?)\}\s*\}\n", svg, re.DOTALL)
    assert stops
    heights = re.findall(r"translate\([\d.]+px, ([\d.]+)px\)", stops.group(1))
    moves = [height for height, _ in groupby(heights)]
    assert len(moves) == 3
    assert moves[0] == moves[2] != moves[1]


def test_a_long_trace_is_cut():
    previous = None
    views = []
    for step in range(MAX_STEPS + 20):
        previous = make_snapshot(step, [make_seq("r0", 6, 5, (4, 3))], previous=previous)
        views.append(previous)
    svg = animated_svg(views)
    assert svg.count('class="mv-frame ') == MAX_STEPS


def test_large_pools_are_animated_as_squares():
    limits = dataclasses.replace(LIMITS, num_gpu_blocks=500)
    seqs = [make_seq(f"r{i}", 6, 5, (2 * i, 2 * i + 1), texts=list("abcdef")) for i in range(30)]
    svg = animated_svg([make_snapshot(0, seqs, limits)])
    ElementTree.fromstring(svg)
    # The pool's, and those of the lines of the first sequences.
    assert svg.count("h12v12h-12z") == 500 + 2 * 19
    assert "… 11 more sequences" in texts_of(svg)
    assert len(svg) < 50_000


def test_of_a_pool_that_is_mostly_free_the_used_blocks_are_animated():
    limits = dataclasses.replace(LIMITS, num_gpu_blocks=500)
    svg = animated_svg([make_snapshot(0, [make_seq("r0", 6, 5, (499, 498))], limits)])
    texts = texts_of(svg)
    assert "h12v12h-12z" not in svg
    assert {"498", "499", "498 of 500 free"} <= set(texts)
    assert "497" not in texts
