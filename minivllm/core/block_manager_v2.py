"""Which physical blocks a sequence owns, flavour 2 (mirrors ``vllm/core/block_manager_v2.py``).

Where flavour 1 keeps lists of physical blocks, this one keeps `BlockTable` objects whose entries
know their tokens; with prefix caching, full blocks are found by a chained content hash.

Left out: encoder-decoder models, dropping blocks behind a sliding window, lookahead slots (the
argument exists; the number is 0).
"""

from collections.abc import Iterator
from dataclasses import replace

from minivllm.core.block.block_table import BlockTable
from minivllm.core.block.cpu_gpu_block_allocator import CpuGpuBlockAllocator
from minivllm.core.block.interfaces import Block, BlockId
from minivllm.core.interfaces import BlockDemand, BlockSpaceManager, BlockUse
from minivllm.core.layout import common_beginning, num_distinct_blocks, shared_layout
from minivllm.sequence import Sequence, SequenceGroup, SequenceStatus
from minivllm.utils import Device


class BlockSpaceManagerV2(BlockSpaceManager):
    """Maps tokens to blocks; see `BlockSpaceManager` for parameters and methods."""

    def __init__(self, block_size: int, num_gpu_blocks: int, num_cpu_blocks: int,
                 watermark: float = 0.01, sliding_window: int | None = None,
                 enable_caching: bool = False) -> None:
        super().__init__(block_size, num_gpu_blocks, num_cpu_blocks, watermark, sliding_window,
                         enable_caching)
        self.reset()

    def reset(self) -> None:
        """Give back all blocks and forget all contents."""
        self.block_allocator = CpuGpuBlockAllocator.create(
            "prefix_caching" if self.enable_caching else "naive",
            num_gpu_blocks=self.num_total_gpu_blocks, num_cpu_blocks=self.num_total_cpu_blocks,
            block_size=self.block_size)
        self.block_tables: dict[int, BlockTable] = {}  # by seq_id

    def allocation_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return what `allocate` takes at most; cached blocks are not counted as a gain."""
        seqs = seq_group.get_seqs(SequenceStatus.WAITING)
        return self.gpu_demand(num_distinct_blocks(seqs, self.block_size),
                               comes_back=seqs[0].get_output_len() > 0)

    def allocate(self, seq_group: SequenceGroup) -> None:
        """Give the group's waiting sequences their block tables.

        They are several if a group with forks is recomputed; each shares as many blocks as it can
        with one before it.
        """
        seqs = seq_group.get_seqs(SequenceStatus.WAITING)
        layouts = shared_layout(seqs, self.block_size)
        for i, seq in enumerate(seqs):
            table = BlockTable(self.block_size, self.block_allocator)
            if i > 0:
                shared = [num_equal(layout, layouts[i]) for layout in layouts[:i]]
                best = max(range(i), key=lambda k: shared[k])
                table = self.block_tables[seqs[best].seq_id].fork_prefix(shared[best])
            table.allocate(seq.get_token_ids())
            self.block_tables[seq.seq_id] = table

    def num_blocks_to_append(self, seq_group: SequenceGroup) -> int:
        """Return how many blocks `append_slots` takes at most for the group's running sequences."""
        return self._num_blocks_to_append(seq_group.get_seqs(SequenceStatus.RUNNING))

    def _num_blocks_to_append(self, seqs: list[Sequence]) -> int:
        num_blocks = 0
        users: dict[BlockId, int] = {}  # of last blocks with an empty slot
        num_entries: dict[BlockId, int] = {}
        for seq in seqs:
            table = self.block_tables[seq.seq_id]
            if table.num_full_slots == seq.get_len():
                continue
            if table.num_full_slots % self.block_size == 0:
                num_blocks += 1
            else:
                block_id = table.physical_block_ids[-1]
                users[block_id] = users.get(block_id, 0) + 1
                num_entries[block_id] = self.block_allocator.get_refcount(table.blocks[-1])
        # A shared block is copied by each user but the last one.
        return num_blocks + sum(min(users[i], num_entries[i] - 1) for i in users)

    def append_slots(self, seq: Sequence, num_lookahead_slots: int = 0) -> list[tuple[int, int]]:
        """Make slots for the newest tokens; return the copies (source, destination) needed."""
        table = self.block_tables[seq.seq_id]
        token_ids = seq.get_output_token_ids()[table.num_full_slots - seq.get_prompt_len():]
        table.append_token_ids(token_ids, num_lookahead_slots)
        return self.block_allocator.clear_copy_on_writes()

    def fork(self, parent_seq: Sequence, child_seq: Sequence) -> None:
        """Let the child share all blocks of its parent."""
        self.block_tables[child_seq.seq_id] = self.block_tables[parent_seq.seq_id].fork()

    def swap_in_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return what `swap_in` and the append after it take.

        vLLM does not look at the append: the watermark may serve for it.
        """
        seqs = seq_group.get_seqs(SequenceStatus.SWAPPED)
        blocks = self._blocks_of(seqs)
        num_touched = self.block_allocator.get_num_blocks_touched(blocks, Device.GPU)
        need = (self.block_allocator.get_num_blocks_taken(blocks, Device.GPU)
                + self._num_blocks_to_append(seqs))
        demand = self.gpu_demand(need, comes_back=True)
        return replace(demand, reserve=max(0, demand.reserve + num_touched - need))

    def swap_in(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group's blocks to the GPU pool; return (CPU, GPU) block numbers."""
        return self._swap(seq_group.get_seqs(SequenceStatus.SWAPPED), Device.CPU, Device.GPU)

    def swap_out_demand(self, seq_group: SequenceGroup) -> int:
        """Return how many CPU blocks `swap_out` takes."""
        return self.block_allocator.get_num_blocks_taken(
            self._blocks_of(seq_group.get_seqs(SequenceStatus.RUNNING)), Device.CPU)

    def swap_out(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group's blocks to the CPU pool; return (GPU, CPU) block numbers."""
        return self._swap(seq_group.get_seqs(SequenceStatus.RUNNING), Device.GPU, Device.CPU)

    def _blocks_of(self, seqs: list[Sequence]) -> list[Block]:
        return [block for seq in seqs for block in self.block_tables[seq.seq_id].blocks]

    def _swap(self, seqs: list[Sequence], source: Device,
              destination: Device) -> list[tuple[int, int]]:
        mapping = self.block_allocator.swap(self._blocks_of(seqs), source, destination)
        number = self.block_allocator.get_physical_block_id
        return [(number(source, old), number(destination, new)) for old, new in mapping.items()]

    def free(self, seq: Sequence) -> None:
        """Give back the blocks of a sequence, if it holds any."""
        table = self.block_tables.pop(seq.seq_id, None)
        if table is not None:
            table.free()

    def get_block_table(self, seq: Sequence) -> list[int]:
        """Return the sequence's block numbers, logical block 0 first."""
        return self.block_tables[seq.seq_id].physical_block_ids

    def block_uses(self) -> Iterator[BlockUse]:
        """Walk through all entries of all block tables, each table from its beginning."""
        for seq_id, table in self.block_tables.items():
            for block in table.blocks:
                yield BlockUse(seq_id, *self.block_allocator.locate(block),
                               self.block_allocator.get_refcount(block))

    def get_num_free_gpu_blocks(self) -> int:
        """Return how many blocks of the GPU pool are free, cached but unused ones included."""
        return self.block_allocator.get_num_free_blocks(Device.GPU)

    def get_num_free_cpu_blocks(self) -> int:
        """Return how many blocks of the CPU pool are free, cached but unused ones included."""
        return self.block_allocator.get_num_free_blocks(Device.CPU)

    def access_all_blocks_in_seq(self, seq: Sequence, access_time: float) -> None:
        """Note that the sequence's blocks were part of a batch."""
        if self.enable_caching:
            self.block_allocator.mark_blocks_as_accessed(self.get_block_table(seq), access_time)

    def get_common_computed_block_ids(self, seqs: list[Sequence]) -> list[int]:
        """Return the leading blocks that need not be computed again, the same for all of `seqs`."""
        if not self.enable_caching:
            return []
        computed = [self.block_allocator.get_common_computed_block_ids([self.get_block_table(seq)])
                    for seq in seqs]
        return common_beginning(seqs, computed)

    def mark_blocks_as_computed(self, seq_group: SequenceGroup,
                                token_chunk_size: int | None = None) -> None:
        """Note that a batch computes so many more tokens of each sequence (None: all).

        Of interest only for prompts that are computed in chunks.
        """
        if not self.enable_caching or token_chunk_size is None or not seq_group.is_prefill():
            return
        for seq in seq_group.get_seqs(SequenceStatus.RUNNING):
            num_filled = ((seq.data.get_num_computed_tokens() + token_chunk_size)
                          // self.block_size)
            num_full = seq.get_len() // self.block_size
            block_ids = self.get_block_table(seq)
            self.block_allocator.mark_blocks_as_filled(block_ids[:num_filled])
            self.block_allocator.mark_blocks_as_unfilled(block_ids[num_filled:num_full])


def num_equal(left: list[int], right: list[int]) -> int:
    """Return how many items two lists have in common at their beginnings.

    >>> num_equal([0, 1, 2], [0, 1, 3, 4])
    2
    """
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
                min(len(left), len(right)))
