"""The two block pools as grids: who holds which block, how full it is, who shares it.

Small pools show every block as a box, larger ones as one glyph, very large ones as one glyph for
many blocks.
"""

from collections import Counter
from itertools import groupby
from typing import Any, NamedTuple

from rich.text import Text

from minivllm.tracing.snapshot import BlockState, PoolState, Snapshot
from minivllm.utils import cdiv
from minivllm.viz.pen import BOLD, DIM, Pen, chip, fill_of, span
from minivllm.viz.picture import Picture

# Up to so many blocks each have a box; up to so many rows of glyphs one glyph is one block.
_MAX_BOXES = 32
# So many free blocks in a row share a box.
_MIN_RUN = 4
_MAX_ROWS = 16
# A block of more slots shows its fill as a bar of so many cells.
_MAX_SLOTS = 8


def blocks(snapshot: Snapshot) -> Picture:
    """Draw the GPU block pool, and the CPU block pool if there is one."""
    return Picture(f"block pools after step {snapshot.step}", blocks_data(snapshot),
                   lambda pen: [*draw_blocks(snapshot, pen), *blocks_legend(snapshot, pen)])


def blocks_data(snapshot: Snapshot) -> dict[str, Any]:
    """Return for each pool its size, its free blocks, and the blocks in use or cached."""
    return {pool.device: {
        "num_blocks": pool.num_blocks, "num_free": pool.num_free,
        "blocks": {number: {"holders": [snapshot.sequences[seq_id].name
                                        for seq_id, _ in block.holders],
                            "ref_count": block.ref_count, "num_filled": block.num_filled,
                            "content_hash": block.content_hash}
                   for number, block in pool.blocks.items()}}
        for pool in (snapshot.gpu, snapshot.cpu)}


