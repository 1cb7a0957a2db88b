"""What a step changed: queue moves, tokens, blocks, swaps and copies, in words."""

from collections.abc import Iterator

from rich.text import Text

from minivllm.tracing.snapshot import SequenceState, Snapshot
from minivllm.viz.pen import BOLD, DIM, Pen, span
from minivllm.viz.picture import Picture

_MAX_LINES_PER_PART = 12


def diff(snapshot: Snapshot) -> Picture:
    """Draw what the step changed, compared with the snapshot before it."""
    return Picture(f"what step {snapshot.step} changed", diff_data(snapshot),
                   lambda pen: draw_diff(snapshot, pen))


def diff_data(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the changes as sentences, by part."""
    parts = {"queues": list(_queue_moves(snapshot)), "tokens": list(_token_changes(snapshot)),
             "blocks": list(_block_changes(snapshot)), "moved": list(block_moves(snapshot))}
    return {name: sentences for name, sentences in parts.items() if sentences}


def draw_diff(snapshot: Snapshot, pen: Pen) -> list[Text]:
    """Draw the changes, each part's first ones."""
    before = snapshot.previous
    title = f"step {before.step} {pen.glyphs.arrow} " if before else ""
    lines = [pen.heading(f"{title}step {snapshot.step}", "what changed")]
    for name, sentences in diff_data(snapshot).items():
        for i, sentence in enumerate(sentences[:_MAX_LINES_PER_PART]):
            line = span(f"{name if i == 0 else '':8}", BOLD)
            lines += pen.prose(sentence, start=line)
        if len(sentences) > _MAX_LINES_PER_PART:
            rest = len(sentences) - _MAX_LINES_PER_PART
            lines.append(span(f"{'':8}{pen.glyphs.more} {rest} more", DIM))
    return lines if len(lines) > 1 else [*lines, span("nothing", DIM)]


def _places(snapshot: Snapshot | None) -> dict[str, str]:
    """Return request -> queue."""
    if snapshot is None:
        return {}
    return {request_id: name for name in ("waiting", "running", "swapped")
            for request_id in getattr(snapshot, name)}


def _queue_moves(snapshot: Snapshot) -> Iterator[str]:
    before, after = _places(snapshot.previous), _places(snapshot)
    ends = {output.request_id: output.outputs[0].finish_reason if output.outputs else None
            for output in snapshot.outputs if output.finished}
    for request_id in dict.fromkeys((*before, *after, *ends)):
        old, new = before.get(request_id), after.get(request_id)
        if request_id in ends:
            yield f"{request_id} is finished ({ends[request_id]})"
        elif request_id in snapshot.aborted:
            yield f"{request_id} has been aborted"
        elif request_id in snapshot.preempted:
            yield f"{request_id} is preempted: {old or 'running'} -> {new}"
        elif old is None:
            yield f"{request_id} arrives: {new}"
        elif old != new:
            yield f"{request_id}: {old} -> {new}"


def _token_changes(snapshot: Snapshot) -> Iterator[str]:
    before = snapshot.previous.sequences if snapshot.previous else {}
    for seq in snapshot.sequences.values():
        ran = _scheduled_seq(snapshot, seq)
        if ran is None:
            if seq.seq_id not in before and seq.num_tokens > seq.num_prompt_tokens:
                yield f"{seq.name} is a new branch, with {_last_token(seq)}"
            continue
        request = snapshot.scheduled_request(seq.request_id)
        chunk = request.token_chunk_size if request else 0
        got = seq.num_tokens - ran
        computed = f"{seq.name} computes {chunk} token{'s' * (chunk != 1)}"
        yield f"{computed}, gets {_last_token(seq)}" if got else f"{computed}, gets none yet"


def _scheduled_seq(snapshot: Snapshot, seq: SequenceState) -> int | None:
    """Return how many tokens `seq` had when it was scheduled in this step."""
    request = snapshot.scheduled_request(seq.request_id)
    for ran in request.seqs if request else ():
        if ran.seq_id == seq.seq_id:
            return ran.num_tokens
    return None


def _last_token(seq: SequenceState) -> str:
    return f"{seq.texts[-1]!r}"


def _block_changes(snapshot: Snapshot) -> Iterator[str]:
    before = snapshot.previous.sequences if snapshot.previous else {}
    for seq_id in dict.fromkeys((*before, *snapshot.sequences)):
        old, new = before.get(seq_id), snapshot.sequences.get(seq_id)
        seq = new or old
        if seq is None:
            continue
        had = set(old.block_table) if old and old.device == seq.device else set()
        has = set(new.block_table) if new else set()
        if taken := [number for number in seq.block_table if number in has - had]:
            yield f"{seq.name} takes {_numbers(taken)}"
        if old and (given := [number for number in old.block_table if number not in has]):
            yield f"{seq.name} gives back {_numbers(given)}"
    if snapshot.previous and snapshot.previous.gpu.num_free != snapshot.gpu.num_free:
        yield f"free GPU blocks: {snapshot.previous.gpu.num_free} -> {snapshot.gpu.num_free}"


def _numbers(numbers: list[int]) -> str:
    return f"block{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def block_moves(snapshot: Snapshot) -> Iterator[str]:
    """Yield what was swapped and copied, and for whom."""
    tables = {ran.seq_id: ran.block_table for request in snapshot.scheduled for ran in request.seqs}
    names = {seq_id: snapshot.sequences[seq_id].name for seq_id in tables
             if seq_id in snapshot.sequences}
    for source, destination in snapshot.blocks_to_swap_out:
        yield f"swap out: GPU block {source} -> CPU block {destination}"
    for source, destination in snapshot.blocks_to_swap_in:
        yield f"swap in: CPU block {source} -> GPU block {destination}"
    for source, destination in snapshot.blocks_to_copy:
        writers = [names[i] for i, table in tables.items() if destination in table and i in names]
        sharers = [names[i] for i, table in tables.items() if source in table and i in names]
        yield (f"copy on write: block {source} -> {destination}; {' and '.join(writers) or 'one'} "
               f"is about to write into a block that {' and '.join(sharers) or 'another'} still "
               "needs")
