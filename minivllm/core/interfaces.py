"""What the scheduler asks of a block manager (mirrors ``vllm/core/interfaces.py``).

Every "can I?" is answered from a `BlockDemand`, so that the decision log shows the same numbers
that the decision was made with.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from minivllm.sequence import Sequence, SequenceGroup, SequenceStatus
from minivllm.utils import Device


class AllocStatus(enum.Enum):
    """Whether a group gets its blocks: now (OK), not yet (LATER), or not in this pool (NEVER)."""

    OK = enum.auto()
    LATER = enum.auto()
    NEVER = enum.auto()


@dataclass(frozen=True, slots=True)
class BlockDemand:
    """How many blocks a group asks of a pool, and how many there are.

    Attributes
    ----------
    need : int
        Blocks asked for.
    have : int
        Free blocks.
    reserve : int
        Free blocks that must be left over.
    total : int
        All blocks of the pool.
    total_reserve : int
        Blocks that must be left over even if the group were alone in the pool.
    """

    need: int
    have: int
    reserve: int
    total: int
    total_reserve: int

    @property
    def status(self) -> AllocStatus:
        """The answer that these numbers give."""
        if self.need + self.total_reserve > self.total:
            return AllocStatus.NEVER
        return AllocStatus.LATER if self.need + self.reserve > self.have else AllocStatus.OK


class BlockUse(NamedTuple):
    """One entry of a block table: who uses which block, and how many uses its pool counts."""

    seq_id: int
    device: Device
    block_number: int
    ref_count: int


class BlockSpaceManager(ABC):
    """Keeps a block table for each sequence that holds blocks.

    Parameters
    ----------
    block_size : int
        Tokens per block.
    num_gpu_blocks, num_cpu_blocks : int
        Sizes of the two pools.
    watermark : float
        Share of the GPU pool that stays free when a group gets in, so that those that run can
        grow.
    sliding_window : int, optional
        For attention only: blocks outside the window are kept.
    enable_caching : bool
        Share and keep blocks of equal content.
    """

    def __init__(self, block_size: int, num_gpu_blocks: int, num_cpu_blocks: int,
                 watermark: float = 0.01, sliding_window: int | None = None,
                 enable_caching: bool = False) -> None:
        if watermark < 0:
            raise ValueError(f"watermark must not be negative, got {watermark}.")
        self.block_size = block_size
        self.num_total_gpu_blocks = num_gpu_blocks
        self.num_total_cpu_blocks = num_cpu_blocks
        self.watermark = watermark
        self.watermark_blocks = int(watermark * num_gpu_blocks)
        self.enable_caching = enable_caching

    def gpu_demand(self, need: int, *, comes_back: bool) -> BlockDemand:
        """Return the demand of a group that wants into the GPU pool.

        A group that has been in the pool before has a right to all of it: while running it might
        have taken the watermark too.  If nobody else holds blocks there is nobody to leave them
        to.  (vLLM ignores such groups or lets them wait for ever.)
        """
        have, total = self.get_num_free_gpu_blocks(), self.num_total_gpu_blocks
        watermark = self.watermark_blocks
        if not comes_back:
            return BlockDemand(need, have, watermark, total, watermark)
        return BlockDemand(need, have, 0 if have == total else watermark, total, 0)

    def pool_size_with(self, num_more_blocks: int) -> int:
        """Return the smallest GPU pool with so many more blocks beside the watermark."""
        size = self.num_total_gpu_blocks + num_more_blocks
        while size - int(self.watermark * size) < (
                self.num_total_gpu_blocks - self.watermark_blocks + num_more_blocks):
            size += 1
        return size

    @abstractmethod
    def allocation_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return what `allocate` takes at most."""

    def can_allocate(self, seq_group: SequenceGroup) -> AllocStatus:
        """Say whether the group's waiting sequences get blocks for all their tokens."""
        return self.allocation_demand(seq_group).status

    @abstractmethod
    def allocate(self, seq_group: SequenceGroup) -> None:
        """Give the group's waiting sequences their block tables."""

    def append_demand(self, seq_group: SequenceGroup) -> int:
        """Return how many free blocks `can_append_slots` asks for: one per running sequence.

        Whether a sequence really needs a new block is not looked at.
        """
        return seq_group.num_seqs(SequenceStatus.RUNNING)

    @abstractmethod
    def num_blocks_to_append(self, seq_group: SequenceGroup) -> int:
        """Return how many blocks `append_slots` takes at most for the group's running sequences."""

    def can_append_slots(self, seq_group: SequenceGroup, num_lookahead_slots: int = 0) -> bool:
        """Say whether the group may run another step."""
        num_free = self.get_num_free_gpu_blocks()
        # Most often there is no need to count.
        return len(seq_group.seqs_dict) <= num_free or self.append_demand(seq_group) <= num_free

    @abstractmethod
    def append_slots(self, seq: Sequence, num_lookahead_slots: int = 0) -> list[tuple[int, int]]:
        """Make a slot for the newest token; return the copies (source, destination) needed."""

    @abstractmethod
    def fork(self, parent_seq: Sequence, child_seq: Sequence) -> None:
        """Let the child share all blocks of its parent."""

    @abstractmethod
    def swap_in_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return what `swap_in` and the append after it take."""

    def can_swap_in(self, seq_group: SequenceGroup, num_lookahead_slots: int = 0) -> AllocStatus:
        """Say whether the group's blocks can come back to the GPU pool."""
        return self.swap_in_demand(seq_group).status

    @abstractmethod
    def swap_in(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group's blocks to the GPU pool; return (CPU, GPU) block numbers."""

    @abstractmethod
    def swap_out_demand(self, seq_group: SequenceGroup) -> int:
        """Return how many CPU blocks `swap_out` takes."""

    def can_swap_out(self, seq_group: SequenceGroup) -> bool:
        """Say whether the CPU pool has room for the group's blocks."""
        return self.swap_out_demand(seq_group) <= self.get_num_free_cpu_blocks()

    @abstractmethod
    def swap_out(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group's blocks to the CPU pool; return (GPU, CPU) block numbers."""

    @abstractmethod
    def free(self, seq: Sequence) -> None:
        """Give back the blocks of a sequence, if it holds any."""

    @abstractmethod
    def reset(self) -> None:
        """Give back all blocks and forget all contents."""

    @abstractmethod
    def get_block_table(self, seq: Sequence) -> list[int]:
        """Return the sequence's block numbers, logical block 0 first."""

    @abstractmethod
    def block_uses(self) -> Iterator[BlockUse]:
        """Walk through all entries of all block tables, each table from its beginning."""

    @abstractmethod
    def get_num_free_gpu_blocks(self) -> int:
        """Return how many blocks of the GPU pool are free, cached but unused ones included."""

    @abstractmethod
    def get_num_free_cpu_blocks(self) -> int:
        """Return how many blocks of the CPU pool are free, cached but unused ones included."""

    @abstractmethod
    def access_all_blocks_in_seq(self, seq: Sequence, access_time: float) -> None:
        """Note that the sequence's blocks were part of a batch."""

    @abstractmethod
    def get_common_computed_block_ids(self, seqs: list[Sequence]) -> list[int]:
        """Return the leading blocks that need not be computed again, the same for all of `seqs`."""

    @abstractmethod
    def mark_blocks_as_computed(self, seq_group: SequenceGroup,
                                token_chunk_size: int | None = None) -> None:
        """Note that a batch computes so many more tokens of each sequence (None: all)."""
