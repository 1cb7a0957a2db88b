"""The blocks of a live block manager, as rows for a trace."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from minivllm.core import evictor_v1, evictor_v2
from minivllm.core.block.prefix_caching_block import PrefixCachingBlockAllocator
from minivllm.core.block_allocator_v1 import CachedBlockAllocator
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.core.block_manager_v2 import BlockSpaceManagerV2
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.sequence import Sequence
from minivllm.utils import Device


class BlockRow(NamedTuple):
    """A block in use, or free but cached; see `minivllm.tracing.snapshot.BlockState`."""

    number: int
    ref_count: int
    content_hash: int | None = None


def block_table(manager: BlockSpaceManager, seq: Sequence, device: Device) -> list[int]:
    """Return a sequence's block numbers, counted from 0 in either pool."""
    table = manager.get_block_table(seq)
    if isinstance(manager, BlockSpaceManagerV2):
        return [manager.block_allocator.get_physical_block_id(device, number) for number in table]
    return table


def block_rows(manager: BlockSpaceManager, device: Device,
               tables: list[list[int]]) -> list[BlockRow]:
    """Return the blocks of one pool that are in use or cached, by number.

    Parameters
    ----------
    manager : BlockSpaceManager
        V1, V2, or a class of somebody's own.
    device : Device
        Which pool.
    tables : list of list of int
        The block tables in that pool: all there is to see of an unknown class.
    """
    rows: Iterator[BlockRow]
    if isinstance(manager, BlockSpaceManagerV1):
        rows = _v1_rows(manager, device)
    elif isinstance(manager, BlockSpaceManagerV2):
        rows = _v2_rows(manager, device)
    else:
        counts = Counter(number for table in tables for number in table)
        rows = (BlockRow(number, count) for number, count in counts.items())
    return sorted(rows)


def _v1_rows(manager: BlockSpaceManagerV1, device: Device) -> Iterator[BlockRow]:
    allocator = manager.gpu_allocator if device is Device.GPU else manager.cpu_allocator
    blocks = {block for table in manager.block_tables.values() for block in table
              if block.device is device}
    is_caching = isinstance(allocator, CachedBlockAllocator)
    if isinstance(allocator, CachedBlockAllocator) and isinstance(allocator.evictor,
                                                                  evictor_v1.LRUEvictor):
        blocks.update(allocator.evictor.free_table.values())
    for block in blocks:
        yield BlockRow(block.block_number, block.ref_count,
                       block.block_hash if is_caching else None)


def _v2_rows(manager: BlockSpaceManagerV2, device: Device) -> Iterator[BlockRow]:
    allocator = manager.block_allocator.get_allocator(device)

    def number(block_id: int) -> int:
        return manager.block_allocator.get_physical_block_id(device, block_id)

    own_ids = set(allocator.all_block_ids)
    in_use = {block.block_id: block.content_hash for table in manager.block_tables.values()
              for block in table.blocks if block.block_id in own_ids}
    for block_id, content_hash in in_use.items():
        if block_id is not None:
            yield BlockRow(number(block_id), allocator.get_refcount(block_id), content_hash)
    if isinstance(allocator, PrefixCachingBlockAllocator) and isinstance(allocator.evictor,
                                                                         evictor_v2.LRUEvictor):
        for block_id, kept in allocator.evictor.free_table.items():
            yield BlockRow(number(block_id), 0, kept.content_hash)
