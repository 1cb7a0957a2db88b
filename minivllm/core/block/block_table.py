"""The block table of one sequence, flavour 2 (mirrors ``vllm/core/block/block_table.py``)."""

from minivllm.core.block.cpu_gpu_block_allocator import CpuGpuBlockAllocator
from minivllm.core.block.interfaces import Block, BlockId
from minivllm.utils import Device, InternalError, cdiv


class BlockTable:
    """Maps a sequence's tokens to blocks; knows the tokens that it has slots for.

    Parameters
    ----------
    block_size : int
        Tokens per block.
    block_allocator : CpuGpuBlockAllocator
        Hands out the blocks.
    _blocks : list of Block, optional
        The first entries, if they exist already.
    """

    def __init__(self, block_size: int, block_allocator: CpuGpuBlockAllocator,
                 _blocks: list[Block] | None = None) -> None:
        self._block_size = block_size
        self._allocator = block_allocator
        self._blocks = _blocks or []
        self._num_full_slots = sum(len(block.token_ids) for block in self._blocks)

    @staticmethod
    def get_num_required_blocks(token_ids: list[int], block_size: int) -> int:
        """Return how many blocks tokens take, none of them shared."""
        return cdiv(len(token_ids), block_size)

    def allocate(self, token_ids: list[int], device: Device = Device.GPU) -> None:
        """Take blocks for tokens, after those of the entries that exist already."""
        for start in range(self._num_full_slots, len(token_ids), self._block_size):
            chunk = token_ids[start:start + self._block_size]
            prev_block = self._blocks[-1] if self._blocks else None
            if len(chunk) == self._block_size:
                block = self._allocator.allocate_immutable(prev_block, chunk, device)
            else:
                block = self._allocator.allocate_mutable(prev_block, device)
                block.append_token_ids(chunk)
            self._blocks.append(block)
        self._num_full_slots = len(token_ids)

    def append_token_ids(self, token_ids: list[int], num_lookahead_slots: int = 0) -> None:
        """Make slots for more tokens on the GPU and write them down."""
        self.ensure_num_empty_slots(len(token_ids) + num_lookahead_slots)
        start = 0
        while start < len(token_ids):
            block = self._blocks[self._num_full_slots // self._block_size]
            chunk = token_ids[start:start + block.num_empty_slots]
            block.append_token_ids(chunk)
            start += len(chunk)
            self._num_full_slots += len(chunk)

    def ensure_num_empty_slots(self, num_empty_slots: int) -> None:
        """Take as many blocks as it needs for so many tokens."""
        if not self._blocks:
            raise InternalError("Tokens are appended to a table without blocks.")
        missing = self._num_full_slots + num_empty_slots - len(self._blocks) * self._block_size
        for _ in range(cdiv(missing, self._block_size)):
            self._blocks.append(self._allocator.allocate_mutable(self._blocks[-1], Device.GPU))

    def fork(self) -> "BlockTable":
        """Return a table that shares all physical blocks."""
        return self.fork_prefix(len(self._blocks))

    def fork_prefix(self, num_blocks: int) -> "BlockTable":
        """Return a table that shares the first physical blocks."""
        blocks = self._allocator.fork(self._blocks[num_blocks - 1]) if num_blocks else []
        return BlockTable(self._block_size, self._allocator, blocks)

    def free(self) -> None:
        """Give all blocks back."""
        for block in self._blocks:
            self._allocator.free(block)
        self._blocks = []

    @property
    def blocks(self) -> list[Block]:
        """The entries."""
        return self._blocks

    @property
    def physical_block_ids(self) -> list[BlockId]:
        """The ids of the physical blocks."""
        return [block.block_id for block in self._blocks]  # type: ignore[misc]

    @property
    def num_full_slots(self) -> int:
        """How many tokens have slots."""
        return self._num_full_slots

    def get_unseen_token_ids(self, sequence_token_ids: list[int]) -> list[int]:
        """Return the tokens of the sequence that have no slots yet."""
        return sequence_token_ids[self._num_full_slots:]