def draw_blocks(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw both pools; the CPU pool (the swap area) only while something is in it."""
    lines = draw_pool(snapshot, snapshot.gpu, pen)
    if snapshot.cpu.blocks:
        lines += [Text(), *draw_pool(snapshot, snapshot.cpu, pen)]
    return lines


def draw_pool(snapshot: Snapshot, pool: PoolState, pen: Pen) -> list[Text]:
    """Draw one pool."""
    unused = f"{pool.num_free} free" + (f" ({pool.num_cached} of them cached)"
                                        if pool.num_cached else "")
    detail = (f"{pool.num_blocks} blocks of {snapshot.limits.block_size} slots: "
              f"{pool.num_used} used, {unused}")
    heading = pen.heading(f"{pool.device.upper()} block pool", detail)
    cells = _cells(pool)
    if not cells:
        # Pooling requests need no blocks.
        return [heading]
    if len(cells) <= _MAX_BOXES:
        return [heading, *_boxes(snapshot, cells, pen)]
    if pool.num_blocks <= _MAX_ROWS * _row_len(pool, pen):
        return [heading, *_glyph_rows(snapshot, pool, pen, 1), _dense_legend(pen)]
    per_glyph = cdiv(pool.num_blocks, _MAX_ROWS * _row_len(pool, pen))
    return [heading, *_glyph_rows(snapshot, pool, pen, per_glyph),
            span(f"one glyph is {per_glyph} blocks: darker is fuller", DIM),
            *_biggest_holders(snapshot, pool, pen)]


def blocks_legend(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Say what the slots in boxes mean; where there are no boxes the picture says it itself."""
    used = snapshot.gpu.num_used + snapshot.cpu.num_used
    if not used or len(_cells(snapshot.gpu)) > _MAX_BOXES:
        return []
    return pen.wrap([*slot_legend(pen), *sharing_legend(snapshot, pen)])


def slot_legend(pen: Pen) -> list[Text]:
    """Return what the glyphs of slots mean."""
    glyphs = pen.glyphs
    return [span(words, DIM) for words in (
        f"{glyphs.filled} in the cache", f"{glyphs.pending} still to be computed",
        f"{glyphs.empty} empty")]


def sharing_legend(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Return what the count at a shared block means, if there is one."""
    blocks = (*snapshot.gpu.blocks.values(), *snapshot.cpu.blocks.values())
    shared = any(block.ref_count > 1 for block in blocks)
    return [span(f"{pen.glyphs.times}2 shared by two", DIM)] if shared else []


class _Cell(NamedTuple):
    """What a box stands for: a block in use, or some neighbours that are not."""

    first: int
    last: int
    block: BlockState | None

    def numbers(self, pen: Pen) -> str:
        """Return its number, or the first and last one."""
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}{pen.glyphs.none}{self.last}"


def _cells(pool: PoolState) -> list[_Cell]:
    """Return the boxes of a pool; longer runs of free or of cached blocks share one."""
    cells: list[_Cell] = []
    numbers = range(pool.num_blocks)
    for kind, group in groupby(numbers, lambda number: _kind(pool.blocks.get(number))):
        run = list(group)
        if kind != "used" and len(run) >= _MIN_RUN:
            cells.append(_Cell(run[0], run[-1], pool.blocks.get(run[0])))
        else:
            cells += [_Cell(number, number, pool.blocks.get(number)) for number in run]
    return cells


def _kind(block: BlockState | None) -> str:
    if block is None:
        return "free"
    return "used" if block.ref_count else "cached"


def _boxes(snapshot: Snapshot, cells: list[_Cell], pen: Pen) -> list[Text]:
    """Draw each block as a box with its number, holder and slots."""
    labels = [_label(snapshot, cell.block, pen) for cell in cells]
    num_slots = min(snapshot.limits.block_size, _MAX_SLOTS)
    # Words stand where names and slots stand, so only names set the width.
    label_width = max([label.cell_len for label, cell in zip(labels, cells, strict=True)
                       if _kind(cell.block) == "used"] or [4])
    inner = max(label_width + num_slots, max(len(cell.numbers(pen)) for cell in cells) + 2, 7)
    columns = max((pen.width + 1) // (inner + 4), 1)
    columns = cdiv(len(cells), cdiv(len(cells), columns))  # rows of one length
    lines: list[Text] = []
    for start in range(0, len(cells), columns):
        top, middle, bottom = Text(), Text(), Text()
        for cell, content in list(zip(cells, labels, strict=True))[start:start + columns]:
            edge = DIM
            if cell.block is not None and cell.block.ref_count:
                content.append(" " * (label_width - content.cell_len))
                content.append_text(_slots(snapshot, cell.block, num_slots, pen))
                edge = fill_of(cell.block.holders[0][0])
            content.append(" " * (inner - content.cell_len))
            _append_box(top, middle, bottom, cell.numbers(pen), content, inner, edge, pen)
        lines += [top, middle, bottom]
    return lines


def _append_box(top: Text, middle: Text, bottom: Text, numbers: str, content: Text, inner: int,
                edge: str, pen: Pen) -> None:
    glyphs = pen.glyphs
    left_top, right_top, left_bottom, right_bottom = glyphs.corners
    gap = " " if top.cell_len else ""
    top.append(gap).append(f"{left_top}{glyphs.rule} ", edge).append(numbers, BOLD)
    top.append(f" {glyphs.rule * (inner - len(numbers) - 2)}{right_top}", edge)
    middle.append(gap).append(f"{glyphs.side}", edge).append_text(content)
    middle.append(f" {glyphs.side}", edge)
    bottom.append(gap).append(f"{left_bottom}{glyphs.rule * (inner + 1)}{right_bottom}", edge)


def _label(snapshot: Snapshot, block: BlockState | None, pen: Pen) -> Text:
    """Return who holds a block, and how often it is shared."""
    if block is None:
        return span(" free", DIM)
    if not block.ref_count:
        return span(" cached", DIM)
    return chip(holder_name(snapshot, block, pen), block.holders[0][0])


def holder_name(snapshot: Snapshot, block: BlockState, pen: Pen) -> str:
    """Return the sequence that holds a block; if several do, their requests and the count."""
    seqs = [snapshot.sequences[seq_id] for seq_id, _ in block.holders]
    if len(seqs) == 1:
        return pen.fit(seqs[0].name, 12)
    requests = dict.fromkeys(seq.request_id for seq in seqs)
    return f"{pen.fit('+'.join(requests), 12)} {pen.glyphs.times}{block.ref_count}"


def _slots(snapshot: Snapshot, block: BlockState, num_slots: int, pen: Pen) -> Text:
    """Return the fill of a block, shared ones in the colours of all who hold it."""
    glyphs, block_size = pen.glyphs, snapshot.limits.block_size
    text = Text()
    num_filled = cdiv(block.num_filled * num_slots, block_size)
    for i in range(num_slots):
        seq_id, logical_idx = block.holders[i % len(block.holders)]
        num_tokens = snapshot.sequences[seq_id].num_tokens - logical_idx * block_size
        pending = num_slots == block_size and block.num_filled <= i < num_tokens
        glyph = glyphs.filled if i < num_filled else glyphs.pending if pending else glyphs.empty
        text.append(glyph, DIM if glyph == glyphs.empty else fill_of(seq_id))
    return text


def _row_len(pool: PoolState, pen: Pen) -> int:
    """Return how many glyphs stand in a row: a round number, after the number of its first."""
    room = max(pen.width - len(str(pool.num_blocks)) - 2, 10)
    return max(size for size in (10, 20, 32, 50, 64, 100, 128, 150) if size <= room)


def _glyph_rows(snapshot: Snapshot, pool: PoolState, pen: Pen, per_glyph: int) -> list[Text]:
    row_blocks = _row_len(pool, pen) * per_glyph
    number_width = len(str(pool.num_blocks))
    lines = []
    for start in range(0, pool.num_blocks, row_blocks):
        line = span(f"{start:>{number_width}}  ", DIM)
        for first in range(start, min(start + row_blocks, pool.num_blocks), per_glyph):
            if per_glyph == 1:
                line.append_text(_dense_glyph(snapshot, pool.blocks.get(first), pen))
                continue
            used = sum(1 for number in range(first, first + per_glyph)
                       if number in pool.blocks and pool.blocks[number].ref_count)
            line.append(pen.glyphs.shades[cdiv(used * 4, per_glyph)])
        lines.append(line)
    return lines


def _dense_glyph(snapshot: Snapshot, block: BlockState | None, pen: Pen) -> Text:
    glyphs = pen.glyphs
    if block is None:
        return span(glyphs.empty, DIM)
    if not block.ref_count:
        return span(glyphs.cached, DIM)
    colour = fill_of(block.holders[0][0])
    if block.ref_count > 1:
        return span(str(block.ref_count) if block.ref_count < 10 else glyphs.times, colour)
    full = block.num_filled == snapshot.limits.block_size
    return span(glyphs.full if full else glyphs.partial, colour)


def _dense_legend(pen: Pen) -> Text:
    glyphs = pen.glyphs
    return span(f"{glyphs.full} full  {glyphs.partial} partly filled  2 shared by two  "
                f"{glyphs.cached} cached, unused  {glyphs.empty} free", DIM)


def _biggest_holders(snapshot: Snapshot, pool: PoolState, pen: Pen) -> list[Text]:
    counts = Counter(seq_id for block in pool.blocks.values() for seq_id, _ in block.holders)
    pieces = [chip(pen.fit(snapshot.sequences[seq_id].name, 16), seq_id).append(f" {count}", DIM)
              for seq_id, count in counts.most_common(pen.width)]
    return pen.wrap(pieces, indent=13, max_lines=2, start=span("most blocks  ", DIM),
                    total=len(counts))
