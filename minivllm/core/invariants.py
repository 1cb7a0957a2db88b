"""What must hold after every step, whatever was decided; tests check it."""

from collections import Counter, defaultdict

from minivllm.core.interfaces import BlockSpaceManager
from minivllm.core.scheduler import Scheduler
from minivllm.sequence import Sequence, SequenceStatus
from minivllm.utils import Device, InternalError


class BrokenInvariantError(InternalError):
    """The queues, the block tables and the pools contradict each other."""


def check_invariants(scheduler: Scheduler) -> None:
    """Check that queues, block tables and pools fit together.

    Raises
    ------
    BrokenInvariantError
        If they do not; says which block or request.
    """
    check_queues(scheduler)
    check_pools(scheduler.block_manager)
    check_tables(scheduler)
    check_sharing(scheduler)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise BrokenInvariantError(message)


def check_queues(scheduler: Scheduler) -> None:
    """Every request is in one queue, and its unfinished sequences are in that state."""
    statuses = [(scheduler.waiting, SequenceStatus.WAITING),
                (scheduler.running, SequenceStatus.RUNNING),
                (scheduler.swapped, SequenceStatus.SWAPPED)]
    groups = [group for queue, _ in statuses for group in queue]
    for request_id, times in Counter(group.request_id for group in groups).items():
        _require(times == 1, f"Request {request_id} is queued {times} times.")
    for queue, status in statuses:
        for group in queue:
            seqs = group.get_unfinished_seqs()
            _require(bool(seqs), f"Request {group.request_id} is finished but queued.")
            _require(all(seq.status is status for seq in seqs),
                     f"Request {group.request_id} is {status.name}, its sequences are "
                     f"{[seq.status.name for seq in seqs]}.")
            _require(len({seq.get_len() for seq in seqs}) == 1,
                     f"The sequences of request {group.request_id} are not equally long.")


def check_pools(manager: BlockSpaceManager) -> None:
    """Every block is free, or it is counted once for each table that lists it."""
    uses = Counter((use.device, use.block_number) for use in manager.block_uses())
    for use in manager.block_uses():
        times = uses[use.device, use.block_number]
        _require(use.ref_count == times,
                 f"{use.device.name} block {use.block_number} is in {times} tables but counts "
                 f"{use.ref_count} references.")
    for device, num_free, total in [
            (Device.GPU, manager.get_num_free_gpu_blocks(), manager.num_total_gpu_blocks),
            (Device.CPU, manager.get_num_free_cpu_blocks(), manager.num_total_cpu_blocks)]:
        num_used = sum(used_device is device for used_device, _ in uses)
        _require(num_free + num_used == total or not uses,
                 f"{device.name} pool: {num_free} blocks free and {num_used} used of {total}.")
        _require(bool(uses) or num_free == total,
                 f"{device.name} pool: nothing is used but only {num_free} of {total} are free.")


def check_tables(scheduler: Scheduler) -> None:
    """Running and swapped sequences have tables of the right length and pool, others none."""
    manager = scheduler.block_manager
    lengths: Counter[tuple[int, Device]] = Counter(
        (use.seq_id, use.device) for use in manager.block_uses())
    expected: dict[tuple[int, Device], Sequence] = {}
    for queue, device in [(scheduler.running, Device.GPU), (scheduler.swapped, Device.CPU)]:
        for group in queue:
            expected |= {(seq.seq_id, device): seq for seq in group.get_unfinished_seqs()}
    for key, length in lengths.items():
        _require(key in expected, f"Sequence {key[0]} holds {length} {key[1].name} blocks, "
                                  "which it should not.")
        # The newest token gets its slot when it is scheduled.
        seq = expected[key]
        fits = {-(-num_slots // manager.block_size)
                for num_slots in (seq.get_len() - 1, seq.get_len())}
        _require(length in fits, f"Sequence {key[0]} has {length} blocks for "
                                 f"{seq.get_len()} tokens.")
    for key in expected:
        _require(key in lengths or not lengths, f"Sequence {key[0]} has no {key[1].name} blocks.")


def check_sharing(scheduler: Scheduler) -> None:
    """Sequences that share a block have the same tokens up to its end."""
    manager = scheduler.block_manager
    seqs = {seq.seq_id: seq for queue in (scheduler.running, scheduler.swapped)
            for group in queue for seq in group.get_unfinished_seqs()}
    sharers: defaultdict[tuple[Device, int], set[tuple[int, int]]] = defaultdict(set)
    position: Counter[int] = Counter()
    for use in manager.block_uses():
        sharers[use.device, use.block_number].add((use.seq_id, position[use.seq_id]))
        position[use.seq_id] += 1
    for (device, number), users in sharers.items():
        if len(users) == 1:
            continue
        _require(len({index for _, index in users}) == 1,
                 f"{device.name} block {number} is at different places of its sequences.")
        index = next(iter(users))[1]
        # All but the newest token are in the table; a writer of further tokens would copy.
        end = min((index + 1) * manager.block_size,
                  *(seqs[seq_id].get_len() - 1 for seq_id, _ in users))
        beginnings = {tuple(seqs[seq_id].get_token_ids()[:end]) for seq_id, _ in users}
        _require(len(beginnings) == 1,
                 f"{device.name} block {number} is shared by different beginnings.")
