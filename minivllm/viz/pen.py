"""What pictures are drawn with: a width, glyphs that the output can hold, and colours.

Meaning is never carried by colour alone: every coloured thing also has a name or a glyph.  The
palette is that of Okabe and Ito ("Color Universal Design", 2008), its yellow darkened so that it
shows on white.  Where the output cannot hold the glyphs, ASCII ones take their place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.text import Text

# Background, and what is written on it.
_PALETTE = (
    ("#56b4e9", "#000000"), ("#e69f00", "#000000"), ("#009e73", "#ffffff"),
    ("#cc79a7", "#000000"), ("#d8c200", "#000000"), ("#d55e00", "#ffffff"),
    ("#0072b2", "#ffffff"),
)

BOLD = "bold"
DIM = "dim"


@dataclass(frozen=True)
class Glyphs:
    """The characters of a picture."""

    filled: str = "■"
    pending: str = "□"
    empty: str = "·"
    cached: str = "▒"
    full: str = "█"
    partial: str = "▄"
    shades: str = " ░▒▓█"
    bars: str = " ▁▂▃▄▅▆▇█"
    rule: str = "─"
    side: str = "│"
    corners: tuple[str, str, str, str] = ("╭", "╮", "╰", "╯")
    arrow: str = "→"
    output: str = "▸"
    space: str = "·"
    newline: str = "↵"
    tab: str = "⇥"
    times: str = "×"
    more: str = "…"
    none: str = "–"
    separator: str = "│"


UNICODE = Glyphs()
ASCII = Glyphs(filled="#", pending="o", empty=".", cached="c", full="#", partial="+",
               shades=" .:*#", bars=" ..::++##", rule="-", side="|",
               corners=("+", "+", "+", "+"), arrow="->", output=">", space="_", newline="\\n",
               tab="\\t", times="x", more="...", none="-", separator="|")


@dataclass(frozen=True)
class Pen:
    """How wide a picture may be, and what it is drawn with.

    Attributes
    ----------
    width : int
        Terminal cells.
    encoding : str
        Of the output; token texts that it cannot hold are escaped.
    """

    width: int
    encoding: str = "utf-8"

    @property
    def unicode(self) -> bool:
        """Whether the output holds more than ASCII."""
        return self.encoding.lower().replace("-", "").startswith("utf")

    @property
    def glyphs(self) -> Glyphs:
        """The characters to draw with."""
        return UNICODE if self.unicode else ASCII

    def token(self, text: str) -> str:
        """Return a token's text so that it can be seen: spaces and newlines as glyphs."""
        shown = (text.replace(" ", self.glyphs.space).replace("\n", self.glyphs.newline)
                 .replace("\t", self.glyphs.tab))
        shown = "".join(char if char.isprintable() else f"<{ord(char):02X}>" for char in shown)
        return self.plain(shown)

    def fit(self, text: str, width: int) -> str:
        """Return `text` in at most `width` cells, cut with an ellipsis."""
        if cell_len(text) <= width:
            return text
        more = self.glyphs.more
        return set_cell_size(text, max(width - len(more), 0)).rstrip() + more[:width]

    def plain(self, text: str) -> str:
        """Return `text` as the output can hold it."""
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def prose(self, sentence: str, start: Text | None = None) -> list[Text]:
        """Return a sentence after `start`, its later lines under its beginning."""
        arrow = sentence.replace("->", self.glyphs.arrow)
        words = [Text(self.plain(word)) for word in arrow.split()]
        return self.wrap(words, indent=0 if start is None else start.cell_len, gap=" ",
                         start=start)

    def heading(self, title: str, detail: str = "") -> Text:
        """Return a line that opens a part of a picture: its title, and a rule to the edge."""
        detail = self.fit(detail, max(self.width - cell_len(title) - 3, 0))
        line = Text()
        line.append(title, BOLD)
        line.append(f"  {detail} " if detail else " ", DIM)
        line.append(self.glyphs.rule * max(self.width - line.cell_len, 0), DIM)
        return line

    def wrap(self, pieces: Sequence[Text], indent: int = 0, gap: str = "  ",
             max_lines: int = 1000, start: Text | None = None,
             total: int | None = None) -> list[Text]:
        """Lay `pieces` (of `total`) in lines after `start`; what does not fit is counted."""
        total = len(pieces) if total is None else total
        lines = [Text() if start is None else start.copy()]
        fresh = True
        for i, piece in enumerate(pieces):
            rest = f"{gap}{self.glyphs.more} {total - i} more"
            last = len(lines) == max_lines
            # The last line keeps room to say how many pieces are left out.
            room = self.width - (len(rest) if last and i < total - 1 else 0)
            lead = "" if fresh else gap
            if not fresh and lines[-1].cell_len + len(lead) + piece.cell_len > room:
                if last:
                    lines[-1].append(rest, DIM)
                    break
                lines.append(Text(" " * indent))
                lead = ""
            lines[-1].append(lead).append_text(piece)
            fresh = False
        return lines


def span(text: str, style: str) -> Text:
    """Return `text` in a style that does not spread to what is appended to it."""
    return Text.assemble((text, style))


def fill_of(seq_id: int) -> str:
    """Return the background colour of a sequence."""
    return _PALETTE[seq_id % len(_PALETTE)][0]


def ink_of(seq_id: int) -> str:
    """Return the colour that reads on a sequence's background colour."""
    return _PALETTE[seq_id % len(_PALETTE)][1]


def chip(text: str, seq_id: int) -> Text:
    """Return `text` on the colour of a sequence."""
    return span(f" {text} ", f"bold {ink_of(seq_id)} on {fill_of(seq_id)}")


def beside(left: Sequence[Text], right: Sequence[Text], left_width: int,
           gap: int = 3) -> list[Text]:
    """Return two pictures side by side."""
    lines = []
    for i in range(max(len(left), len(right))):
        line = left[i].copy() if i < len(left) else Text()
        line.append(" " * (left_width + gap - line.cell_len))
        if i < len(right):
            line.append_text(right[i])
        lines.append(line)
    return lines
