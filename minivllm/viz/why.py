"""Why a request ran in a step, or did not: logged decisions, and what follows from them."""

from rich.text import Text

from minivllm.decisions import Decision, Verdict, sentence
from minivllm.tracing.snapshot import Snapshot
from minivllm.viz.pen import BOLD, DIM, Pen, chip, span
from minivllm.viz.picture import Picture

_QUEUE_RULES = {
    "waiting": (Verdict.SWAPPED_FIRST, Verdict.PROMPTS_DELAYED),
    "running": (Verdict.PROMPTS_FIRST,),
    "swapped": (Verdict.PROMPTS_FIRST, Verdict.NO_SWAP_IN),
}
_HELD_AT_HEAD = {
    "waiting": (Verdict.WAITS, "waits"),
    "running": (Verdict.PAUSES, "pauses"),
    "swapped": (Verdict.STAYS_SWAPPED, "stays swapped"),
}
_MAX_REASONS = 8
# What is said of a step that a faulty scheduler, or somebody's own block manager, has made.
NO_REASON = "does not run, and no decision says why."


def why(snapshot: Snapshot, name: str | None = None) -> Picture:
    """Say why one request ran or did not; without a name, why those did not that did not."""
    if name is None:
        request_ids = held_requests(snapshot)
        title = f"why in step {snapshot.step}"
    else:
        request_ids = [_request_id(snapshot, name)]
        title = f"why {name} in step {snapshot.step}"
    data = {request_id: reasons(snapshot, request_id) for request_id in request_ids}
    return Picture(title, data, lambda pen: draw_reasons(snapshot, data, pen))


def _request_id(snapshot: Snapshot, name: str) -> str:
    # Ignored and aborted requests have no sequences any more, but reasons.
    if name in snapshot.ignored or name in snapshot.aborted:
        return name
    return snapshot.find(name)[0].request_id


def draw_reasons(snapshot: Snapshot, data: dict[str, list[str]], pen: Pen) -> list[Text]:
    """Draw the reasons, each request's after its name."""
    lines = [pen.heading("why", f"in step {snapshot.step}")]
    same: dict[str, list[str]] = {}
    for request_id, sentences in data.items():
        for reason in sentences:
            same.setdefault(reason, []).append(request_id)
    for reason, request_ids in list(same.items())[:_MAX_REASONS]:
        chips = [_chip(snapshot, request_id, pen) for request_id in request_ids]
        words = reason.removeprefix(f"{request_ids[0]} ")
        if sum(chip.cell_len + 1 for chip in chips) < pen.width // 2:
            lines += pen.prose(words, start=Text(" ").join(chips).append(" "))
        else:
            lines += pen.wrap(chips, gap=" ", max_lines=2)
            lines += pen.prose(words, start=Text("  "))
    if len(same) > _MAX_REASONS:
        lines.append(span(f"{pen.glyphs.more} {len(same) - _MAX_REASONS} more", DIM))
    if data:
        return lines
    moved = snapshot.blocks_to_copy or snapshot.blocks_to_swap_in
    diff = "; diff says which blocks were moved" if moved else ""
    return [*lines, span(f"every unfinished request ran{diff}", DIM)]


def _chip(snapshot: Snapshot, request_id: str, pen: Pen) -> Text:
    seqs, name = snapshot.seqs_of(request_id), pen.fit(request_id, 16)
    return chip(name, seqs[0].seq_id) if seqs else span(f" {name} ", BOLD)


def held_requests(snapshot: Snapshot) -> list[str]:
    """Return the requests that did not run in the step, unfinished or given up."""
    ran = {request.request_id for request in snapshot.scheduled}
    queued = (*snapshot.running, *snapshot.swapped, *snapshot.waiting, *snapshot.ignored)
    return [request_id for request_id in dict.fromkeys(queued) if request_id not in ran]


def reasons(snapshot: Snapshot, request_id: str) -> list[str]:
    """Return why `request_id` ran or did not, in sentences; the first ones are logged decisions."""
    logged = [sentence(decision, took(snapshot, decision)) for decision in snapshot.decisions
              if decision.request_id == request_id]
    request = snapshot.scheduled_request(request_id)
    if request is not None:
        stage = "prefill" if request.is_prompt else "decode"
        tokens = f"{request.token_chunk_size} token{'s' * (request.token_chunk_size != 1)}"
        where = f" in each of {len(request.seqs)} sequences" if len(request.seqs) > 1 else ""
        return [*logged, f"{request_id} runs: {stage} of {tokens}{where}."]
    return logged or [_derived_reason(snapshot, request_id)]


def took(snapshot: Snapshot, decision: Decision) -> list[str]:
    """Return the requests that were scheduled before `decision`: they took what it lacked."""
    if decision.verdict in (Verdict.WAITS, Verdict.STAYS_SWAPPED, Verdict.PAUSES):
        return [request.request_id for request in snapshot.scheduled]
    return []


def _derived_reason(snapshot: Snapshot, request_id: str) -> str:
    """Return the reason of a request that no decision names: a rule, or who stands before it."""
    for queue in ("waiting", "running", "swapped"):
        members: tuple[str, ...] = getattr(snapshot, queue)
        if request_id not in members:
            continue
        for decision in snapshot.decisions:
            if decision.request_id is None and decision.verdict in _QUEUE_RULES[queue]:
                return sentence(decision)
        verdict, word = _HELD_AT_HEAD[queue]
        held = {decision.request_id for decision in snapshot.decisions
                if decision.verdict is verdict}
        before = [other for other in members[:members.index(request_id)] if other in held]
        if before:
            return f"{request_id} {word} behind {before[-1]}."
    if request_id in snapshot.aborted:
        return f"{request_id} has been aborted."
    return f"{request_id} {NO_REASON}"
