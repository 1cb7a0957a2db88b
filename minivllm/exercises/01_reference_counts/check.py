"""Exercise 01: the check."""

from minivllm.core.block_allocator_v1 import BlockAllocatorBase
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.exercises.grading import Wrong, call, compare_with_real, toy_workload

TITLE = "Hand out blocks and take them back"
CLASS_NAME = "MyManager"
CHAPTER = "tutorials/02-blocks.md"
HINTS = [
    "Two tables may list the same block. Then two of them will give it back, one after the other.",
    "block.ref_count says how many tables list a block. allocate sets it, free counts it down, "
    "and only at 0 does the block belong to self.free_blocks again.",
    "allocate: block = self.free_blocks.pop(); block.ref_count = 1. free: count down, then append "
    "if the count is 0. An empty pool and a block that nobody holds are a ValueError each.",
]

NUM_BLOCKS = 4


def check(manager: type[BlockSpaceManagerV1]) -> str:
    """Try one block by hand, then run the engine with requests that share blocks."""
    pool = manager(4, NUM_BLOCKS, 0).gpu_allocator
    check_allocate(pool)
    check_free(pool)
    check_errors(pool)
    compare_with_real(toy_workload([5, 5, 3], num_gpu_blocks=5), manager)
    trace = compare_with_real(toy_workload([6, 3], num_gpu_blocks=9, n=2, max_tokens=5), manager)
    num_copies = sum(len(snapshot.blocks_to_copy) for snapshot in trace)
    return (f"Yours ran the engine: {len(trace)} steps with shared blocks, {num_copies} copies on "
            "write, and in the end every block was free again.")


def check_allocate(pool: BlockAllocatorBase) -> None:
    """Take one block."""
    block = call(pool.allocate)
    if block is None:
        raise Wrong("allocate returned None; it is to return the block.")
    if block.block_number != NUM_BLOCKS - 1:
        raise Wrong(f"the first block handed out of {NUM_BLOCKS}: expected number "
                    f"{NUM_BLOCKS - 1}, the end of free_blocks, yours is number "
                    f"{block.block_number}. (Any would do, but vLLM takes the end.)")
    if block.ref_count != 1:
        raise Wrong(f"a block that was just handed out: expected ref_count 1, yours has "
                    f"{block.ref_count}. One table lists it.")
    if pool.get_num_free_blocks() != NUM_BLOCKS - 1:
        raise Wrong(f"after one allocate: expected {NUM_BLOCKS - 1} free blocks, yours has "
                    f"{pool.get_num_free_blocks()}.")
    call(pool.free, block)


def check_free(pool: BlockAllocatorBase) -> None:
    """Give a shared block back, one holder after the other."""
    block = call(pool.allocate)
    pool.share(block)
    call(pool.free, block)
    if pool.get_num_free_blocks() == NUM_BLOCKS:
        raise Wrong(f"block {block.block_number} was listed by two tables and one gave it back: "
                    "yours is free again. The next request would write over the keys and values "
                    "that the other table still needs.")
    if block.ref_count != 1:
        raise Wrong(f"block {block.block_number} was listed by two tables and one gave it back: "
                    f"expected ref_count 1, yours has {block.ref_count}.")
    call(pool.free, block)
    if pool.get_num_free_blocks() != NUM_BLOCKS:
        raise Wrong(f"the last table gave block {block.block_number} back: expected {NUM_BLOCKS} "
                    f"free blocks, yours has {pool.get_num_free_blocks()}. The block is lost.")


def check_errors(pool: BlockAllocatorBase) -> None:
    """Ask for too much."""
    blocks = [call(pool.allocate) for _ in range(NUM_BLOCKS)]
    expect_value_error(pool.allocate, (), "allocate from an empty pool")
    for block in blocks:
        call(pool.free, block)
    expect_value_error(pool.free, (blocks[0],), "free of a block that nobody holds")


def expect_value_error(function: object, args: tuple[object, ...], what: str) -> None:
    """Raise unless the call is refused."""
    try:
        function(*args)  # type: ignore[operator]
    except ValueError:
        return
    except Exception as error:
        raise Wrong(f"{what}: expected a ValueError, yours raises {type(error).__name__}: "
                    f"{error}.") from error
    raise Wrong(f"{what}: expected a ValueError, yours raises nothing.")
