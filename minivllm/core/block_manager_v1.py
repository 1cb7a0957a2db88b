"""Which physical blocks a sequence owns, flavour 1 (mirrors ``vllm/core/block_manager_v1.py``).

A block table is a list of `PhysicalTokenBlock`; sequences share blocks by reference count.  The
scheduler calls in this order: `allocate` for a prompt, `append_slots` before each decode, `fork`
when samples diverge, `free` at the end; `swap_out` and `swap_in` under memory pressure.

Left out: encoder-decoder models, and the reuse of blocks that a sliding window has passed (the
window is a mask in attention).
"""

from collections.abc import Iterator

from minivllm.block import BlockTable, PhysicalTokenBlock
from minivllm.core.block_allocator_v1 import (
    BlockAllocatorBase,
    CachedBlockAllocator,
    UncachedBlockAllocator,
)
from minivllm.core.interfaces import BlockDemand, BlockSpaceManager, BlockUse
from minivllm.core.layout import common_beginning, num_distinct_blocks, shared_layout
from minivllm.sequence import Sequence, SequenceGroup, SequenceStatus
from minivllm.utils import Device

__all__ = ["BlockSpaceManagerV1", "CachedBlockAllocator", "UncachedBlockAllocator"]


class BlockSpaceManagerV1(BlockSpaceManager):
    """Maps logical to physical blocks; see `BlockSpaceManager` for parameters and methods."""

    def __init__(self, block_size: int, num_gpu_blocks: int, num_cpu_blocks: int,
                 watermark: float = 0.01, sliding_window: int | None = None,
                 enable_caching: bool = False) -> None:
        super().__init__(block_size, num_gpu_blocks, num_cpu_blocks, watermark, sliding_window,
                         enable_caching)
        self.reset()

    def allocation_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return what `allocate` takes at most; cached blocks are not counted as a gain."""
        seqs = seq_group.get_seqs(SequenceStatus.WAITING)
        return self.gpu_demand(num_distinct_blocks(seqs, self.block_size),
                               comes_back=seqs[0].get_output_len() > 0)

    def allocate(self, seq_group: SequenceGroup) -> None:
        """Give the group's waiting sequences their block tables.

        They are several if a group with forks is recomputed; equal blocks are shared again.
        """
        seqs = seq_group.get_seqs(SequenceStatus.WAITING)
        if self.enable_caching:
            for seq in seqs:
                self.block_tables[seq.seq_id] = BlockTable(
                    [self._allocate_by_content(seq, i) for i in range(seq.n_blocks)])
            return
        blocks: list[PhysicalTokenBlock] = []
        for seq, layout in zip(seqs, shared_layout(seqs, self.block_size), strict=True):
            table = BlockTable()
            for index in layout:
                if index == len(blocks):
                    blocks.append(self.gpu_allocator.allocate())
                else:
                    self.gpu_allocator.share(blocks[index])
                table.append(blocks[index])
            self.block_tables[seq.seq_id] = table

    def _allocate_by_content(self, seq: Sequence, logical_idx: int) -> PhysicalTokenBlock:
        return self.gpu_allocator.allocate(seq.hash_of_block(logical_idx),
                                           seq.num_hashed_tokens_of_block(logical_idx))

    def num_blocks_to_append(self, seq_group: SequenceGroup) -> int:
        """Return how many blocks `append_slots` takes at most for the group's running sequences."""
        num_blocks = 0
        last_users: dict[PhysicalTokenBlock, int] = {}
        for seq in seq_group.get_seqs(SequenceStatus.RUNNING):
            table = self.block_tables[seq.seq_id]
            if len(table) < seq.n_blocks:
                num_blocks += 1
            else:
                last_users[table[-1]] = last_users.get(table[-1], 0) + 1
        # A shared last block is copied by each of its users but the last one.
        return num_blocks + sum(min(users, block.ref_count - 1)
                                for block, users in last_users.items())

    def append_slots(self, seq: Sequence, num_lookahead_slots: int = 0) -> list[tuple[int, int]]:
        """Make a slot for the newest token; return the copies (source, destination) needed."""
        table, length = self.block_tables[seq.seq_id], seq.get_len()
        if len(table) * self.block_size < length:
            table.append(self._allocate_last_physical_block(seq))
            return []
        last_block = table[-1]
        if last_block.ref_count == 1:
            if self.enable_caching and length % self.block_size == 0:
                table.replace_last(self._promote_last_block(seq, last_block))
            return []
        # Shared: copy on write.
        new_block = self._allocate_last_physical_block(seq)
        table.replace_last(new_block)
        self.gpu_allocator.free(last_block)
        return [(last_block.block_number, new_block.block_number)]

    def _allocate_last_physical_block(self, seq: Sequence) -> PhysicalTokenBlock:
        """Allocate by content if the block is full already, else a block of its own."""
        if not self.enable_caching:
            return self.gpu_allocator.allocate()
        last = seq.n_blocks - 1
        if seq.get_len() % self.block_size == 0:
            return self._allocate_by_content(seq, last)
        return self.gpu_allocator.allocate(None, seq.num_hashed_tokens_of_block(last))

    def _promote_last_block(self, seq: Sequence,
                            last_block: PhysicalTokenBlock) -> PhysicalTokenBlock:
        """Let others find a block that has become full; use theirs if there is an equal one."""
        content_hash = seq.hash_of_block(seq.n_blocks - 1)
        equal = self.gpu_allocator.find(content_hash)
        if equal is None:
            self.gpu_allocator.update_hash(content_hash, last_block)
        elif not equal.unfilled:
            self.gpu_allocator.free(last_block)
            return self.gpu_allocator.allocate(content_hash)
        return last_block

    def fork(self, parent_seq: Sequence, child_seq: Sequence) -> None:
        """Let the child share all blocks of its parent."""
        table = self.block_tables[parent_seq.seq_id]
        self.block_tables[child_seq.seq_id] = BlockTable(table)
        for block in table:
            self.gpu_allocator.share(block)

    def _get_physical_blocks(self, seq_group: SequenceGroup) -> set[PhysicalTokenBlock]:
        """Return the distinct blocks of the group's unfinished sequences."""
        return {block for seq in seq_group.get_unfinished_seqs()
                for block in self.block_tables[seq.seq_id]}

    def swap_in_demand(self, seq_group: SequenceGroup) -> BlockDemand:
        """Return what `swap_in` takes, and a block for each sequence's next token."""
        need = (len(self._get_physical_blocks(seq_group))
                + seq_group.num_seqs(SequenceStatus.SWAPPED))
        return self.gpu_demand(need, comes_back=True)

    def swap_in(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group's blocks to the GPU pool; return (CPU, GPU) block numbers."""
        return self._swap(seq_group.get_seqs(SequenceStatus.SWAPPED),
                          self.cpu_allocator, self.gpu_allocator)

    def swap_out_demand(self, seq_group: SequenceGroup) -> int:
        """Return how many CPU blocks `swap_out` takes."""
        return len(self._get_physical_blocks(seq_group))

    def swap_out(self, seq_group: SequenceGroup) -> list[tuple[int, int]]:
        """Move the group's blocks to the CPU pool; return (GPU, CPU) block numbers."""
        return self._swap(seq_group.get_seqs(SequenceStatus.RUNNING),
                          self.gpu_allocator, self.cpu_allocator)

    def _swap(self, seqs: list[Sequence], source: BlockAllocatorBase,
              destination: BlockAllocatorBase) -> list[tuple[int, int]]:
        mapping: dict[PhysicalTokenBlock, PhysicalTokenBlock] = {}
        for seq in seqs:
            num_filled = seq.data.get_num_computed_tokens() // self.block_size
            table = BlockTable()
            for i, block in enumerate(self.block_tables[seq.seq_id]):
                if block in mapping:
                    destination.share(mapping[block])
                else:
                    mapping[block] = self._allocate_copy(block, i < num_filled, destination)
                table.append(mapping[block])
                source.free(block)
            self.block_tables[seq.seq_id] = table
        return [(old.block_number, new.block_number) for old, new in mapping.items()]

    @staticmethod
    def _allocate_copy(block: PhysicalTokenBlock, is_filled: bool,
                       destination: BlockAllocatorBase) -> PhysicalTokenBlock:
        """Return a block of the other pool to move `block` to.

        With prefix caching it keeps its content key.  A block whose last slots are not what its
        key says must not overwrite one of the same key that others rely on.  (In vLLM it does.)
        """
        equal = destination.find(block.block_hash)
        relied_on = equal is not None and (equal.ref_count > 0 or equal.computed)
        key = None if relied_on and not is_filled else block.block_hash
        return destination.allocate(key, block.num_hashed_tokens)

    def free(self, seq: Sequence) -> None:
        """Give back the blocks of a sequence, if it holds any."""
        for block in self.block_tables.pop(seq.seq_id, ()):
            (self.gpu_allocator if block.device is Device.GPU else self.cpu_allocator).free(block)

    def reset(self) -> None:
        """Give back all blocks and forget all contents."""
        allocator = CachedBlockAllocator if self.enable_caching else UncachedBlockAllocator
        self.gpu_allocator: BlockAllocatorBase = allocator(
            Device.GPU, self.block_size, self.num_total_gpu_blocks)
        self.cpu_allocator: BlockAllocatorBase = allocator(
            Device.CPU, self.block_size, self.num_total_cpu_blocks)
        self.block_tables: dict[int, BlockTable] = {}  # by seq_id

    def get_block_table(self, seq: Sequence) -> list[int]:
        """Return the sequence's block numbers, logical block 0 first."""
        return self.block_tables[seq.seq_id].block_numbers.copy()

    def block_uses(self) -> Iterator[BlockUse]:
        """Walk through all entries of all block tables, each table from its beginning."""
        for seq_id, table in self.block_tables.items():
            for block in table:
                yield BlockUse(seq_id, block.device, block.block_number, block.ref_count)

    def get_num_free_gpu_blocks(self) -> int:
        """Return how many blocks of the GPU pool are free, cached but unused ones included."""
        return self.gpu_allocator.get_num_free_blocks()

    def get_num_free_cpu_blocks(self) -> int:
        """Return how many blocks of the CPU pool are free, cached but unused ones included."""
        return self.cpu_allocator.get_num_free_blocks()

    def access_all_blocks_in_seq(self, seq: Sequence, access_time: float) -> None:
        """Note that the sequence's blocks were part of a batch."""
        if self.enable_caching:
            for block in self.block_tables[seq.seq_id]:
                block.last_accessed = access_time

    def get_all_computed_blocks(self, seq: Sequence) -> list[int]:
        """Return the leading computed blocks; never the last one, so that something is left."""
        table = self.block_tables.get(seq.seq_id)
        if table is None:
            return []
        while table.num_computed < len(table) - 1 and table[table.num_computed].computed:
            table.num_computed += 1
        return table.block_numbers[:table.num_computed]

    def get_common_computed_block_ids(self, seqs: list[Sequence]) -> list[int]:
        """Return the leading blocks that need not be computed again, the same for all of `seqs`."""
        if not self.enable_caching:
            return []
        if len(seqs) == 1:
            return self.get_all_computed_blocks(seqs[0])
        return common_beginning(seqs, [self.get_all_computed_blocks(seq) for seq in seqs])

    def mark_blocks_as_computed(self, seq_group: SequenceGroup,
                                token_chunk_size: int | None = None) -> None:
        """Note that a batch computes so many more tokens of each sequence (None: all).

        A sequence's last full block is left out until the next one is full, as in vLLM.
        """
        if not self.enable_caching:
            return
        for seq in seq_group.seqs_dict.values():
            table = self.block_tables.get(seq.seq_id)
            if table is None:
                continue
            data = seq.data
            length = num_computed = data.get_len()
            if token_chunk_size is not None and data.is_prefill:
                num_computed = data.get_num_computed_tokens() + token_chunk_size
            last = min(length // self.block_size - 1, num_computed // self.block_size) - 1
            while last >= 0 and not table[last].computed:
                table[last].computed = True
                last -= 1
            if data.is_prefill:
                self._mark_filled(table, len(table) if num_computed == length
                                  else num_computed // self.block_size)

    @staticmethod
    def _mark_filled(table: BlockTable, num_filled: int) -> None:
        for i, block in enumerate(table):
            block.unfilled = i >= num_filled and not block.computed
