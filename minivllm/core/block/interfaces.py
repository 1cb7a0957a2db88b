"""Blocks and their allocators, flavour 2 (mirrors ``vllm/core/block/interfaces.py``).

A `Block` is an entry of one sequence's block table: its tokens, the entry before it, and the id
of the physical block that it stands for.  Several entries can stand for the same physical block.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Optional

BlockId = int


class NoFreeBlocksError(ValueError):
    """A pool has no free block left."""


class Block(ABC):
    """An entry of a block table.

    Attributes
    ----------
    block_id : int or None
        The physical block; None if it has been given back.
    prev_block : Block or None
        The entry before it in the sequence.
    token_ids : list of int
        The tokens whose keys and values are in it.
    block_size : int
        Number of slots.
    """

    block_id: BlockId | None
    prev_block: Optional["Block"]
    token_ids: list[int]
    block_size: int

    @abstractmethod
    def append_token_ids(self, token_ids: list[int]) -> None:
        """Fill more slots, in a copy if others share the physical block."""

    @property
    @abstractmethod
    def content_hash(self) -> int | None:
        """Key of all tokens up to the end of this block, once it is full; None without caching."""

    @property
    def num_empty_slots(self) -> int:
        """How many tokens still fit."""
        return self.block_size - len(self.token_ids)

    @property
    def is_full(self) -> bool:
        """True if every slot is filled."""
        return len(self.token_ids) == self.block_size


class BlockAllocator(ABC):
    """Hands out the physical blocks of one pool and takes them back."""

    NoFreeBlocksError = NoFreeBlocksError

    @abstractmethod
    def allocate_mutable(self, prev_block: Block | None) -> Block:
        """Return an empty block."""

    @abstractmethod
    def allocate_immutable(self, prev_block: Block | None, token_ids: list[int]) -> Block:
        """Return a block full of these tokens."""

    @abstractmethod
    def free(self, block: Block) -> None:
        """Take an entry's reference to its physical block back."""

    @abstractmethod
    def fork(self, last_block: Block) -> list[Block]:
        """Return new entries for the same physical blocks, from the first to this one."""

    @abstractmethod
    def get_num_free_blocks(self) -> int:
        """Return how many blocks can be handed out."""

    @abstractmethod
    def get_num_total_blocks(self) -> int:
        """Return the size of the pool."""

    @property
    @abstractmethod
    def all_block_ids(self) -> Iterable[BlockId]:
        """The ids of the pool's blocks."""

    @abstractmethod
    def cow_block_if_not_appendable(self, block: Block) -> BlockId | None:
        """Give the entry a physical block of its own if others share it; return its id."""

    @abstractmethod
    def clear_copy_on_writes(self) -> list[tuple[BlockId, BlockId]]:
        """Return the copies (source, destination) since the last call."""

    @abstractmethod
    def get_num_blocks_touched(self, blocks: list[Block], num_lookahead_slots: int = 0) -> int:
        """Return how many blocks are not in this pool yet, of entries of the other one."""

    def get_num_blocks_taken(self, blocks: list[Block], source: "BlockAllocator") -> int:
        """Return how many free blocks it takes to move these entries into this pool."""
        return len({block.block_id for block in blocks})

    @abstractmethod
    def move_in(self, block: Block, source: "BlockAllocator") -> None:
        """Give an entry of another pool a physical block of this one, and free the other."""

    @abstractmethod
    def share(self, block: Block, block_id: BlockId) -> None:
        """Let an entry without physical block stand for one in use."""

    @abstractmethod
    def get_refcount(self, block_id: BlockId) -> int:
        """Return how many entries stand for a physical block."""

    @abstractmethod
    def mark_blocks_as_accessed(self, block_ids: list[BlockId], now: float) -> None:
        """Note that blocks were part of a batch; for prefix caching only."""

    @abstractmethod
    def mark_blocks_as_filled(self, block_ids: list[BlockId]) -> None:
        """Note that all tokens of blocks are computed; for prefix caching only."""

    @abstractmethod
    def mark_blocks_as_unfilled(self, block_ids: list[BlockId]) -> None:
        """Note that tokens of blocks are still to be computed; for prefix caching only."""

    def get_common_computed_block_ids(self, seq_block_ids: list[list[BlockId]]) -> list[BlockId]:
        """Return the leading blocks that need not be computed again; none without caching."""
        return []
