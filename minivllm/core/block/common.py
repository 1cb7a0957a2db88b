"""Reference counts and copy-on-write (mirrors ``vllm/core/block/common.py``)."""

from collections.abc import Iterable

from minivllm.core.block.interfaces import Block, BlockAllocator, BlockId
from minivllm.utils import InternalError


class RefCounter:
    """How many entries of block tables stand for each physical block.

    Parameters
    ----------
    all_block_indices : iterable of int
        The ids of the pool.
    """

    def __init__(self, all_block_indices: Iterable[BlockId]) -> None:
        self._refcounts = dict.fromkeys(all_block_indices, 0)

    def incr(self, block_id: BlockId) -> int:
        """Count one more; return the new count."""
        self._refcounts[block_id] += 1
        return self._refcounts[block_id]

    def decr(self, block_id: BlockId) -> int:
        """Count one less; return the new count."""
        if self._refcounts[block_id] == 0:
            raise InternalError(f"Block {block_id} is freed twice.")
        self._refcounts[block_id] -= 1
        return self._refcounts[block_id]

    def get(self, block_id: BlockId) -> int:
        """Return the count."""
        return self._refcounts[block_id]


class CopyOnWriteTracker:
    """Gives writers a block of their own, and lists what has to be copied.

    Parameters
    ----------
    refcounter : RefCounter
        Says who shares.
    allocator : BlockAllocator
        Frees the old block and hands out the new one.
    """

    def __init__(self, refcounter: RefCounter, allocator: BlockAllocator) -> None:
        self._refcounter = refcounter
        self._allocator = allocator
        self._copy_on_writes: list[tuple[BlockId, BlockId]] = []

    def cow_block_if_not_appendable(self, block: Block) -> BlockId | None:
        """Give the entry a physical block of its own if others share it; return its id."""
        source = block.block_id
        if source is None or self._refcounter.get(source) == 1:
            return source
        self._allocator.free(block)
        destination = self._allocator.allocate_mutable(block.prev_block).block_id
        if destination is None:
            raise InternalError("A new block has no id.")
        self._copy_on_writes.append((source, destination))
        return destination

    def clear_cows(self) -> list[tuple[BlockId, BlockId]]:
        """Return the copies (source, destination) since the last call."""
        cows, self._copy_on_writes = self._copy_on_writes, []
        return cows


def get_all_blocks_recursively(last_block: Block) -> list[Block]:
    """Return the entries of a table from the first to this one."""
    blocks = []
    block: Block | None = last_block
    while block is not None:
        blocks.append(block)
        block = block.prev_block
    return blocks[::-1]
