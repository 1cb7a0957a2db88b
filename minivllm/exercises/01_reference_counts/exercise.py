"""Exercise 01: hand out blocks and take them back.

Read README.md, complete `allocate` and `free`, then run ``minivllm exercises check 01``.
"""

from typing import Any

from minivllm.block import PhysicalTokenBlock
from minivllm.core.block_allocator_v1 import UncachedBlockAllocator
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.utils import Device


class MyAllocator(UncachedBlockAllocator):
    """The real allocator of one pool, with two methods missing.

    `self.free_blocks` is a list of all free blocks, at first numbers 0, 1, 2, ... in order.
    """

    def allocate(self, block_hash: int | None = None,
                 num_hashed_tokens: int = 0) -> PhysicalTokenBlock:
        """Return a free block, held by one block table; both arguments can be ignored."""
        raise NotImplementedError("allocate is missing")

    def free(self, block: PhysicalTokenBlock) -> None:
        """One block table gives `block` back."""
        raise NotImplementedError("free is missing")


class MyManager(BlockSpaceManagerV1):
    """The real block manager with your allocator in its GPU pool; complete as it is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gpu_allocator = MyAllocator(Device.GPU, self.block_size, self.num_total_gpu_blocks)
