"""The whole picture of a step, and the same in one line."""

from rich.text import Text

from minivllm.decisions import Decision, Verdict
from minivllm.tracing.batch import ScheduledRequest
from minivllm.tracing.snapshot import Snapshot
from minivllm.viz.blocks import blocks_legend, draw_blocks
from minivllm.viz.diff import block_moves
from minivllm.viz.pen import BOLD, DIM, Pen, beside, span
from minivllm.viz.picture import Picture
from minivllm.viz.queues import draw_queues
from minivllm.viz.table import draw_tables, table_seqs
from minivllm.viz.why import draw_reasons, held_requests, reasons

# From this width on, tables stand beside queues and pools.
_WIDE = 140
# Of more requests only the first ones are named in the line.
_MAX_NAMES = 6
_MAX_HELD = 3
_MAX_MOVES = 6


def overview(snapshot: Snapshot) -> Picture:
    """Draw the queues, the block pools, the block tables, and why some did not run."""
    return Picture(f"step {snapshot.step}", {"line": line_text(snapshot)},
                   lambda pen: draw_overview(snapshot, pen))


def line(snapshot: Snapshot) -> Picture:
    """Say in one line what the step did, and whom it held back."""
    text = line_text(snapshot)
    return Picture(f"step {snapshot.step}", text, lambda pen: draw_line(snapshot, pen))


def draw_overview(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw all parts, in two columns if there is room."""
    if pen.width < _WIDE:
        parts = [draw_queues(snapshot, pen), draw_blocks(snapshot, pen),
                 draw_tables(snapshot, table_seqs(snapshot), pen)]
    else:
        half = Pen((pen.width - 3) // 2, pen.encoding)
        left = _stacked([draw_queues(snapshot, half), draw_blocks(snapshot, half)])
        right = draw_tables(snapshot, table_seqs(snapshot), half)
        parts = [beside(left, right, half.width)]
    return _stacked([draw_line(snapshot, pen), *parts, *_remarks(snapshot, pen)])


def draw_brief(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw the same without block tables, where they would take too much room."""
    return _stacked([draw_line(snapshot, pen), draw_queues(snapshot, pen),
                     [*draw_blocks(snapshot, pen), *blocks_legend(snapshot, pen)],
                     *_remarks(snapshot, pen)])


def _remarks(snapshot: Snapshot, pen: Pen) -> list[list[Text]]:
    """Return what there is to say: which blocks moved, and why some requests did not run."""
    parts = []
    if moves := list(block_moves(snapshot)):
        lines = [pen.heading("moved", "before the model ran")]
        for move in moves[:_MAX_MOVES]:
            lines += pen.prose(move)
        if len(moves) > _MAX_MOVES:
            lines.append(span(f"{pen.glyphs.more} {len(moves) - _MAX_MOVES} more blocks", DIM))
        parts.append(lines)
    held = {request_id: reasons(snapshot, request_id) for request_id in held_requests(snapshot)}
    if held:
        parts.append(draw_reasons(snapshot, held, pen))
    return parts


def _stacked(parts: list[list[Text]]) -> list[Text]:
    """Return the parts one below the other, an empty line between two."""
    lines = parts[0]
    for part in parts[1:]:
        lines = [*lines, Text(), *part]
    return lines


def draw_line(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw the line, folded where it is too long."""
    step, _, rest = line_text(snapshot).partition("  ")
    return pen.prose(rest, start=span(step, BOLD).append("  "))


def line_text(snapshot: Snapshot) -> str:
    """Return for example ``step 0  prefill r0 r1 | r2 waits: token budget, needs 3, has 2``."""
    parts = [", ".join(_what_ran(snapshot)) or "nothing runs"]
    parts += _who_was_held(snapshot)
    for output in snapshot.outputs:
        if output.finished and output.request_id not in snapshot.ignored:
            reason = output.outputs[0].finish_reason if output.outputs else None
            parts.append(f"{output.request_id} ends: {reason}")
    return f"step {snapshot.step}  {' | '.join(parts)}"


def _what_ran(snapshot: Snapshot) -> list[str]:
    prefills = [_prefill_name(snapshot, request) for request in snapshot.scheduled
                if request.is_prompt]
    decodes = [request.request_id for request in snapshot.scheduled if not request.is_prompt]
    before = snapshot.previous.swapped if snapshot.previous else ()
    swapped_in = [request_id for request_id in before
                  if snapshot.scheduled_request(request_id) is not None]
    return [f"{word} {_names(names)}" for word, names in
            (("swap in", swapped_in), ("prefill", prefills), ("decode", decodes)) if names]


def _prefill_name(snapshot: Snapshot, request: ScheduledRequest) -> str:
    """Return the request's name, and for a chunk of a prompt how much of it is done then."""
    seq = request.seqs[0]
    if request.do_sample and not seq.num_computed_tokens:
        return request.request_id
    done = seq.num_computed_tokens + request.token_chunk_size
    return f"{request.request_id} ({done} of {seq.num_tokens})"


def _who_was_held(snapshot: Snapshot) -> list[str]:
    held = [decision for decision in snapshot.decisions
            if decision.request_id is not None and decision.held_back]
    parts = [_short(decision) for decision in held[:_MAX_HELD]]
    if len(held) > _MAX_HELD:
        parts.append(f"{len(held) - _MAX_HELD} more held back")
    paused = [request_id for request_id in snapshot.running
              if snapshot.scheduled_request(request_id) is None]
    if any(decision.verdict is Verdict.PROMPTS_FIRST for decision in snapshot.decisions) and paused:
        parts.append(f"{_names(paused)} pause{'s' * (len(paused) == 1)}: prompts go first")
    return parts


def _short(decision: Decision) -> str:
    if decision.other is not None:
        whose = "it" if decision.other == decision.request_id else decision.other
        blocks = f"free block{'s' * (decision.need != 1)}"
        return (f"{decision.request_id} {decision.verdict.value}: {whose} wants {decision.need} "
                f"{blocks}, has {decision.have}")
    reserve = f" + {decision.reserve} kept free" if decision.reserve else ""
    return (f"{decision.request_id} {decision.verdict.value}: {decision.check.value}, "
            f"needs {decision.need}{reserve}, has {decision.have}")


def _names(names: list[str]) -> str:
    shown = " ".join(names[:_MAX_NAMES])
    return shown + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
