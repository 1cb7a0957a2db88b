"""Answers that learners typically give at first, and a part of the message each must get."""

import numpy as np

from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.core.block_allocator_v1 import UncachedBlockAllocator
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.sequence import SequenceStatus
from minivllm.utils import Device


def manager_with(allocator):
    """Return a block manager whose GPU pool has this allocator."""
    class Manager(BlockSpaceManagerV1):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.gpu_allocator = allocator(Device.GPU, self.block_size,
                                           self.num_total_gpu_blocks)
    return Manager


class ForgetsTheCount(UncachedBlockAllocator):
    def allocate(self, block_hash=None, num_hashed_tokens=0):
        return self.free_blocks.pop()


class FreesSharedBlocks(UncachedBlockAllocator):
    def free(self, block):
        block.ref_count -= 1
        self.free_blocks.append(block)


class NeverFrees(UncachedBlockAllocator):
    def free(self, block):
        if block.ref_count == 0:
            raise ValueError
        block.ref_count -= 1


class TakesTheFront(UncachedBlockAllocator):
    def allocate(self, block_hash=None, num_hashed_tokens=0):
        block = self.free_blocks.pop(0)
        block.ref_count = 1
        return block


class AllowsDoubleFree(UncachedBlockAllocator):
    def free(self, block):
        block.ref_count -= 1
        if block.ref_count == 0:
            self.free_blocks.append(block)


class ReturnsNothing(UncachedBlockAllocator):
    def allocate(self, block_hash=None, num_hashed_tokens=0):
        self.free_blocks.pop().ref_count = 1


def backend_with(weights_of, slot_of=None, last=None, kv_head_of=None):
    """Return a backend whose loop has one part replaced."""
    slot_of = slot_of or (lambda table, p, size: (table[p // size], p % size))
    last = last or (lambda seq_len, size: seq_len)
    kv_head_of = kv_head_of or (lambda head, group, kv_heads: head // group)

    class Backend(NumpyAttentionBackend):
        @staticmethod
        def paged_attention(query, kv_cache, block_tables, seq_lens, scale, sliding_window, out):
            size, kv_heads = kv_cache.shape[3], kv_cache.shape[2]
            group = query.shape[1] // kv_heads
            for i, head in np.ndindex(query.shape[:2]):
                kv_head = kv_head_of(head, group, kv_heads)
                places = [slot_of(block_tables[i], p, size)
                          for p in range(last(seq_lens[i], size))]
                keys = np.array([kv_cache[0, b, kv_head, o] for b, o in places])
                values = np.array([kv_cache[1, b, kv_head, o] for b, o in places])
                out[i, head] = weights_of(keys @ query[i, head], scale) @ values
    return Backend


def softmax(scores, scale):
    weights = np.exp(scores * scale - (scores * scale).max())
    return weights / weights.sum()


def no_scale(scores, scale):
    return softmax(scores, 1.0)


def not_normalised(scores, scale):
    return np.exp(scores * scale)


def whole_blocks(seq_len, size):
    return -(-seq_len // size) * size


def without_the_table(table, p, size):
    return p // size, p % size


def all_but_the_newest(seq_len, size):
    return seq_len - 1


def alternating(head, group, kv_heads):
    return head % kv_heads


class OnlyIfNeeded(BlockSpaceManagerV1):
    def can_append_slots(self, seq_group, num_lookahead_slots=0):
        return self.num_blocks_to_append(seq_group) <= self.get_num_free_gpu_blocks()


class Always(BlockSpaceManagerV1):
    def can_append_slots(self, seq_group, num_lookahead_slots=0):
        return True


class OneTooMany(BlockSpaceManagerV1):
    def can_append_slots(self, seq_group, num_lookahead_slots=0):
        return seq_group.num_seqs(SequenceStatus.RUNNING) < self.get_num_free_gpu_blocks()


class OnePerRequest(BlockSpaceManagerV1):
    def can_append_slots(self, seq_group, num_lookahead_slots=0):
        return self.get_num_free_gpu_blocks() >= 1


class CountsFinishedSequences(BlockSpaceManagerV1):
    def can_append_slots(self, seq_group, num_lookahead_slots=0):
        return seq_group.num_seqs() <= self.get_num_free_gpu_blocks()


class Misspells(BlockSpaceManagerV1):
    def can_append_slots(self, seq_group, num_lookahead_slots=0):
        return seq_group.num_running() <= 1


# (exercise, answer, what its message must say)
WRONG = [
    ("01", manager_with(ForgetsTheCount), "expected ref_count 1, yours has 0"),
    ("01", manager_with(FreesSharedBlocks), "listed by two tables and one gave it back"),
    ("01", manager_with(NeverFrees), "yours has 2"),
    ("01", manager_with(TakesTheFront), "the end of free_blocks, yours is number 0"),
    ("01", manager_with(AllowsDoubleFree), "free of a block that nobody holds: expected a Value"),
    ("01", manager_with(ReturnsNothing), "allocate returned None"),
    ("02", backend_with(softmax, last=whole_blocks), "yours read slot 6 (block 1, place 2): no "),
    ("02", backend_with(softmax, slot_of=without_the_table), "yours read slot 0 (block 0"),
    ("02", backend_with(softmax, last=all_but_the_newest), "did not read slot 5 (block 1"),
    ("02", backend_with(no_scale), "Scores times scale"),
    ("02", backend_with(not_normalised), "its weights sum to 1"),
    ("02", backend_with(softmax, kv_head_of=alternating), "own KV head, head // 2"),
    ("03", OnlyIfNeeded, "step 2, r2: expected preempted, yours decodes it. In the real one, r2 is "
                         "preempted by recompute (free blocks): the check wants 1 free block "
                         "before r0 goes on (here r0 needs none), 0 of 5 are free."),
    ("03", Always, "step 2, r2: expected preempted, yours decodes it."),
    ("03", OneTooMany, "In yours, r1 is preempted by recompute (free blocks): the check wants 1 "
                       "free block before r0 goes on"),
    ("03", OnePerRequest, "step 2: ValueError: Out of memory! No free blocks are available. In the "
                          "real one, r1 is swapped out (free blocks): the check wants 2 free "
                          "blocks before r0 goes on"),
    ("03", CountsFinishedSequences, "expected decoded, yours preempts it"),
    ("03", Misspells, "no attribute 'num_running' (line "),
]
