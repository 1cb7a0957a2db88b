"""Both pools behind one face (mirrors ``vllm/core/block/cpu_gpu_block_allocator.py``).

Block ids are unique over both pools: first those of the GPU pool, then those of the CPU pool.
Beyond vLLM: entries that share a physical block still do after a swap.  Left out: the null block
(only a sliding window needs it).
"""

from minivllm.core.block.interfaces import Block, BlockAllocator, BlockId
from minivllm.core.block.naive_block import NaiveBlock, NaiveBlockAllocator
from minivllm.core.block.prefix_caching_block import PrefixCachingBlockAllocator
from minivllm.utils import Device, InternalError


class CpuGpuBlockAllocator:
    """Hands out blocks of both pools and moves them from one to the other.

    Parameters
    ----------
    cpu_block_allocator, gpu_block_allocator : BlockAllocator
        The pools; their ids must differ.
    """

    @staticmethod
    def create(allocator_type: str, num_gpu_blocks: int, num_cpu_blocks: int,
               block_size: int) -> "CpuGpuBlockAllocator":
        """Return an allocator; its type is "naive" or "prefix_caching"."""
        gpu_ids = range(num_gpu_blocks)
        cpu_ids = range(num_gpu_blocks, num_gpu_blocks + num_cpu_blocks)

        def create_pool(block_ids: range) -> BlockAllocator:
            if allocator_type == "naive":
                return NaiveBlockAllocator(NaiveBlock, len(block_ids), block_size, block_ids)
            if allocator_type == "prefix_caching":
                return PrefixCachingBlockAllocator(len(block_ids), block_size, block_ids)
            raise ValueError(f"Unknown allocator type {allocator_type!r}: choose 'naive' or "
                             "'prefix_caching'.")

        return CpuGpuBlockAllocator(create_pool(cpu_ids), create_pool(gpu_ids))

    def __init__(self, cpu_block_allocator: BlockAllocator,
                 gpu_block_allocator: BlockAllocator) -> None:
        self._allocators = {Device.CPU: cpu_block_allocator, Device.GPU: gpu_block_allocator}
        self._block_ids_to_allocator = {
            block_id: allocator for allocator in self._allocators.values()
            for block_id in allocator.all_block_ids}
        self._first_ids = {device: min(allocator.all_block_ids, default=0)
                           for device, allocator in self._allocators.items()}

    def get_allocator(self, device: Device) -> BlockAllocator:
        """Return the allocator of one pool."""
        return self._allocators[device]

    def allocate_mutable(self, prev_block: Block | None, device: Device) -> Block:
        """Return an empty block."""
        return self._allocators[device].allocate_mutable(prev_block)

    def allocate_immutable(self, prev_block: Block | None, token_ids: list[int],
                           device: Device) -> Block:
        """Return a block full of these tokens."""
        return self._allocators[device].allocate_immutable(prev_block, token_ids)

    def free(self, block: Block) -> None:
        """Take an entry's reference to its physical block back."""
        self._allocator_of(block).free(block)

    def fork(self, last_block: Block) -> list[Block]:
        """Return new entries for the same physical blocks, from the first to this one."""
        return self._allocator_of(last_block).fork(last_block)

    def get_refcount(self, block: Block) -> int:
        """Return how many entries stand for the same physical block."""
        if block.block_id is None:
            return 0
        return self._allocator_of(block).get_refcount(block.block_id)

    def _allocator_of(self, block: Block) -> BlockAllocator:
        if block.block_id is None:
            raise InternalError("An entry has no physical block.")
        return self._block_ids_to_allocator[block.block_id]

    def swap(self, blocks: list[Block], source_device: Device,
             dest_device: Device) -> dict[BlockId, BlockId]:
        """Move entries to the other pool; return the physical moves (source to destination)."""
        source, destination = self._allocators[source_device], self._allocators[dest_device]
        mapping: dict[BlockId, BlockId] = {}
        for block in blocks:
            block_id = block.block_id
            if block_id is None:
                raise InternalError("An entry has no physical block.")
            if block_id in mapping:
                source.free(block)
                destination.share(block, mapping[block_id])
            else:
                destination.move_in(block, source)
                mapping[block_id] = self._id_of(block)
        return mapping

    @staticmethod
    def _id_of(block: Block) -> BlockId:
        if block.block_id is None:
            raise InternalError("An entry has no physical block.")
        return block.block_id

    def get_physical_block_id(self, device: Device, absolute_id: BlockId) -> int:
        """Return a block's number in its own pool, from 0."""
        return absolute_id - self._first_ids[device]

    def locate(self, block: Block) -> tuple[Device, int]:
        """Return the pool of an entry's physical block and its number there."""
        block_id = self._id_of(block)
        in_gpu = self._block_ids_to_allocator[block_id] is self._allocators[Device.GPU]
        device = Device.GPU if in_gpu else Device.CPU
        return device, self.get_physical_block_id(device, block_id)

    def get_num_free_blocks(self, device: Device) -> int:
        """Return how many blocks of a pool can be handed out."""
        return self._allocators[device].get_num_free_blocks()

    def get_num_total_blocks(self, device: Device) -> int:
        """Return the size of a pool."""
        return self._allocators[device].get_num_total_blocks()

    def get_num_blocks_touched(self, blocks: list[Block], device: Device,
                               num_lookahead_slots: int = 0) -> int:
        """Return how many blocks are not in this pool yet, of entries of the other one."""
        return self._allocators[device].get_num_blocks_touched(blocks, num_lookahead_slots)

    def get_num_blocks_taken(self, blocks: list[Block], device: Device) -> int:
        """Return how many free blocks it takes to move these entries into this pool."""
        source = self._allocators[Device.CPU if device is Device.GPU else Device.GPU]
        return self._allocators[device].get_num_blocks_taken(blocks, source)

    def clear_copy_on_writes(self) -> list[tuple[BlockId, BlockId]]:
        """Return the copies (source, destination) since the last call."""
        return self._allocators[Device.GPU].clear_copy_on_writes()

    def mark_blocks_as_accessed(self, block_ids: list[BlockId], now: float) -> None:
        """Note that blocks of the GPU pool were part of a batch."""
        self._allocators[Device.GPU].mark_blocks_as_accessed(block_ids, now)

    def mark_blocks_as_filled(self, block_ids: list[BlockId]) -> None:
        """Note that all tokens of blocks of the GPU pool are computed."""
        self._allocators[Device.GPU].mark_blocks_as_filled(block_ids)

    def mark_blocks_as_unfilled(self, block_ids: list[BlockId]) -> None:
        """Note that tokens of blocks of the GPU pool are still to be computed."""
        self._allocators[Device.GPU].mark_blocks_as_unfilled(block_ids)

    def get_common_computed_block_ids(self, seq_block_ids: list[list[BlockId]]) -> list[BlockId]:
        """Return the leading blocks of the GPU pool that need not be computed again."""
        return self._allocators[Device.GPU].get_common_computed_block_ids(seq_block_ids)

    @property
    def all_block_ids(self) -> frozenset[BlockId]:
        """The ids of both pools."""
        return frozenset(self._block_ids_to_allocator)
