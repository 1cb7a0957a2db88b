"""The blocks of a live block manager, as rows for a trace."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from minivllm.core.block_allocator_v1 import CachedBlockAllocator
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.core.evictor_v1 import LRUEvictor
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.utils import Device


class BlockRow(NamedTuple):
    """A block in use, or free but cached; see `minivllm.tracing.snapshot.BlockState`."""

    number: int
    ref_count: int
    content_hash: int | None = None
    computed: bool = False


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
    if isinstance(manager, BlockSpaceManagerV1):
        rows = _v1_rows(manager, device)
    else:
        counts = Counter(number for table in tables for number in table)
        rows = (BlockRow(number, count) for number, count in counts.items())
    return sorted(rows)


def _v1_rows(manager: BlockSpaceManagerV1, device: Device) -> Iterator[BlockRow]:
    allocator = manager.gpu_allocator if device is Device.GPU else manager.cpu_allocator
    is_cached = isinstance(allocator, CachedBlockAllocator)
    blocks = {block for table in manager.block_tables.values() for block in table
              if block.device is device}
    if isinstance(allocator, CachedBlockAllocator) and isinstance(allocator.evictor, LRUEvictor):
        blocks.update(allocator.evictor.free_table.values())
    for block in blocks:
        content_hash = block.block_hash if is_cached else None
        yield BlockRow(block.block_number, block.ref_count, content_hash, block.computed)
