"""No blocks at all: pooling models (mirrors ``vllm/core/embedding_model_block_manager.py``).

A pooling request runs once and keeps nothing, so every question is answered with yes.
"""

from collections.abc import Iterator

from minivllm.core.interfaces import BlockDemand, BlockSpaceManager, BlockUse
from minivllm.sequence import Sequence, SequenceGroup


class EmbeddingModelBlockSpaceManager(BlockSpaceManager):
    """Needs no blocks and gives none; see `BlockSpaceManager` for parameters and methods."""

    def allocation_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return a demand of nothing."""
        return BlockDemand(0, self.num_total_gpu_blocks, 0, self.num_total_gpu_blocks, 0)

    def allocate(self, seq_group: SequenceGroup) -> None:
        """Do nothing."""

    def append_demand(self, seq_group: SequenceGroup) -> int:
        """Return 0."""
        return 0

    def num_blocks_to_append(self, seq_group: SequenceGroup) -> int:
        """Return 0."""
        return 0

    def append_slots(self, seq: Sequence, num_lookahead_slots: int = 0) -> list[tuple[int, int]]:
        """Return no copies."""
        return []

    def fork(self, parent_seq: Sequence, child_seq: Sequence) -> None:
        """Do nothing."""

    def swap_in_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return a demand of nothing."""
        return self.allocation_demand(seq_group)

    def swap_in(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Return no moves."""
        return []

    def swap_out_demand(self, seq_group: SequenceGroup) -> int:
        """Return 0."""
        return 0

    def swap_out(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Return no moves."""
        return []

    def free(self, seq: Sequence) -> None:
        """Do nothing."""

    def reset(self) -> None:
        """Do nothing."""

    def get_block_table(self, seq: Sequence) -> list[int]:
        """Return an empty table."""
        return []

    def block_uses(self) -> Iterator[BlockUse]:
        """Walk through no entries."""
        return iter(())

    def get_num_free_gpu_blocks(self) -> int:
        """Return the size of the pool."""
        return self.num_total_gpu_blocks

    def get_num_free_cpu_blocks(self) -> int:
        """Return the size of the pool."""
        return self.num_total_cpu_blocks

    def access_all_blocks_in_seq(self, seq: Sequence, access_time: float) -> None:
        """Do nothing."""

    def get_common_computed_block_ids(self, seqs: list[Sequence]) -> list[int]:
        """Return none."""
        return []

    def mark_blocks_as_computed(self, seq_group: SequenceGroup,
                                token_chunk_size: int | None = None) -> None:
        """Do nothing."""
