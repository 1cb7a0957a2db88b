"""The scheduler's three queues, head on the left."""

from typing import Any

from rich.text import Text

from minivllm.tracing.snapshot import Snapshot
from minivllm.viz.pen import BOLD, DIM, Pen, chip, span
from minivllm.viz.picture import Picture

_LINES_PER_QUEUE = 3


def queues(snapshot: Snapshot) -> Picture:
    """Draw which requests wait, run and are swapped out after the step."""
    return Picture(f"queues after step {snapshot.step}", queues_data(snapshot),
                   lambda pen: draw_queues(snapshot, pen))


def queues_data(snapshot: Snapshot) -> dict[str, Any]:
    """Return the queues as lists of request ids."""
    return {"waiting": list(snapshot.waiting), "running": list(snapshot.running),
            "swapped": list(snapshot.swapped)}


def draw_queues(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw the three queues, the longest ones cut."""
    lines = [pen.heading("queues", f"after step {snapshot.step}, head on the left")]
    by_request: dict[str, list[int]] = {}
    for seq in snapshot.sequences.values():
        if seq.finish_reason is None:
            by_request.setdefault(seq.request_id, []).append(seq.seq_id)
    for name, request_ids in queues_data(snapshot).items():
        label = span(f"{name:9}", BOLD)
        if not request_ids:
            lines.append(label.append(pen.glyphs.none, DIM))
            continue
        # No chip is narrower than three cells: more than these cannot show.
        shown = request_ids[:pen.width]
        pieces = [_request(snapshot, request_id, by_request[request_id], pen)
                  for request_id in shown]
        if sum(piece.cell_len + 2 for piece in pieces) > _LINES_PER_QUEUE * (pen.width - 9):
            pieces = [chip(pen.fit(request_id, 16), by_request[request_id][0])
                      for request_id in shown]
        lines += pen.wrap(pieces, indent=9, max_lines=_LINES_PER_QUEUE, start=label,
                          total=len(request_ids))
    return lines


def _request(snapshot: Snapshot, request_id: str, seq_ids: list[int], pen: Pen) -> Text:
    """Return a request as a chip and its size in words."""
    seqs = [snapshot.sequences[seq_id] for seq_id in seq_ids]
    size = f" {sum(seq.num_tokens for seq in seqs)} tokens"
    if len(seqs) > 1:
        size = f" {pen.glyphs.times}{len(seqs)}{size}"
    blocks = {number for seq in seqs for number in seq.block_table}
    if blocks:
        size += f", {len(blocks)} block{'s' * (len(blocks) > 1)}"
    return chip(pen.fit(request_id, 24), seq_ids[0]).append(size, DIM)
