"""The free blocks of one pool, flavour 1 (mirrors parts of ``vllm/core/block_manager_v1.py``).

The scheduler never sees these: `BlockSpaceManagerV1` owns one for each pool.
"""

from abc import ABC, abstractmethod
from itertools import count

from minivllm.block import PhysicalTokenBlock
from minivllm.core.evictor_v1 import EvictionPolicy, Evictor, make_evictor
from minivllm.utils import Device, InternalError


class BlockAllocatorBase(ABC):
    """Hands out the blocks of one pool and takes them back; all reference counts change here."""

    device: Device
    block_size: int
    num_blocks: int

    @abstractmethod
    def allocate(self, block_hash: int | None = None,
                 num_hashed_tokens: int = 0) -> PhysicalTokenBlock:
        """Return a block with one more reference; of equal content if there is one."""

    @abstractmethod
    def free(self, block: PhysicalTokenBlock) -> None:
        """Take one reference back; the last one makes the block free."""

    def share(self, block: PhysicalTokenBlock) -> None:
        """Add a reference to a block in use."""
        block.ref_count += 1

    @abstractmethod
    def get_num_free_blocks(self) -> int:
        """Return how many blocks can be handed out."""

    def get_num_total_blocks(self) -> int:
        """Return the size of the pool."""
        return self.num_blocks

    @abstractmethod
    def find(self, block_hash: int) -> PhysicalTokenBlock | None:
        """Return the block with this content, be it in use or kept."""

    def contains_block(self, block_hash: int) -> bool:
        """Return True if a block with this content is in use or kept."""
        return self.find(block_hash) is not None

    @abstractmethod
    def update_hash(self, block_hash: int, block: PhysicalTokenBlock) -> None:
        """Give a block in use a new content key."""


# Keys of blocks without a content that others could look for; a swap takes them to the other pool.
_anonymous_keys = count()


def _drop_reference(block: PhysicalTokenBlock) -> None:
    if block.ref_count == 0:
        raise ValueError(f"Double free! {block} is already freed.")
    block.ref_count -= 1


class UncachedBlockAllocator(BlockAllocatorBase):
    """A stack of free blocks, at first with the highest number on top."""

    def __init__(self, device: Device, block_size: int, num_blocks: int) -> None:
        self.device = device
        self.block_size = block_size
        self.num_blocks = num_blocks
        self.free_blocks = [PhysicalTokenBlock(device, number, block_size)
                            for number in range(num_blocks)]

    def allocate(self, block_hash: int | None = None,
                 num_hashed_tokens: int = 0) -> PhysicalTokenBlock:
        """Return the block on top of the stack; the content does not matter.

        Raises
        ------
        ValueError
            If none is free.
        """
        if not self.free_blocks:
            raise ValueError("Out of memory! No free blocks are available.")
        block = self.free_blocks.pop()
        block.ref_count = 1
        return block

    def free(self, block: PhysicalTokenBlock) -> None:
        """Take one reference back; the last one puts the block on top of the stack."""
        _drop_reference(block)
        if block.ref_count == 0:
            self.free_blocks.append(block)

    def get_num_free_blocks(self) -> int:
        """Return how many blocks can be handed out."""
        return len(self.free_blocks)

    def find(self, block_hash: int) -> PhysicalTokenBlock | None:
        """Return None: contents are not known here."""
        return None

    def update_hash(self, block_hash: int, block: PhysicalTokenBlock) -> None:
        """Contents are not known here."""
        raise InternalError("The uncached allocator knows no contents.")


class CachedBlockAllocator(BlockAllocatorBase):
    """Finds blocks by content; keeps those that nobody uses until their place is needed.

    Numbers are handed out 0, 1, 2, ... until all were used once; then blocks are evicted.

    Attributes
    ----------
    cached_blocks : dict of int to PhysicalTokenBlock
        The blocks in use, by content key.
    evictor : Evictor
        The blocks not in use.
    """

    def __init__(self, device: Device, block_size: int, num_blocks: int,
                 eviction_policy: EvictionPolicy = EvictionPolicy.LRU) -> None:
        self.device = device
        self.block_size = block_size
        self.num_blocks = num_blocks
        self.current_num_blocks = 0  # handed out at least once
        self.cached_blocks: dict[int, PhysicalTokenBlock] = {}
        self.evictor: Evictor = make_evictor(eviction_policy)

    def allocate_block(self, block_hash: int, num_hashed_tokens: int) -> PhysicalTokenBlock:
        """Return a block with new content: a fresh one, or an evicted one."""
        if self.current_num_blocks == self.num_blocks:
            block = self.evictor.evict()
            block.block_hash = block_hash
            block.num_hashed_tokens = num_hashed_tokens
            block.unfilled = False
            return block
        block = PhysicalTokenBlock(self.device, self.current_num_blocks, self.block_size,
                                   block_hash, num_hashed_tokens)
        self.current_num_blocks += 1
        return block

    def allocate(self, block_hash: int | None = None,
                 num_hashed_tokens: int = 0) -> PhysicalTokenBlock:
        """Return a block with one more reference; of equal content if there is one."""
        if block_hash is None:
            block_hash = next(_anonymous_keys)
        if block_hash in self.evictor:
            self.cached_blocks[block_hash] = self.evictor.remove(block_hash)
        elif block_hash not in self.cached_blocks:
            self.cached_blocks[block_hash] = self.allocate_block(block_hash, num_hashed_tokens)
        block = self.cached_blocks[block_hash]
        block.ref_count += 1
        return block

    def free(self, block: PhysicalTokenBlock) -> None:
        """Take one reference back; after the last one the content is kept for a while."""
        _drop_reference(block)
        if block.ref_count == 0:
            self.evictor.add(block)
            del self.cached_blocks[block.block_hash]

    def get_num_free_blocks(self) -> int:
        """Return how many blocks can be handed out, those with kept contents included."""
        return self.num_blocks - len(self.cached_blocks)

    def find(self, block_hash: int) -> PhysicalTokenBlock | None:
        """Return the block with this content, be it in use or kept."""
        return self.cached_blocks.get(block_hash) or self.evictor.find(block_hash)

    def update_hash(self, block_hash: int, block: PhysicalTokenBlock) -> None:
        """Give a block in use a new content key."""
        if self.contains_block(block_hash):
            raise InternalError(f"Two blocks of one content: {block_hash}.")
        del self.cached_blocks[block.block_hash]
        block.block_hash = block_hash
        self.cached_blocks[block_hash] = block
