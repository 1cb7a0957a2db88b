"""What the scheduler decides in a step (mirrors dataclasses of ``vllm/core/scheduler.py``)."""

import enum
from dataclasses import dataclass, field

from minivllm.decisions import Decision
from minivllm.sequence import Sequence, SequenceGroup

# (source, destination) block numbers.
BlockMove = tuple[int, int]


class PreemptionMode(enum.Enum):
    """How a running group gives its GPU blocks back.

    SWAP: their contents go to the CPU pool, and later come back.
    RECOMPUTE: their contents are dropped, and later computed again like a prompt.
    """

    SWAP = enum.auto()
    RECOMPUTE = enum.auto()


@dataclass(slots=True)
class ScheduledSequenceGroup:
    """A group of the batch.

    Attributes
    ----------
    seq_group : SequenceGroup
        The group.
    token_chunk_size : int
        How many tokens of each sequence are processed.
    seqs : list of Sequence
        The sequences that run.
    """

    seq_group: SequenceGroup
    token_chunk_size: int
    seqs: list[Sequence] = field(default_factory=list)


@dataclass
class SchedulerPrefillOutputs:
    """What came of the waiting queue."""

    seq_groups: list[ScheduledSequenceGroup] = field(default_factory=list)
    ignored_seq_groups: list[SequenceGroup] = field(default_factory=list)


@dataclass
class SchedulerRunningOutputs:
    """What came of the running queue; `unvisited` stays there without running."""

    decode_seq_groups: list[ScheduledSequenceGroup] = field(default_factory=list)
    prefill_seq_groups: list[ScheduledSequenceGroup] = field(default_factory=list)
    preempted: list[SequenceGroup] = field(default_factory=list)
    swapped_out: list[SequenceGroup] = field(default_factory=list)
    unvisited: list[SequenceGroup] = field(default_factory=list)
    blocks_to_swap_out: list[BlockMove] = field(default_factory=list)
    blocks_to_copy: list[BlockMove] = field(default_factory=list)

    @property
    def num_preempted(self) -> int:
        """How many groups had to stop, both ways together."""
        return len(self.preempted) + len(self.swapped_out)


@dataclass
class SchedulerSwappedInOutputs:
    """What came of the swapped queue."""

    decode_seq_groups: list[ScheduledSequenceGroup] = field(default_factory=list)
    prefill_seq_groups: list[ScheduledSequenceGroup] = field(default_factory=list)
    infeasible_seq_groups: list[SequenceGroup] = field(default_factory=list)
    blocks_to_swap_in: list[BlockMove] = field(default_factory=list)
    blocks_to_copy: list[BlockMove] = field(default_factory=list)
    num_copies_before_swap_in: list[int] = field(default_factory=list)


@dataclass
class SchedulerOutputs:
    """All that was decided in a step.

    Attributes
    ----------
    scheduled_seq_groups : list of ScheduledSequenceGroup
        The batch, prefills first.
    num_prefill_groups : int
        How many of them are prefills.
    num_batched_tokens : int
        Tokens in the batch.
    blocks_to_swap_in, blocks_to_swap_out, blocks_to_copy : list of (int, int)
        (source, destination) block numbers, to be moved before the model runs.
    num_copies_before_swap_in : list of int
        For each swap-in how many of the copies come before it: it may take a block that was
        copied and given up in the same step.
    ignored_seq_groups : list of SequenceGroup
        Given up: they are finished.
    num_lookahead_slots : int
        Always 0: there is no speculative decoding here.
    running_queue_size : int
        Length of the running queue.
    preempted : int
        How many groups had to stop.
    decisions : list of Decision
        Why all this: see `minivllm.decisions`.
    """

    scheduled_seq_groups: list[ScheduledSequenceGroup]
    num_prefill_groups: int
    num_batched_tokens: int
    blocks_to_swap_in: list[BlockMove]
    blocks_to_swap_out: list[BlockMove]
    blocks_to_copy: list[BlockMove]
    ignored_seq_groups: list[SequenceGroup]
    num_lookahead_slots: int
    running_queue_size: int
    preempted: int
    num_copies_before_swap_in: list[int] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def is_empty(self) -> bool:
        """Return True if the worker has nothing to do (ignored groups do not count)."""
        return not (self.scheduled_seq_groups or self.blocks_to_swap_in
                    or self.blocks_to_swap_out or self.blocks_to_copy)
