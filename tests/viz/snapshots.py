"""Snapshots made by hand, so that pictures can be tested without an engine."""

from collections.abc import Iterable

from minivllm.tracing.batch import ScheduledRequest, ScheduledSequence
from minivllm.tracing.snapshot import (
    BlockState,
    Limits,
    PoolState,
    SequenceState,
    Snapshot,
    TokenLog,
    holders_of,
)

PROMPTS = {
    "r0": ["Hello", ",", " my", " name", " is"],
    "r1": ["The", " future", " of", " AI", " is"],
    "r2": ["The", " life", " is"],
}
OUTPUTS = {"r0": [" Ada", "."], "r1": [" bright"], "r2": [" good"]}

LIMITS = Limits(block_size=4, num_gpu_blocks=5, num_cpu_blocks=4, max_num_seqs=8,
                max_num_batched_tokens=12, max_model_len=12)


def make_seq(name: str, num_tokens: int, num_computed: int, table: Iterable[int] = (),
             status: str = "RUNNING", *, seq_id: int | None = None, texts: list[str] | None = None,
             num_prompt: int | None = None, device: str = "gpu") -> SequenceState:
    """Return a sequence; ``r1.0`` is one of request ``r1``."""
    request_id = name.split(".")[0]
    if texts is None:
        texts = PROMPTS[request_id] + OUTPUTS[request_id]
        num_prompt = len(PROMPTS[request_id])
    table = tuple(table)
    return SequenceState(
        seq_id=int(request_id[1:]) if seq_id is None else seq_id, name=name, status=status,
        num_tokens=num_tokens, num_computed_tokens=num_computed,
        device=device if table else None, block_table=table, cumulative_logprob=0.0,
        finish_reason=None,
        log=TokenLog(request_id, num_tokens if num_prompt is None else num_prompt,
                     list(range(len(texts))), texts))


def make_pool(device: str, seqs: dict[int, SequenceState], num_blocks: int, block_size: int,
              cached: Iterable[int] = ()) -> PoolState:
    """Return the pool that the tables of `seqs` imply."""
    blocks = {number: BlockState(number, 0, 1, block_size, ()) for number in cached}
    for number, seq, logical_idx in holders_of(seqs, device):
        block = blocks.get(number)
        holders = (block.holders if block else ()) + ((seq.seq_id, logical_idx),)
        filled = max(block.num_filled if block else 0, seq.num_filled(logical_idx, block_size))
        blocks[number] = BlockState(number, len(holders), None, filled, holders)
    used = sum(block.ref_count > 0 for block in blocks.values())
    return PoolState(device, num_blocks, num_blocks - used, dict(sorted(blocks.items())))


def make_snapshot(step: int, seqs: Iterable[SequenceState], limits: Limits = LIMITS,
                  cached: Iterable[int] = (), **fields: object) -> Snapshot:
    """Return a snapshot whose pools follow from the tables of `seqs`."""
    by_id = {seq.seq_id: seq for seq in seqs}
    queues = {status: tuple(dict.fromkeys(seq.request_id for seq in by_id.values()
                                          if seq.status == status))
              for status in ("WAITING", "RUNNING", "SWAPPED")}
    return Snapshot(
        step=step, limits=limits, waiting=queues["WAITING"], running=queues["RUNNING"],
        swapped=queues["SWAPPED"], sequences=by_id,
        gpu=make_pool("gpu", by_id, limits.num_gpu_blocks, limits.block_size, cached),
        cpu=make_pool("cpu", by_id, limits.num_cpu_blocks, limits.block_size),
        **fields)  # type: ignore[arg-type]


def make_scheduled(seq: SequenceState, is_prompt: bool, chunk: int) -> ScheduledRequest:
    """Return a batch entry of one sequence, as it was before the step."""
    before = seq.num_computed_tokens - chunk
    return ScheduledRequest(seq.request_id, is_prompt, chunk, True,
                            (ScheduledSequence(seq.seq_id, seq.num_tokens - 1, before,
                                               seq.block_table),))


def classic() -> list[Snapshot]:
    """Return the first three steps of the classic example with 5 blocks."""
    r0, r1 = make_seq("r0", 6, 5, (4, 3)), make_seq("r1", 6, 5, (2, 1))
    first = make_snapshot(0, [r0, r1, make_seq("r2", 3, 0, status="WAITING")],
                          scheduled=(make_scheduled(r0, True, 5), make_scheduled(r1, True, 5)))
    r2 = make_seq("r2", 4, 3, (0,))
    second = make_snapshot(1, [r0, r1, r2], scheduled=(make_scheduled(r2, True, 3),),
                           previous=first)
    r0, r1 = make_seq("r0", 7, 6, (4, 3)), make_seq("r1", 7, 6, (2, 1))
    third = make_snapshot(2, [r0, r1, make_seq("r2", 4, 0, status="WAITING")],
                          scheduled=(make_scheduled(r0, False, 1), make_scheduled(r1, False, 1)),
                          preempted=("r2",), previous=second)
    return [first, second, third]
