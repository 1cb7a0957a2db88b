"""Exercise 01: an answer."""

from typing import Any

from minivllm.block import PhysicalTokenBlock
from minivllm.core.block_allocator_v1 import UncachedBlockAllocator
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.utils import Device


class MyAllocator(UncachedBlockAllocator):
    """The real allocator of one pool, with the methods written."""

    def allocate(self, block_hash: int | None = None,
                 num_hashed_tokens: int = 0) -> PhysicalTokenBlock:
        """Take the block at the end of the list."""
        if not self.free_blocks:
            raise ValueError("no block is free")
        block = self.free_blocks.pop()
        block.ref_count = 1
        return block

    def free(self, block: PhysicalTokenBlock) -> None:
        """Count down; only the last holder's block is free again."""
        if block.ref_count == 0:
            raise ValueError(f"{block} is free already")
        block.ref_count -= 1
        if block.ref_count == 0:
            self.free_blocks.append(block)


class MyManager(BlockSpaceManagerV1):
    """The real block manager with this allocator in its GPU pool."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gpu_allocator = MyAllocator(Device.GPU, self.block_size, self.num_total_gpu_blocks)
