"""Blocks found by content, flavour 2 (mirrors ``vllm/core/block/prefix_caching_block.py``).

Full blocks have a content key: a hash chained from block to block.  A full block is registered
under its key; whoever needs the same content gets the same physical block.  Registered blocks
that nobody uses stay until their place is needed.

Beyond vLLM: an evicted block is not taken for computed, and a block whose tokens are still being
computed (chunked prefill) is shared but never taken for computed.
"""

from collections.abc import Iterable
from itertools import takewhile
from os.path import commonprefix

from minivllm.block import DEFAULT_LAST_ACCESSED_TIME
from minivllm.core.block.common import CopyOnWriteTracker
from minivllm.core.block.interfaces import Block, BlockAllocator, BlockId, NoFreeBlocksError
from minivllm.core.block.naive_block import NaiveBlock, NaiveBlockAllocator
from minivllm.core.evictor_v2 import EvictionPolicy, Evictor, make_evictor
from minivllm.utils import InternalError


class PrefixCachingBlock(NaiveBlock):
    """An entry of a block table with a content key.

    Attributes
    ----------
    computed : bool
        The physical block was in the cache when this entry took it.
    last_accessed : float
        When it was last part of a batch.
    num_tokens_total : int
        How many tokens there are up to the end of this block, if it is full.
    """

    def __init__(self, prev_block: Block | None, token_ids: list[int], block_size: int,
                 prefix_caching_allocator: "PrefixCachingBlockAllocator",
                 block_id: BlockId | None = None, computed: bool = False) -> None:
        super().__init__(prev_block, token_ids, block_size, prefix_caching_allocator, block_id)
        self._prefix_caching_allocator = prefix_caching_allocator
        self._content_hash: int | None = None
        self.computed = computed
        self.last_accessed = DEFAULT_LAST_ACCESSED_TIME
        before = prev_block.num_tokens_total if isinstance(prev_block, PrefixCachingBlock) else 0
        self.num_tokens_total: int = before + block_size

    def append_token_ids(self, token_ids: list[int]) -> None:
        """Fill more slots, in a copy if others share the block; register it once it is full."""
        super().append_token_ids(token_ids)
        if self.content_hash is not None and self.block_id is not None:
            self.block_id = self._prefix_caching_allocator.promote_to_immutable_block(self)

    @property
    def content_hash(self) -> int | None:
        """Key of all tokens up to the end of this block, once it is full."""
        if self._content_hash is None and self.is_full:
            prev_hash = None if self.prev_block is None else self.prev_block.content_hash
            if self.prev_block is None or prev_hash is not None:
                self._content_hash = self.hash_block_tokens(self.prev_block is None, prev_hash,
                                                            self.token_ids)
        return self._content_hash

    @staticmethod
    def hash_block_tokens(is_first_block: bool, prev_block_hash: int | None,
                          cur_block_token_ids: list[int]) -> int:
        """Return the key of a full block after one with key `prev_block_hash`."""
        return hash((is_first_block, prev_block_hash, *cur_block_token_ids))


