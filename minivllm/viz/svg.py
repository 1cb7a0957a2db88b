"""Pictures as SVG: what the terminal shows, on a card that follows the reader's colour scheme.

rich lays the picture out; the SVG is written here, so that it needs no web fonts, does not depend
on rich's version, gives Chinese its two cells, and draws block glyphs as shapes (fonts disagree
about them).  The same picture is the same file.
"""

import io
from collections.abc import Callable, Iterable
from html import escape

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.style import Style

CELL, LINE, FONT_SIZE, PADDING = 9.0, 21.0, 15, 16
FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"

# `ink` is text, `dim` what steps back, `paper` the card, `line` its edge.
_LIGHT = {"ink": "#1f2328", "dim": "#6e7781", "paper": "#ffffff", "line": "#d0d7de"}
_DARK = {"ink": "#e6edf3", "dim": "#8b949e", "paper": "#0d1117", "line": "#30363d"}


def stylesheet(extra: str = "") -> str:
    """Return the ``<style>`` that all our SVGs share, with its dark half."""
    def rules(scheme: dict[str, str]) -> str:
        return " ".join(f".mv-{name} {{ fill: {colour} }} .mv-{name}-edge {{ stroke: {colour}; "
                        "fill: none }" for name, colour in scheme.items())

    return (f"<style>\n.mv-text {{ font-family: {FONTS}; font-size: {FONT_SIZE}px; "
            f"white-space: pre }}\n{rules(_LIGHT)}\n"
            f"@media (prefers-color-scheme: dark) {{ {rules(_DARK)} }}\n{extra}</style>")


def card(title: str, width: float, height: float, body: Iterable[str], extra_css: str = "") -> str:
    """Return a whole SVG file: `body` on a card of the given size."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" role="img">',
        f"<title>{escape(title)}</title>",
        stylesheet(extra_css),
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" '
        'class="mv-paper"/>',
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" '
        'class="mv-line-edge"/>',
        *body,
        "</svg>\n",
    ])


def as_svg(renderable: RenderableType, title: str, width: int) -> str:
    """Return `renderable` as an SVG of `width` terminal cells."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, no_color=False,
                      color_system="truecolor", legacy_windows=False, highlight=False)
    lines = console.render_lines(renderable, pad=False)
    body = [f'<g transform="translate({PADDING}, {PADDING})">']
    for row, line in enumerate(lines):
        body += _line(line, row * LINE)
    body.append("</g>")
    return card(title, width * CELL + 2 * PADDING, len(lines) * LINE + 2 * PADDING, body)


def _line(line: list[Segment], y: float) -> Iterable[str]:
    x = 0.0
    for text, style, _ in line:
        style = style or Style()
        width = cell_len(text) * CELL
        if style.bgcolor is not None and not style.bgcolor.is_default:
            yield (f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{width - 2:g}" '
                   f'height="{LINE - 2:g}" rx="4" '
                   f'fill="{style.bgcolor.get_truecolor().hex}"/>')
        yield from _segment(text, _paint(style), x, y)
        x += width


def _paint(style: Style) -> str:
    """Return the attributes that colour a text or a shape."""
    weight = ' font-weight="bold"' if style.bold else ""
    if style.color is not None and not style.color.is_default:
        return f'fill="{style.color.get_truecolor().hex}"{weight} class="mv-text"'
    return f'class="mv-text {"mv-dim" if style.dim else "mv-ink"}"{weight}'


def _segment(text: str, paint: str, x: float, y: float) -> Iterable[str]:
    """Yield the words of `text` as text, its block glyphs as shapes."""
    word = ""
    for char in text + " ":
        if char in _SHAPES or char == " ":
            if word:
                yield _word(word, paint, x, y)
                x += cell_len(word) * CELL
                word = ""
            if char in _SHAPES:
                yield _SHAPES[char](x, y, paint)
            x += CELL
        else:
            word += char


def _word(word: str, paint: str, x: float, y: float) -> str:
    return (f'<text x="{x:g}" y="{y + 15.5:g}" textLength="{cell_len(word) * CELL:g}" '
            f'lengthAdjust="spacingAndGlyphs" {paint}>{escape(word)}</text>')


_Shape = Callable[[float, float, str], str]


def _box(left: float, top: float, width: float, height: float, radius: float = 0,
         opacity: float = 1) -> _Shape:
    """Return a drawer of a box at a place of the cell, all in fractions of it."""
    def draw(x: float, y: float, paint: str) -> str:
        see_through = "" if opacity == 1 else f' fill-opacity="{opacity:g}"'
        return (f'<rect x="{x + left * CELL:g}" y="{y + top * LINE:g}" '
                f'width="{width * CELL:g}" height="{height * LINE:g}" rx="{radius:g}" '
                f'{paint}{see_through}/>')
    return draw


def _outline(x: float, y: float, paint: str) -> str:
    """Draw a hollow slot: a filled frame, so that text and shapes are coloured alike."""
    left, top, right, bottom = x + 1, y + 6, x + CELL - 1, y + 16
    return (f'<path fill-rule="evenodd" d="M{left:g} {top:g}H{right:g}V{bottom:g}H{left:g}Z'
            f'M{left + 1.5:g} {top + 1.5:g}V{bottom - 1.5:g}H{right - 1.5:g}V{top + 1.5:g}Z" '
            f'{paint}/>')


def _corner(right: bool, down: bool) -> _Shape:
    """Return a drawer of a rounded corner that leads right or left, down or up."""
    def draw(x: float, y: float, paint: str) -> str:
        middle_x, middle_y = x + CELL / 2, y + LINE / 2
        end_x = x + CELL if right else x
        end_y = y + LINE if down else y
        colour = paint.replace("fill=", "stroke=").replace('mv-ink"', 'mv-ink-edge"').replace(
            'mv-dim"', 'mv-dim-edge"')
        return (f'<path d="M{end_x:g} {middle_y:g}Q{middle_x:g} {middle_y:g} {middle_x:g} '
                f'{end_y:g}" fill="none" stroke-width="1.2" {colour}/>')
    return draw


_SHAPES: dict[str, _Shape] = {
    "■": _box(0.08, 0.27, 0.84, 0.48, 1.5),
    "□": _outline,
    "▒": _box(0.08, 0.27, 0.84, 0.48, 1.5, 0.35),
    "░": _box(0, 0.05, 1, 0.9, 0, 0.25),
    "▓": _box(0, 0.05, 1, 0.9, 0, 0.75),
    "█": _box(0, 0, 1, 1),
    "─": _box(0, 0.475, 1, 0.055),
    "│": _box(0.44, 0, 0.13, 1),
    "╭": _corner(True, True), "╮": _corner(False, True),
    "╰": _corner(True, False), "╯": _corner(False, False),
    **{bar: _box(0, 1 - (i + 1) / 8, 1, (i + 1) / 8) for i, bar in enumerate("▁▂▃▄▅▆▇")},
}
