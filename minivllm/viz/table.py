"""Block tables: which physical block holds which logical one, and the tokens in them."""

from typing import Any

from rich.text import Text

from minivllm.tracing.snapshot import SequenceState, Snapshot
from minivllm.utils import cdiv
from minivllm.viz.blocks import sharing_legend, slot_legend
from minivllm.viz.pen import BOLD, DIM, Pen, chip, fill_of, span
from minivllm.viz.picture import Picture

# Of a longer table the first and last rows are shown, of more sequences those that fit.
_MAX_ROWS = 16
_MAX_LINES = 40
_MAX_SLOTS = 8


def table(snapshot: Snapshot, name: str | None = None) -> Picture:
    """Draw the block tables of one sequence or request, or of all that have one."""
    seqs = table_seqs(snapshot, name)
    return Picture(f"block tables after step {snapshot.step}",
                   [_data(seq, snapshot.limits.block_size) for seq in seqs],
                   lambda pen: draw_tables(snapshot, seqs, pen))


def table_seqs(snapshot: Snapshot, name: str | None = None) -> list[SequenceState]:
    """Return the sequences that `table` shows."""
    if name is not None:
        return snapshot.find(name)
    return [seq for seq in snapshot.sequences.values() if seq.block_table]


def _data(seq: SequenceState, block_size: int) -> dict[str, Any]:
    rows = [{"logical": i, "physical": seq.block_table[i] if i < len(seq.block_table) else None,
             "tokens": list(seq.texts[i * block_size:(i + 1) * block_size])}
            for i in range(_num_rows(seq, block_size))]
    return {"name": seq.name, "device": seq.device, "num_tokens": seq.num_tokens,
            "num_computed_tokens": seq.num_computed_tokens, "rows": rows}


def draw_tables(snapshot: Snapshot, seqs: list[SequenceState], pen: Pen) -> list[Text]:
    """Draw the tables one below the other, then what the glyphs mean."""
    lines = [pen.heading("block tables", "logical block, physical block, its tokens")]
    for i, seq in enumerate(seqs):
        drawn = draw_table(snapshot, seq, pen)
        if i and len(lines) + len(drawn) > _MAX_LINES:
            lines.append(span(f"{pen.glyphs.more} {len(seqs) - i} more sequences", DIM))
            break
        lines += drawn
    if not seqs:
        return [*lines, span("no sequence has blocks", DIM)]
    return [*lines, *table_legend(snapshot, pen)]


def draw_table(snapshot: Snapshot, seq: SequenceState, pen: Pen) -> list[Text]:
    """Draw one sequence's table: a row for each logical block."""
    num_output = seq.num_tokens - seq.num_prompt_tokens
    counts = f" {seq.num_prompt_tokens} prompt + {num_output} output tokens"
    state = seq.finish_reason or seq.status.lower()
    title = chip(pen.fit(seq.name, 24), seq.seq_id)
    title.append(pen.fit(f"{counts}, {seq.num_computed_tokens} in the cache, {state}",
                         max(pen.width - title.cell_len, 0)), DIM)
    num_rows = _num_rows(seq, snapshot.limits.block_size)
    if num_rows <= _MAX_ROWS:
        return [title, *(_row(snapshot, seq, i, pen) for i in range(num_rows))]
    half = _MAX_ROWS // 2
    return [title, *(_row(snapshot, seq, i, pen) for i in range(half)),
            span(f"     {pen.glyphs.more} {num_rows - 2 * half} more", DIM),
            *(_row(snapshot, seq, i, pen) for i in range(num_rows - half, num_rows))]


def _num_rows(seq: SequenceState, block_size: int) -> int:
    return max(cdiv(seq.num_tokens, block_size), len(seq.block_table))


def _row(snapshot: Snapshot, seq: SequenceState, logical_idx: int, pen: Pen) -> Text:
    glyphs = pen.glyphs
    line = Text(f"{logical_idx:>5} ").append(f"{glyphs.arrow} ", DIM)
    if logical_idx < len(seq.block_table):
        line.append_text(_physical(snapshot, seq, seq.block_table[logical_idx], pen))
    else:
        line.append(glyphs.none, DIM)
    line.append(" " * max(19 - line.cell_len, 1))
    line.append_text(_fill(snapshot, seq, logical_idx, pen)).append("  ")
    return line.append_text(_tokens(snapshot, seq, logical_idx, pen.width - line.cell_len, pen))


def _physical(snapshot: Snapshot, seq: SequenceState, number: int, pen: Pen) -> Text:
    """Return a physical block's number, with its count if it is shared."""
    pool = snapshot.gpu if seq.device == "gpu" else snapshot.cpu
    text = span(f"{'cpu ' if seq.device == 'cpu' else ''}{number}", BOLD)
    block = pool.blocks.get(number)
    if block is not None and block.ref_count > 1:
        text.append(f" {pen.glyphs.times}{block.ref_count}")
    return text


def _fill(snapshot: Snapshot, seq: SequenceState, logical_idx: int, pen: Pen) -> Text:
    """Return the slots of a block as glyphs, those of a large block as a count."""
    glyphs, block_size = pen.glyphs, snapshot.limits.block_size
    filled = seq.num_filled(logical_idx, block_size) if seq.block_table else 0
    held = min(max(seq.num_tokens - logical_idx * block_size, 0), block_size)
    if block_size > _MAX_SLOTS:
        return span(f"{filled:>3}/{block_size}", DIM)
    text = span(glyphs.filled * filled, fill_of(seq.seq_id))
    text.append(glyphs.pending * (held - filled), fill_of(seq.seq_id))
    return text.append(glyphs.empty * (block_size - held), DIM)


def _tokens(snapshot: Snapshot, seq: SequenceState, logical_idx: int, width: int,
            pen: Pen) -> Text:
    """Return the tokens of a logical block, output tokens marked and in bold."""
    block_size = snapshot.limits.block_size
    start = logical_idx * block_size
    texts = seq.texts[start:start + block_size]
    text = Text()
    for i, token in enumerate(texts, start):
        is_output = i >= seq.num_prompt_tokens
        piece = span(f" {pen.glyphs.separator} " if i > start else "", DIM)
        mark = pen.glyphs.output if i == seq.num_prompt_tokens else ""
        piece.append(mark + pen.token(token), BOLD if is_output else "")
        if text.cell_len + piece.cell_len > width - 2 * (i < start + len(texts) - 1):
            return text.append(f" {pen.glyphs.more}"[:max(width - text.cell_len, 0)], DIM)
        text.append_text(piece)
    return text


def table_legend(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Say what the glyphs of a table mean."""
    return pen.wrap([*slot_legend(pen), span(f"{pen.glyphs.output} output starts", DIM),
                     *sharing_legend(snapshot, pen)])
