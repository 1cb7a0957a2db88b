"""Which unused block to give up first, flavour 1 (mirrors ``vllm/core/evictor_v1.py``)."""

import enum
from abc import ABC, abstractmethod

from minivllm.block import PhysicalTokenBlock


class EvictionPolicy(enum.Enum):
    """Least recently used: the only one."""

    LRU = enum.auto()


class Evictor(ABC):
    """Holds the blocks whose contents are kept although nobody uses them."""

    @abstractmethod
    def __contains__(self, block_hash: int) -> bool:
        ...

    @abstractmethod
    def find(self, block_hash: int) -> PhysicalTokenBlock | None:
        """Return the block with this content, which stays here."""

    @abstractmethod
    def evict(self) -> PhysicalTokenBlock:
        """Choose a block, forget its contents and return it."""

    @abstractmethod
    def add(self, block: PhysicalTokenBlock) -> None:
        """Keep a block that nobody uses any more."""

    @abstractmethod
    def remove(self, block_hash: int) -> PhysicalTokenBlock:
        """Return a block to use it again."""

    @property
    @abstractmethod
    def num_blocks(self) -> int:
        """How many blocks it holds."""


class LRUEvictor(Evictor):
    """Evicts the least recently used block; of several, the one that ends a longest prefix.

    Blocks are released in order of time, so the walk starts at the oldest release and ends at
    the first block accessed later than the best so far.  An earlier access alone does not
    replace the best.
    """

    def __init__(self) -> None:
        self.free_table: dict[int, PhysicalTokenBlock] = {}

    def __contains__(self, block_hash: int) -> bool:
        return block_hash in self.free_table

    def find(self, block_hash: int) -> PhysicalTokenBlock | None:
        """Return the block with this content, which stays here."""
        return self.free_table.get(block_hash)

    def evict(self) -> PhysicalTokenBlock:
        """Choose a block, forget its contents and return it.

        Raises
        ------
        ValueError
            If there is none.
        """
        if not self.free_table:
            raise ValueError("No usable cache memory left: every block is in use.")
        blocks = iter(self.free_table.values())
        best = next(blocks)
        for block in blocks:
            if best.last_accessed < block.last_accessed:
                break
            if best.num_hashed_tokens < block.num_hashed_tokens:
                best = block
        del self.free_table[best.block_hash]
        best.computed = False
        return best

    def add(self, block: PhysicalTokenBlock) -> None:
        """Keep a block that nobody uses any more."""
        self.free_table[block.block_hash] = block

    def remove(self, block_hash: int) -> PhysicalTokenBlock:
        """Return a block to use it again.

        Raises
        ------
        ValueError
            If there is none with this hash.
        """
        if block_hash not in self.free_table:
            raise ValueError(f"No block with hash {block_hash} in the evictor.")
        return self.free_table.pop(block_hash)

    @property
    def num_blocks(self) -> int:
        """How many blocks it holds."""
        return len(self.free_table)


def make_evictor(eviction_policy: EvictionPolicy) -> Evictor:
    """Return an evictor of this policy."""
    if eviction_policy is EvictionPolicy.LRU:
        return LRUEvictor()
    raise ValueError(f"Unknown cache eviction policy: {eviction_policy}.")
