"""Blocks without prefix caching, flavour 2 (mirrors ``vllm/core/block/naive_block.py``)."""

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from minivllm.core.block.common import (
    CopyOnWriteTracker,
    RefCounter,
    get_all_blocks_recursively,
)
from minivllm.core.block.interfaces import Block, BlockAllocator, BlockId, NoFreeBlocksError
from minivllm.utils import InternalError


class BlockFactory(Protocol):
    """Makes the entries that an allocator hands out."""

    def __call__(self, prev_block: Block | None, token_ids: list[int], block_size: int,
                 allocator: BlockAllocator, block_id: BlockId | None = None) -> Block:
        """Return a new entry."""


class NaiveBlock(Block):
    """An entry of a block table that knows its tokens but no content key."""

    def __init__(self, prev_block: Block | None, token_ids: list[int], block_size: int,
                 allocator: BlockAllocator, block_id: BlockId | None = None) -> None:
        self.prev_block = prev_block
        self.token_ids = list(token_ids)
        self.block_size = block_size
        self.block_id = block_id
        self._allocator = allocator

    def append_token_ids(self, token_ids: list[int]) -> None:
        """Fill more slots, in a copy if others share the physical block."""
        if len(token_ids) > self.num_empty_slots:
            raise InternalError(f"{len(token_ids)} tokens for {self.num_empty_slots} empty slots "
                                f"of block {self.block_id}.")
        self.token_ids.extend(token_ids)
        self.block_id = self._allocator.cow_block_if_not_appendable(self)

    @property
    def content_hash(self) -> int | None:
        """None: contents are not looked for."""
        return None


class NaiveBlockAllocator(BlockAllocator):
    """A queue of free blocks: the one that has been free for longest goes first.

    Parameters
    ----------
    create_block : callable
        Makes the entries: `NaiveBlock`, or what an allocator on top of this one wants.
    num_blocks : int
        Size of the pool.
    block_size : int
        Tokens per block.
    block_ids : iterable of int, optional
        The ids; default 0, 1, 2, ...
    """

    def __init__(self, create_block: BlockFactory, num_blocks: int, block_size: int,
                 block_ids: Iterable[BlockId] | None = None) -> None:
        self._all_block_ids = list(range(num_blocks) if block_ids is None else block_ids)
        if len(self._all_block_ids) != num_blocks:
            raise ValueError(f"{num_blocks} blocks, but {len(self._all_block_ids)} ids.")
        self._free_block_ids = deque(self._all_block_ids)
        self._create_block = create_block
        self._block_size = block_size
        self.refcounter = RefCounter(self._all_block_ids)
        self._cow_tracker = CopyOnWriteTracker(self.refcounter, self)

    def allocate_mutable(self, prev_block: Block | None) -> Block:
        """Return an empty block."""
        return self._create_block(prev_block=prev_block, token_ids=[],
                                  block_size=self._block_size, allocator=self,
                                  block_id=self.allocate_block_id())

    def allocate_immutable(self, prev_block: Block | None, token_ids: list[int]) -> Block:
        """Return a block full of these tokens."""
        block = self.allocate_mutable(prev_block)
        block.append_token_ids(token_ids)
        return block

    def allocate_block_id(self) -> BlockId:
        """Return a free block's id, with one reference."""
        if not self._free_block_ids:
            raise NoFreeBlocksError("No free blocks are available.")
        block_id = self._free_block_ids.popleft()
        self.refcounter.incr(block_id)
        return block_id

    def free_block_id(self, block_id: BlockId) -> None:
        """Take one reference back; the last one puts the block at the end of the queue."""
        if self.refcounter.decr(block_id) == 0:
            self._free_block_ids.append(block_id)

    def free(self, block: Block) -> None:
        """Take an entry's reference to its physical block back."""
        if block.block_id is None:
            raise InternalError("An entry without physical block is freed.")
        self.free_block_id(block.block_id)
        block.block_id = None

    def fork(self, last_block: Block) -> list[Block]:
        """Return new entries for the same physical blocks, from the first to this one."""
        forked: list[Block] = []
        for block in get_all_blocks_recursively(last_block):
            copy = self._create_block(prev_block=forked[-1] if forked else None,
                                      token_ids=block.token_ids, block_size=self._block_size,
                                      allocator=self)
            if block.block_id is None:
                raise InternalError("A freed block is forked.")
            self.share(copy, block.block_id)
            forked.append(copy)
        return forked

    def share(self, block: Block, block_id: BlockId) -> None:
        """Let an entry without physical block stand for one in use."""
        self.refcounter.incr(block_id)
        block.block_id = block_id

    def move_in(self, block: Block, source: BlockAllocator) -> None:
        """Give an entry of another pool a physical block of this one, and free the other."""
        source.free(block)
        block.block_id = self.allocate_block_id()

    def get_num_free_blocks(self) -> int:
        """Return how many blocks can be handed out."""
        return len(self._free_block_ids)

    def get_num_total_blocks(self) -> int:
        """Return the size of the pool."""
        return len(self._all_block_ids)

    @property
    def all_block_ids(self) -> list[BlockId]:
        """The ids of the pool's blocks."""
        return self._all_block_ids

    def get_refcount(self, block_id: BlockId) -> int:
        """Return how many entries stand for a physical block."""
        return self.refcounter.get(block_id)

    def cow_block_if_not_appendable(self, block: Block) -> BlockId | None:
        """Give the entry a physical block of its own if others share it; return its id."""
        return self._cow_tracker.cow_block_if_not_appendable(block)

    def clear_copy_on_writes(self) -> list[tuple[BlockId, BlockId]]:
        """Return the copies (source, destination) since the last call."""
        return self._cow_tracker.clear_cows()

    def get_num_blocks_touched(self, blocks: list[Block], num_lookahead_slots: int = 0) -> int:
        """Return how many blocks are not in this pool yet, of entries of the other one."""
        return len({block.block_id for block in blocks})

    def mark_blocks_as_accessed(self, block_ids: list[BlockId], now: float) -> None:
        """Do nothing: only prefix caching wants to know."""

    def mark_blocks_as_filled(self, block_ids: list[BlockId]) -> None:
        """Do nothing: only prefix caching wants to know."""

    def mark_blocks_as_unfilled(self, block_ids: list[BlockId]) -> None:
        """Do nothing: only prefix caching wants to know."""
