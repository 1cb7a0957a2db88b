"""Logical and physical token blocks (mirrors ``vllm/block.py``).

A sequence is cut into **logical blocks** of ``block_size`` tokens, numbered from 0: block i
holds its tokens ``i * block_size`` up to ``(i + 1) * block_size``.  A **physical block** is a
place in one of the two KV cache pools.  The block manager's *block table* says which physical
block holds which logical one; neighbours in a sequence need not be neighbours in the pool.

vLLM stores the logical blocks beside the tokens.  Here they are a view, cut from the tokens
when somebody looks (`Sequence.logical_token_blocks`): the engine itself needs only their number.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from minivllm.utils import Device

DEFAULT_LAST_ACCESSED_TIME = -1.0


@dataclass(frozen=True)
class LogicalTokenBlock:
    """A run of up to `block_size` neighbouring tokens of one sequence.

    Attributes
    ----------
    block_number : int
        Index in the sequence, from 0.
    block_size : int
        Number of slots.
    token_ids : tuple of int
        The tokens in it; fewer than `block_size` in a sequence's last block.
    """

    block_number: int
    block_size: int
    token_ids: tuple[int, ...]

    @property
    def num_tokens(self) -> int:
        """How many slots are filled."""
        return len(self.token_ids)

    def is_empty(self) -> bool:
        """Return True if no slot is filled."""
        return not self.token_ids

    def is_full(self) -> bool:
        """Return True if every slot is filled."""
        return self.num_tokens == self.block_size

    def get_num_empty_slots(self) -> int:
        """Return how many tokens still fit."""
        return self.block_size - self.num_tokens

    def get_token_ids(self) -> list[int]:
        """Return the tokens in it."""
        return list(self.token_ids)

    def get_last_token_id(self) -> int:
        """Return the last token in it."""
        return self.token_ids[-1]


@dataclass(eq=False, slots=True)
class PhysicalTokenBlock:
    """A place for `block_size` tokens' keys and values in one of the two pools.

    Attributes
    ----------
    device : Device
        Which pool.
    block_number : int
        Index in that pool.
    block_size : int
        Number of slots.
    block_hash : int
        Key of its content in the prefix cache (-1 without prefix caching).
    num_hashed_tokens : int
        How many tokens, from the start of the sequence, that key covers.
    ref_count : int
        How many block tables list it.
    last_accessed : float
        When it was last part of a batch; the evictor takes the oldest.
    computed : bool
        True once others may skip its tokens: their keys and values are in the cache.
    unfilled : bool
        True while a prompt that is computed in chunks has not come to its end.
    """

    device: Device
    block_number: int
    block_size: int
    block_hash: int = -1
    num_hashed_tokens: int = 0
    ref_count: int = 0
    last_accessed: float = DEFAULT_LAST_ACCESSED_TIME
    computed: bool = False
    unfilled: bool = False


class BlockTable(list[PhysicalTokenBlock]):
    """The physical blocks of a sequence: logical block i lives in ``table[i]``.

    Parameters
    ----------
    blocks : iterable of PhysicalTokenBlock, optional
        What is in it at first.

    Attributes
    ----------
    block_numbers : list of int
        Their numbers, kept beside them because every step asks for them.
    num_computed : int
        So many of the first ones are known to be computed; that stays so while they are in use.
    """

    def __init__(self, blocks: Iterable[PhysicalTokenBlock] = ()) -> None:
        super().__init__(blocks)
        self.block_numbers = [block.block_number for block in self]
        self.num_computed = 0

    def append(self, block: PhysicalTokenBlock) -> None:
        """Add the next block."""
        super().append(block)
        self.block_numbers.append(block.block_number)

    def replace_last(self, block: PhysicalTokenBlock) -> None:
        """Put another block in the place of the last one."""
        self[-1] = block
        self.block_numbers[-1] = block.block_number
