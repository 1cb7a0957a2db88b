"""Which unused block to give up first, flavour 2 (mirrors ``vllm/core/evictor_v2.py``)."""

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass


class EvictionPolicy(enum.Enum):
    """Least recently used: the only one."""

    LRU = enum.auto()


class Evictor(ABC):
    """Holds the blocks whose contents are kept although nobody uses them."""

    @abstractmethod
    def __contains__(self, block_id: int) -> bool:
        ...

    @abstractmethod
    def evict(self) -> tuple[int, int]:
        """Choose a block, forget it and return its id and content hash."""

    @abstractmethod
    def add(self, block_id: int, content_hash: int, num_hashed_tokens: int,
            last_accessed: float) -> None:
        """Keep a block that nobody uses any more."""

    @abstractmethod
    def update(self, block_id: int, last_accessed: float) -> None:
        """Note a later access."""

    @abstractmethod
    def remove(self, block_id: int) -> None:
        """Forget a block that is used again."""

    @property
    @abstractmethod
    def num_blocks(self) -> int:
        """How many blocks it holds."""


@dataclass(slots=True)
class BlockMetaData:
    """What decides about eviction."""

    content_hash: int
    num_hashed_tokens: int
    last_accessed: float


class LRUEvictor(Evictor):
    """Evicts the least recently used block; of several, the one that ends a longest prefix.

    Of equal ones the first to be released goes.
    """

    def __init__(self) -> None:
        self.free_table: dict[int, BlockMetaData] = {}

    def __contains__(self, block_id: int) -> bool:
        return block_id in self.free_table

    def evict(self) -> tuple[int, int]:
        """Choose a block, forget it and return its id and content hash.

        Raises
        ------
        ValueError
            If there is none.
        """
        if not self.free_table:
            raise ValueError("No usable cache memory left: every block is in use.")
        block_id = min(self.free_table, key=self._age)
        return block_id, self.free_table.pop(block_id).content_hash

    def _age(self, block_id: int) -> tuple[float, int]:
        block = self.free_table[block_id]
        return block.last_accessed, -block.num_hashed_tokens

    def add(self, block_id: int, content_hash: int, num_hashed_tokens: int,
            last_accessed: float) -> None:
        """Keep a block that nobody uses any more."""
        self.free_table[block_id] = BlockMetaData(content_hash, num_hashed_tokens, last_accessed)

    def update(self, block_id: int, last_accessed: float) -> None:
        """Note a later access."""
        self.free_table[block_id].last_accessed = last_accessed

    def remove(self, block_id: int) -> None:
        """Forget a block that is used again.

        Raises
        ------
        ValueError
            If it is not here.
        """
        if block_id not in self.free_table:
            raise ValueError(f"Block {block_id} is not in the evictor.")
        del self.free_table[block_id]

    @property
    def num_blocks(self) -> int:
        """How many blocks it holds."""
        return len(self.free_table)


def make_evictor(eviction_policy: EvictionPolicy) -> Evictor:
    """Return an evictor of this policy."""
    if eviction_policy is EvictionPolicy.LRU:
        return LRUEvictor()
    raise ValueError(f"Unknown cache eviction policy: {eviction_policy}.")
