"""What a decoding token reads: the slots of its sequence's blocks, with their softmax weights."""

from typing import Any

from rich.text import Text

from minivllm.tracing.batch import AttentionState, ScheduledSequence
from minivllm.tracing.snapshot import SequenceState, Snapshot
from minivllm.viz.pen import BOLD, DIM, Pen, chip, fill_of, span
from minivllm.viz.picture import Picture

_MAX_ROWS = 24
_BAR_CELLS = 10


def attention(snapshot: Snapshot, name: str | None = None) -> Picture:
    """Draw the recorded attention of one sequence or request, or of all that decoded."""
    state = snapshot.attention_weights
    if state is None:
        raise ValueError(
            "no attention has been recorded in this step: give the engine "
            "attention_backend=record_attention(layer, head) from minivllm.tracing.attention, and "
            "look at a step that decodes.")
    seqs = list(snapshot.sequences.values()) if name is None else snapshot.find(name)
    ran = {seq.seq_id: seq for request in snapshot.scheduled for seq in request.seqs}
    shown = [(seq, ran[seq.seq_id]) for seq in seqs if seq.seq_id in state.weights]
    if not shown:
        raise ValueError(f"{name} did not decode in step {snapshot.step}.")
    data = {seq.name: _data(seq, before, state.weights[seq.seq_id], snapshot.limits.block_size)
            for seq, before in shown}
    return Picture(f"attention in step {snapshot.step}", data,
                   lambda pen: draw_attention(snapshot, state, shown, pen))


def _data(seq: SequenceState, before: ScheduledSequence, weights: tuple[float, ...],
          block_size: int) -> list[dict[str, Any]]:
    return [{"block": before.block_table[i // block_size], "offset": i % block_size,
             "token": seq.texts[i], "weight": weight} for i, weight in enumerate(weights)]


def draw_attention(snapshot: Snapshot, state: AttentionState,
                   seqs: list[tuple[SequenceState, ScheduledSequence]], pen: Pen) -> list[Text]:
    """Draw a row for each block: its share of the attention, and that of its tokens."""
    lines = [pen.heading("attention", f"step {snapshot.step}, layer {state.layer}, head "
                                      f"{state.head}: which slots the newest token reads")]
    block_size = snapshot.limits.block_size
    for seq, before in seqs:
        weights = state.weights[seq.seq_id]
        title = chip(pen.fit(seq.name, 24), seq.seq_id)
        newest = pen.token(seq.texts[len(weights) - 1])
        lines.append(title.append(pen.fit(f" {newest} reads {len(weights)} slots",
                                          pen.width - title.cell_len), DIM))
        rows = range(0, len(weights), block_size)
        for start in rows[:_MAX_ROWS]:
            lines.append(_row(seq, before, start, weights[start:start + block_size],
                              block_size, pen))
        if len(rows) > _MAX_ROWS:
            lines.append(span(f"     {pen.glyphs.more} {len(rows) - _MAX_ROWS} more blocks", DIM))
    return lines


def _row(seq: SequenceState, before: ScheduledSequence, start: int, weights: tuple[float, ...],
         block_size: int, pen: Pen) -> Text:
    glyphs, logical_idx = pen.glyphs, start // block_size
    line = Text(f"{logical_idx:>5} ").append(f"{glyphs.arrow} ", DIM)
    line.append(str(before.block_table[logical_idx]), BOLD)
    line.append(" " * max(13 - line.cell_len, 1))
    share = sum(weights)
    line.append(_bar(share, pen), fill_of(seq.seq_id)).append(f" {share:>4.0%}  ")
    for i, weight in enumerate(weights):
        piece = span(f" {glyphs.separator} " if i else "", DIM)
        piece.append(pen.token(seq.texts[start + i])).append(f" {weight:.0%}", BOLD)
        if line.cell_len + piece.cell_len > pen.width - 2 * (i < len(weights) - 1):
            return line.append(f" {glyphs.more}"[:max(pen.width - line.cell_len, 0)], DIM)
        line.append_text(piece)
    return line


def _bar(share: float, pen: Pen) -> str:
    """Return a bar of up to ten cells; what is read at all can be seen."""
    cells = max(round(share * _BAR_CELLS), int(share > 0))
    return (pen.glyphs.full * cells).ljust(_BAR_CELLS)