class PrefixCachingBlockAllocator(BlockAllocator):
    """Hands out blocks by content; evicts unused ones when no fresh ones are left.

    Parameters
    ----------
    num_blocks : int
        Size of the pool.
    block_size : int
        Tokens per block.
    block_ids : iterable of int, optional
        The ids; default 0, 1, 2, ...
    eviction_policy : EvictionPolicy
        Which unused block goes first.
    """

    def __init__(self, num_blocks: int, block_size: int,
                 block_ids: Iterable[BlockId] | None = None,
                 eviction_policy: EvictionPolicy = EvictionPolicy.LRU) -> None:
        self._block_size = block_size
        # Registered blocks by content key, used or not.
        self._cached_blocks: dict[int, BlockId] = {}
        # For each block in use the entry that took it first; its `last_accessed` is kept up to
        # date, and its `computed` counts.
        self._blocks: dict[BlockId, PrefixCachingBlock] = {}
        # Full blocks with tokens still to be computed.
        self._unfilled: set[BlockId] = set()
        self._hashless_allocator = NaiveBlockAllocator(self._create_block, num_blocks, block_size,
                                                       block_ids)
        self._refcounter = self._hashless_allocator.refcounter
        self._cow_tracker = CopyOnWriteTracker(self._refcounter, self)
        self.evictor: Evictor = make_evictor(eviction_policy)

    def _create_block(self, prev_block: Block | None, token_ids: list[int], block_size: int,
                      allocator: BlockAllocator,
                      block_id: BlockId | None = None) -> PrefixCachingBlock:
        return PrefixCachingBlock(prev_block, token_ids, block_size, self, block_id)

    def allocate_immutable(self, prev_block: Block | None, token_ids: list[int]) -> Block:
        """Return a block full of these tokens: a registered one if there is one."""
        block = self._create_block(prev_block, token_ids, self._block_size, self)
        cached = self._cached_blocks.get(self._hash_of(block))
        if cached is not None:
            self._take_cached_block(block, cached)
            return block
        block = self.allocate_mutable(prev_block)
        block.append_token_ids(token_ids)
        return block

    def allocate_mutable(self, prev_block: Block | None) -> PrefixCachingBlock:
        """Return an empty block, if need be an evicted one."""
        block = self._create_block(prev_block, [], self._block_size, self,
                                   self._allocate_block_id())
        self._blocks[self._id_of(block)] = block
        return block

    def _allocate_block_id(self) -> BlockId:
        if self._hashless_allocator.get_num_free_blocks():
            return self._hashless_allocator.allocate_block_id()
        if not self.evictor.num_blocks:
            raise NoFreeBlocksError("No free blocks are available.")
        block_id, content_hash = self.evictor.evict()
        del self._cached_blocks[content_hash]
        self._unfilled.discard(block_id)
        self._refcounter.incr(block_id)
        return block_id

    def _take_cached_block(self, block: PrefixCachingBlock, block_id: BlockId) -> None:
        """Let an entry stand for a registered block."""
        block.block_id = block_id
        block.computed = block_id not in self._unfilled
        if self._refcounter.incr(block_id) == 1:
            self.evictor.remove(block_id)
            self._blocks[block_id] = block

    def promote_to_immutable_block(self, block: Block) -> BlockId:
        """Register a block that has become full; return its id.

        If there is an equal one already, take that and free the entry's own.
        """
        own, content_hash = self._id_of(block), self._hash_of(block)
        cached = self._cached_blocks.setdefault(content_hash, own)
        if cached == own or cached in self._unfilled or not isinstance(block, PrefixCachingBlock):
            return own
        self._free_hashless(block)
        self._take_cached_block(block, cached)
        return cached

    def free(self, block: Block) -> None:
        """Take an entry's reference back; a registered block is kept when the last one goes."""
        block_id, content_hash = self._id_of(block), block.content_hash
        if content_hash is None or self._cached_blocks.get(content_hash) != block_id:
            self._free_hashless(block)
            return
        block.block_id = None
        if self._refcounter.decr(block_id) == 0 and isinstance(block, PrefixCachingBlock):
            del self._blocks[block_id]
            self.evictor.add(block_id, content_hash, block.num_tokens_total, block.last_accessed)

    def _free_hashless(self, block: Block) -> None:
        """Take back a reference to a block that is not registered."""
        block_id = self._id_of(block)
        if self._refcounter.get(block_id) == 1:
            del self._blocks[block_id]
            self._unfilled.discard(block_id)
        self._hashless_allocator.free(block)

    def fork(self, last_block: Block) -> list[Block]:
        """Return new entries for the same physical blocks, from the first to this one."""
        return self._hashless_allocator.fork(last_block)

    def share(self, block: Block, block_id: BlockId) -> None:
        """Let an entry without physical block stand for one in use."""
        self._hashless_allocator.share(block, block_id)

    def move_in(self, block: Block, source: BlockAllocator) -> None:
        """Give an entry of another pool a physical block of this one, and free the other.

        A full block is looked for by content, unless its tokens are still being computed.
        """
        by_content = self._moves_by_content(block, source)
        source.free(block)
        if by_content:
            block.block_id = self.allocate_immutable(block.prev_block, block.token_ids).block_id
            return
        block.block_id = self.allocate_mutable(block.prev_block).block_id
        if block.is_full:
            self._unfilled.add(self._id_of(block))

    @staticmethod
    def _moves_by_content(block: Block, source: BlockAllocator) -> bool:
        unfilled = isinstance(source, PrefixCachingBlockAllocator) and (
            block.block_id in source._unfilled)
        return block.is_full and not unfilled

    def get_num_free_blocks(self) -> int:
        """Return how many blocks can be handed out, those with kept contents included."""
        return self._hashless_allocator.get_num_free_blocks() + self.evictor.num_blocks

    def get_num_total_blocks(self) -> int:
        """Return the size of the pool."""
        return self._hashless_allocator.get_num_total_blocks()

    @property
    def all_block_ids(self) -> list[BlockId]:
        """The ids of the pool's blocks."""
        return self._hashless_allocator.all_block_ids

    def get_refcount(self, block_id: BlockId) -> int:
        """Return how many entries stand for a physical block."""
        return self._refcounter.get(block_id)

    def is_block_cached(self, block: Block) -> bool:
        """Return True if a block of this content is registered."""
        return block.content_hash in self._cached_blocks

    def cow_block_if_not_appendable(self, block: Block) -> BlockId | None:
        """Give the entry a physical block of its own if others share it; return its id."""
        return self._cow_tracker.cow_block_if_not_appendable(block)

    def clear_copy_on_writes(self) -> list[tuple[BlockId, BlockId]]:
        """Return the copies (source, destination) since the last call."""
        return self._cow_tracker.clear_cows()

    def mark_blocks_as_accessed(self, block_ids: list[BlockId], now: float) -> None:
        """Note that blocks were part of a batch; unused ones age from now on."""
        for block_id in block_ids:
            if block_id in self._blocks:
                self._blocks[block_id].last_accessed = now
            elif block_id in self.evictor:
                self.evictor.update(block_id, now)
            else:
                raise ValueError(f"Block {block_id} is neither in use nor kept.")

    def mark_blocks_as_computed(self, block_ids: list[BlockId]) -> None:
        """Let whoever takes these blocks skip their tokens (those that are full)."""
        for block_id in block_ids:
            if block_id in self._blocks:
                self._blocks[block_id].computed |= self._blocks[block_id].is_full
            elif block_id not in self.evictor:
                raise ValueError(f"Block {block_id} is neither in use nor kept.")

    def mark_blocks_as_filled(self, block_ids: list[BlockId]) -> None:
        """Note that all tokens of blocks are computed."""
        self._unfilled.difference_update(block_ids)

    def mark_blocks_as_unfilled(self, block_ids: list[BlockId]) -> None:
        """Note that tokens of blocks are still to be computed."""
        self._unfilled.update(block_id for block_id in block_ids
                              if not self.block_is_computed(block_id))

    def block_is_computed(self, block_id: BlockId) -> bool:
        """Return True if the block was computed when its first user took it, or is unused."""
        if block_id in self._blocks:
            return self._blocks[block_id].computed
        return block_id in self.evictor

    def get_common_computed_block_ids(self, seq_block_ids: list[list[BlockId]]) -> list[BlockId]:
        """Return the leading computed blocks that all sequences have; never a last one."""
        computed = [list(takewhile(self.block_is_computed, ids[:-1])) for ids in seq_block_ids]
        return list(commonprefix([ids for ids in computed if ids]))

    def get_num_blocks_touched(self, blocks: list[Block], num_lookahead_slots: int = 0) -> int:
        """Return how many blocks are not here yet, of entries of another pool."""
        return len({block.block_id for block in blocks
                    if not (block.is_full and self.is_block_cached(block))})

    def get_num_blocks_taken(self, blocks: list[Block], source: BlockAllocator) -> int:
        """Return how many free blocks it takes to move these entries into this pool.

        Blocks that are here and in use take none; those that are here but unused count as free.
        """
        in_use = {block.block_id for block in blocks
                  if self._moves_by_content(block, source) and self.is_block_cached(block)
                  and self._refcounter.get(self._cached_blocks[self._hash_of(block)]) > 0}
        return len({block.block_id for block in blocks} - in_use)

    @staticmethod
    def _id_of(block: Block) -> BlockId:
        if block.block_id is None:
            raise InternalError("An entry has no physical block.")
        return block.block_id

    @staticmethod
    def _hash_of(block: Block) -> int:
        if block.content_hash is None:
            raise InternalError(f"Block {block.block_id} is not full.")
        return block.content_hash
