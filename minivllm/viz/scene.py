"""One step drawn as shapes: sequences on the left, the blocks that hold them on the right.

The picture of the PagedAttention paper (Kwon et al., 2023, figure 6), made from a snapshot: each
logical block is a row of token slots, a line leads to the physical block that holds it.  Frames
of the animated SVG are made of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from rich.cells import cell_len

from minivllm.tracing.snapshot import BlockState, PoolState, SequenceState, Snapshot
from minivllm.utils import cdiv
from minivllm.viz.blocks import holder_name
from minivllm.viz.pen import Pen, fill_of, ink_of

_PEN = Pen(1000)
# Pixels.
SLOT_WIDTH, SLOT_HEIGHT = 58, 22
ROW = 30
CHAR = 7.2
GAP = 20
# Of larger pools only blocks that are ever used are drawn; if they are too many, all as squares.
_MAX_POOL_ROWS = 16
_MAX_SQUARES = 2000
_MAX_SLOTS = 8
_MAX_SEQUENCE_ROWS = 20
_SEQUENCE_GAP = 12
_SUMMARY_ROW = 26
_SQUARE = 14


@dataclass(frozen=True)
class Area:
    """A rectangle of the picture, in pixels."""

    x: float
    y: float
    width: float
    height: float


def label(x: float, y: float, text: str, css: str = "mv-ink", attributes: str = "") -> str:
    """Return one line of text; `y` is its baseline."""
    return f'<text x="{x:g}" y="{y:g}" class="mv-text {css}" {attributes}>{escape(text)}</text>'


def chip(x: float, y: float, name: str, seq_id: int) -> str:
    """Return a name on the colour of its sequence."""
    width = chip_width(name)
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="20" rx="5" '
            f'fill="{fill_of(seq_id)}"/>'
            f'<text x="{x + width / 2:g}" y="{y + 14.5:g}" text-anchor="middle" '
            f'class="mv-text mv-bold" fill="{ink_of(seq_id)}">{escape(name)}</text>')


def chip_width(name: str) -> float:
    """Return how wide `chip` is."""
    return cell_len(name) * CHAR + 14


def slots_shown(block_size: int) -> int:
    """Return how many slots of a block are drawn."""
    return min(block_size, _MAX_SLOTS)


def block_width(block_size: int) -> float:
    """Return how wide a block with its slots is."""
    return slots_shown(block_size) * SLOT_WIDTH


@dataclass(frozen=True)
class PoolArea(Area):
    """Where a pool is drawn.

    Attributes
    ----------
    numbers : tuple of int
        The blocks that are drawn: all, or only those that are ever used.
    as_squares : bool
        Each is a small square, not a row of slots.
    """

    numbers: tuple[int, ...]
    as_squares: bool

    def positions(self) -> dict[int, tuple[float, float]]:
        """Return where each block is drawn: its left edge's middle."""
        if self.as_squares:
            columns = int(self.width // _SQUARE)
            return {number: (self.x + i % columns * _SQUARE,
                             self.y + i // columns * _SQUARE + _SQUARE / 2)
                    for i, number in enumerate(self.numbers)}
        return {number: (self.x, self.y + i * ROW + SLOT_HEIGHT / 2)
                for i, number in enumerate(self.numbers)}


def pool_area(pools: Sequence[PoolState], x: float, y: float, width: float) -> PoolArea:
    """Return where a pool is drawn, given what it is like in each step."""
    numbers = range(min(pools[0].num_blocks, _MAX_SQUARES))
    if len(numbers) > _MAX_POOL_ROWS:
        used = sorted({number for pool in pools for number in pool.blocks})
        if len(used) > _MAX_POOL_ROWS:
            height = cdiv(len(numbers), int(width // _SQUARE)) * _SQUARE
            return PoolArea(x, y, width, height, tuple(numbers), as_squares=True)
        return PoolArea(x, y, width, len(used) * ROW, tuple(used), as_squares=False)
    return PoolArea(x, y, width, len(numbers) * ROW, tuple(numbers), as_squares=False)


def sequences_height(snapshot: Snapshot, as_lines: bool) -> float:
    """Return how high the sequences with blocks are drawn, as lines of squares or as tables."""
    seqs = _seqs_with_blocks(snapshot)
    if as_lines:
        return min(len(seqs), _MAX_SEQUENCE_ROWS) * _SUMMARY_ROW
    rows = sum(_num_rows(seq, snapshot.limits.block_size) for seq in seqs)
    return min(rows * ROW + len(seqs) * _SEQUENCE_GAP, _MAX_SEQUENCE_ROWS * ROW)


def _seqs_with_blocks(snapshot: Snapshot) -> list[SequenceState]:
    return [seq for seq in snapshot.sequences.values() if seq.block_table]


def _num_rows(seq: SequenceState, block_size: int) -> int:
    return max(cdiv(seq.num_tokens, block_size), len(seq.block_table))


def draw_scene(snapshot: Snapshot, left: Area, gpu: PoolArea,
               cpu: PoolArea | None) -> Iterator[str]:
    """Draw the sequences in `left`, the pools at their places, and lines between them."""
    places = {"gpu": gpu.positions()}
    pools = [(snapshot.gpu, gpu)]
    if cpu is not None:
        places["cpu"] = cpu.positions()
        pools.append((snapshot.cpu, cpu))
    if gpu.as_squares:
        yield from _draw_summary(snapshot, left)
    else:
        yield from _draw_sequences(snapshot, left, places)
    for pool, area in pools:
        yield from _draw_pool(snapshot, pool, area)


def _draw_sequences(snapshot: Snapshot, area: Area,
                    places: dict[str, dict[int, tuple[float, float]]]) -> Iterator[str]:
    y = area.y
    seqs = _seqs_with_blocks(snapshot)
    for i, seq in enumerate(seqs):
        height = _num_rows(seq, snapshot.limits.block_size) * ROW
        if y + height > area.y + area.height + ROW:
            yield label(area.x, y + 15, f"… {len(seqs) - i} more sequences", "mv-dim")
            return
        yield from _draw_sequence(snapshot, seq, area, y, places[seq.device or "gpu"])
        y += height + _SEQUENCE_GAP


def _draw_summary(snapshot: Snapshot, area: Area) -> Iterator[str]:
    """Draw a line for each sequence: as many squares as it has blocks."""
    seqs = _seqs_with_blocks(snapshot)
    most = int((area.width - 200) // _SQUARE)
    for i, seq in enumerate(seqs[:_MAX_SEQUENCE_ROWS]):
        y = area.y + i * _SUMMARY_ROW
        if i == _MAX_SEQUENCE_ROWS - 1 and len(seqs) > _MAX_SEQUENCE_ROWS:
            yield label(area.x, y + 15, f"… {len(seqs) - i} more sequences", "mv-dim")
            return
        yield chip(area.x, y, _PEN.fit(seq.name, 8), seq.seq_id)
        squares = "".join(f"M{area.x + 84 + k * _SQUARE:g} {y + 4:g}h12v12h-12z"
                          for k in range(min(len(seq.block_table), most)))
        yield f'<path d="{squares}" fill="{fill_of(seq.seq_id)}"/>'
        x = area.x + 92 + min(len(seq.block_table), most) * _SQUARE
        yield label(x, y + 15, f"{seq.num_tokens} tokens", "mv-dim")


def _draw_sequence(snapshot: Snapshot, seq: SequenceState, area: Area, y: float,
                   places: dict[int, tuple[float, float]]) -> Iterator[str]:
    block_size = snapshot.limits.block_size
    yield chip(area.x, y + 1, seq.name, seq.seq_id)
    slots_x = area.x + area.width - block_width(block_size)
    for i in range(_num_rows(seq, block_size)):
        row_y = y + i * ROW
        yield label(slots_x - 8, row_y + 15, str(i), "mv-dim", 'text-anchor="end"')
        yield from _draw_slots(snapshot, seq, i, slots_x, row_y)
        if i < len(seq.block_table) and seq.block_table[i] in places:
            end_x, end_y = places[seq.block_table[i]]
            yield _link(slots_x + block_width(block_size), row_y + SLOT_HEIGHT / 2, end_x - 28,
                        end_y, seq.seq_id)


def _link(x: float, y: float, end_x: float, end_y: float, seq_id: int) -> str:
    bend = (end_x - x) / 2
    return (f'<path d="M{x + 3:g} {y:g}C{x + bend:g} {y:g} {end_x - bend:g} {end_y:g} {end_x:g} '
            f'{end_y:g}" fill="none" stroke="{fill_of(seq_id)}" stroke-width="2"/>'
            f'<circle cx="{end_x:g}" cy="{end_y:g}" r="3" fill="{fill_of(seq_id)}"/>')


def _draw_slots(snapshot: Snapshot, seq: SequenceState, logical_idx: int, x: float,
                y: float) -> Iterator[str]:
    """Draw a logical block: computed tokens filled, the one to be computed next hollow."""
    block_size = snapshot.limits.block_size
    start, num_slots = logical_idx * block_size, slots_shown(block_size)
    shown = range(start, start + num_slots)
    texts = seq.texts[start:start + num_slots]
    for slot, position in enumerate(shown):
        slot_x = x + slot * SLOT_WIDTH
        text = texts[slot] if slot < len(texts) else None
        if position < seq.num_computed_tokens and text is not None:
            yield _slot(slot_x, y, f'fill="{fill_of(seq.seq_id)}"')
            yield _slot_text(slot_x, y, text, f'fill="{ink_of(seq.seq_id)}"', "")
        elif text is not None:
            yield _slot(slot_x, y, f'fill="none" stroke="{fill_of(seq.seq_id)}" '
                        'stroke-width="1.5" stroke-dasharray="4 3"')
            yield _slot_text(slot_x, y, text, "", "mv-ink")
        else:
            yield _slot(slot_x, y, 'class="mv-line-edge"')


def _slot(x: float, y: float, paint: str) -> str:
    return (f'<rect x="{x + 1:g}" y="{y + 0.5:g}" width="{SLOT_WIDTH - 2:g}" '
            f'height="{SLOT_HEIGHT - 1:g}" rx="3" {paint}/>')


def _slot_text(x: float, y: float, token: str, paint: str, css: str) -> str:
    text = _PEN.fit(_PEN.token(token), int((SLOT_WIDTH - 6) // CHAR))
    return (f'<text x="{x + SLOT_WIDTH / 2:g}" y="{y + 15:g}" text-anchor="middle" '
            f'class="mv-text {css}" {paint}>{escape(text)}</text>')


def _draw_pool(snapshot: Snapshot, pool: PoolState, area: PoolArea) -> Iterator[str]:
    yield label(area.x - 22, area.y - 12, f"{pool.device.upper()} block pool", "mv-ink mv-bold")
    yield label(area.x + 100, area.y - 12, f"{pool.num_free} of {pool.num_blocks} free", "mv-dim")
    if area.as_squares:
        yield from _draw_squares(pool, area)
        return
    for number, (x, y) in area.positions().items():
        yield label(x - 6, y + 4, str(number), "mv-dim", 'text-anchor="end"')
        yield from _draw_block(snapshot, pool.blocks.get(number), x, y)


def _draw_squares(pool: PoolState, area: PoolArea) -> Iterator[str]:
    """Draw each block as a square; those of one colour are one path, to keep the file small."""
    paths: dict[str, list[str]] = {}
    for number, (x, y) in area.positions().items():
        block = pool.blocks.get(number)
        colour = f'fill="{fill_of(block.holders[0][0])}"' if block and block.holders \
            else 'class="mv-line"'
        paths.setdefault(colour, []).append(f"M{x:g} {y - 6:g}h12v12h-12z")
    for colour, squares in paths.items():
        yield f'<path d="{"".join(squares)}" {colour}/>'


def _draw_block(snapshot: Snapshot, block: BlockState | None, x: float, y: float) -> Iterator[str]:
    """Draw a block with its tokens, and to the right of it who holds it."""
    top, block_size = y - SLOT_HEIGHT / 2, snapshot.limits.block_size
    right = x + block_width(block_size) + 6
    if block is None or not block.holders:
        edge = 'class="mv-line-edge"' if block is None else 'class="mv-line"'
        for slot in range(slots_shown(block_size)):
            yield _slot(x + slot * SLOT_WIDTH, top, edge)
        yield label(right, y + 4, "free" if block is None else "cached", "mv-dim")
        return
    seq_id, logical_idx = block.holders[0]
    seq = snapshot.sequences[seq_id]
    if block.ref_count > 1:
        # Those who share a block go on with different tokens, each in a copy.
        seq = replace(seq, num_tokens=min(seq.num_tokens, seq.num_computed_tokens))
    yield from _draw_slots(snapshot, seq, logical_idx, x, top)
    yield label(right, y + 4, _PEN.fit(holder_name(snapshot, block, _PEN), 14),
                "mv-ink mv-bold" if block.ref_count > 1 else "mv-dim")
