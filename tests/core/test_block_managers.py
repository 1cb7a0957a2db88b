"""Block tables from a prompt to the end: what both flavours do, and what each does its way."""

import pytest

from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.core.block_manager_v2 import BlockSpaceManagerV2
from minivllm.core.embedding_model_block_manager import EmbeddingModelBlockSpaceManager
from minivllm.core.interfaces import AllocStatus, BlockSpaceManager
from minivllm.sequence import Logprob, Sequence, SequenceGroup, SequenceStatus
from tests.core.driver import make_group

BOTH = pytest.mark.parametrize("manager_class", [BlockSpaceManagerV1, BlockSpaceManagerV2])


def start(manager: BlockSpaceManager, prompt: list[int], seq_id: int = 0) -> SequenceGroup:
    """Give a new request its blocks and let it run; its prompt is computed."""
    group = make_group(f"r{seq_id}", prompt, seq_id=seq_id)
    manager.allocate(group)
    manager.mark_blocks_as_computed(group)
    seq = group.get_seqs()[0]
    seq.status = SequenceStatus.RUNNING
    seq.data.update_num_computed_tokens(len(prompt))
    return group


def append(manager: BlockSpaceManager, seq: Sequence, token: int) -> list[tuple[int, int]]:
    seq.append_token_id(token, {token: Logprob(-1.0)})
    return manager.append_slots(seq, 0)


def fork(manager: BlockSpaceManager, group: SequenceGroup, new_id: int) -> Sequence:
    parent = group.get_seqs()[0]
    child = parent.fork(new_id)
    group.add(child)
    manager.fork(parent, child)
    return child


class TestBoth:
    @BOTH
    def test_a_prompt_gets_blocks_for_its_tokens(self, manager_class):
        manager = manager_class(4, 10, 0)
        group = start(manager, list(range(9)))
        assert len(manager.get_block_table(group.get_seqs()[0])) == 3
        assert manager.get_num_free_gpu_blocks() == 7
        manager.free(group.get_seqs()[0])
        manager.free(group.get_seqs()[0])  # nothing left to give back
        assert manager.get_num_free_gpu_blocks() == 10

    @BOTH
    @pytest.mark.parametrize(("num_tokens", "status"), [
        (28, AllocStatus.OK), (29, AllocStatus.LATER), (36, AllocStatus.LATER),
        (37, AllocStatus.NEVER)])
    def test_the_watermark_stays_free(self, manager_class, num_tokens, status):
        manager = manager_class(4, 10, 0, watermark=0.1)
        start(manager, list(range(8)))  # 2 of 10 blocks; 1 is the watermark
        assert manager.can_allocate(make_group("r1", list(range(num_tokens)))) is status

    @BOTH
    def test_a_group_that_ran_before_may_use_the_watermark(self, manager_class):
        manager = manager_class(4, 10, 0, watermark=0.1)
        group = make_group("r0", list(range(36)))
        group.get_seqs()[0].append_token_id(7, {7: Logprob(-1.0)})
        assert manager.can_allocate(group) is AllocStatus.OK
        start(manager, [1], seq_id=1)
        assert manager.can_allocate(group) is AllocStatus.LATER

    @BOTH
    def test_one_free_block_per_sequence_is_asked_for(self, manager_class):
        manager = manager_class(4, 3, 0)
        group = start(manager, list(range(5)))
        assert manager.can_append_slots(group, 0)  # one free block, one sequence
        fork(manager, group, 1)
        assert not manager.can_append_slots(group, 0)
        for seq in group.get_seqs():
            seq.append_token_id(7, {7: Logprob(-1.0)})
        # One of the two would copy the block that they share.
        assert (manager.append_demand(group), manager.num_blocks_to_append(group)) == (2, 1)

    @BOTH
    def test_a_block_is_added_when_the_last_one_is_full(self, manager_class):
        manager = manager_class(4, 5, 0)
        seq = start(manager, [1, 2, 3]).get_seqs()[0]
        assert append(manager, seq, 4) == [] and len(manager.get_block_table(seq)) == 1
        assert append(manager, seq, 5) == [] and len(manager.get_block_table(seq)) == 2

    @BOTH
    def test_forks_share_until_one_of_them_writes(self, manager_class):
        manager = manager_class(4, 5, 0)
        group = start(manager, [1, 2, 3, 4, 5])
        parent = group.get_seqs()[0]
        child = fork(manager, group, 1)
        first, shared = manager.get_block_table(parent)
        assert manager.get_block_table(child) == [first, shared]
        assert manager.get_num_free_gpu_blocks() == 3
        # The first to write copies, the other one may then stay.
        (source, own), = append(manager, parent, 6)
        assert source == shared and manager.get_block_table(parent) == [first, own]
        assert append(manager, child, 7) == []
        assert manager.get_block_table(child) == [first, shared]
        manager.free(parent)
        assert manager.get_num_free_gpu_blocks() == 3
        manager.free(child)
        assert manager.get_num_free_gpu_blocks() == 5

    @BOTH
    def test_blocks_swap_out_and_in_once_however_many_share_them(self, manager_class):
        manager = manager_class(4, 5, 3)
        group = start(manager, [1, 2, 3, 4, 5])
        child = fork(manager, group, 1)
        table = manager.get_block_table(child)
        assert manager.can_swap_out(group)
        out = manager.swap_out(group)
        assert [gpu for gpu, _ in out] == table
        assert (manager.get_num_free_gpu_blocks(), manager.get_num_free_cpu_blocks()) == (5, 1)
        for seq in group.get_seqs():
            seq.status = SequenceStatus.SWAPPED
        assert manager.can_swap_in(group, 0) is AllocStatus.OK
        back = manager.swap_in(group)
        assert [cpu for cpu, _ in back] == [cpu for _, cpu in out]
        assert manager.get_block_table(child) == [gpu for _, gpu in back]
        assert manager.get_num_free_cpu_blocks() == 3

    @BOTH
    def test_a_swapped_sequence_can_be_freed(self, manager_class):
        manager = manager_class(4, 5, 3)
        group = start(manager, [1, 2, 3, 4, 5])
        manager.swap_out(group)
        manager.free(group.get_seqs()[0])
        assert manager.get_num_free_cpu_blocks() == 3

    @BOTH
    def test_a_recomputed_group_shares_again(self, manager_class):
        manager = manager_class(4, 10, 0)
        group = start(manager, [1, 2, 3, 4, 5])
        child = fork(manager, group, 1)
        for seq, token in zip(group.get_seqs(), (6, 7), strict=True):
            append(manager, seq, token)
            manager.free(seq)
            seq.reset_state_for_recompute()
            seq.status = SequenceStatus.WAITING
        assert manager.allocation_demand(group).need == 3
        manager.allocate(group)
        tables = [manager.get_block_table(seq) for seq in group.get_seqs()]
        assert tables[0][0] == tables[1][0] and tables[0][1] != tables[1][1]
        assert {use.ref_count for use in manager.block_uses()
                if use.block_number == tables[0][0]} == {2}
        assert child.seq_id == 1 and manager.get_num_free_gpu_blocks() == 7

    @BOTH
    def test_reset_forgets_all(self, manager_class):
        manager = manager_class(4, 5, 0, enable_caching=True)
        start(manager, list(range(9)))
        manager.reset()
        assert manager.get_num_free_gpu_blocks() == 5
        group = start(manager, list(range(9)), seq_id=1)
        assert manager.get_common_computed_block_ids(group.get_seqs()) == [] or (
            manager_class is BlockSpaceManagerV1)

    @BOTH
    def test_watermark_must_not_be_negative(self, manager_class):
        with pytest.raises(ValueError, match="watermark"):
            manager_class(4, 5, 0, watermark=-0.1)


class TestV1:
    def test_numbers_come_from_the_top_of_a_stack(self):
        manager = BlockSpaceManagerV1(4, 5, 0)
        first = start(manager, list(range(5)))
        assert manager.get_block_table(first.get_seqs()[0]) == [4, 3]
        manager.free(first.get_seqs()[0])
        assert manager.get_block_table(start(manager, [1], 1).get_seqs()[0]) == [3]

    def test_prefix_caching_finds_blocks_by_their_tokens_from_the_start(self):
        manager = BlockSpaceManagerV1(4, 10, 0, enable_caching=True)
        first = start(manager, list(range(13))).get_seqs()[0]
        second = start(manager, [*range(8), 99, 99, 99], seq_id=1).get_seqs()[0]
        assert manager.get_block_table(first) == [0, 1, 2, 3]
        assert manager.get_block_table(second)[:2] == [0, 1]
        assert manager.get_block_table(second)[2] == 4
        # vLLM takes the last full block for computed only when the next one is full.
        assert manager.get_common_computed_block_ids([second]) == [0, 1]

    def test_a_freed_block_is_kept_until_its_place_is_needed(self):
        manager = BlockSpaceManagerV1(4, 4, 0, enable_caching=True)
        manager.free(start(manager, list(range(12))).get_seqs()[0])
        assert manager.get_num_free_gpu_blocks() == 4
        hit = start(manager, list(range(12)), seq_id=1).get_seqs()[0]
        assert manager.get_block_table(hit) == [0, 1, 2]
        manager.free(hit)
        other = start(manager, [9] * 13, seq_id=2).get_seqs()[0]
        # One block had never been used; of the others the one that ends the longest prefix goes
        # first.
        assert manager.get_block_table(other) == [3, 2, 1, 0]

    def test_a_block_that_becomes_full_is_replaced_by_an_equal_one(self):
        manager = BlockSpaceManagerV1(4, 10, 0, enable_caching=True)
        first, second = (start(manager, [1, 2, 3, 4, 5], seq_id=i).get_seqs()[0]
                         for i in range(2))
        for seq in (first, second):
            for token in (6, 7, 8):
                append(manager, seq, token)
        assert manager.get_block_table(first) == manager.get_block_table(second)
        assert manager.get_num_free_gpu_blocks() == 8


class TestV2:
    def test_a_long_table_can_be_forked(self):
        manager = BlockSpaceManagerV2(1, 5000, 0)
        group = start(manager, list(range(4000)))
        child = fork(manager, group, 1)
        assert len(manager.get_block_table(child)) == 4000
        assert manager.get_num_free_gpu_blocks() == 1000

    def test_numbers_come_from_the_front_of_a_queue(self):
        manager = BlockSpaceManagerV2(4, 4, 0)
        first = start(manager, list(range(5)))
        assert manager.get_block_table(first.get_seqs()[0]) == [0, 1]
        manager.free(first.get_seqs()[0])
        second = start(manager, list(range(9)), 1)
        assert manager.get_block_table(second.get_seqs()[0]) == [2, 3, 0]

    def test_only_blocks_that_nobody_used_count_as_computed(self):
        manager = BlockSpaceManagerV2(4, 10, 0, enable_caching=True)
        first = start(manager, list(range(9))).get_seqs()[0]
        second = start(manager, list(range(9)), seq_id=1).get_seqs()[0]
        assert manager.get_block_table(second)[:2] == manager.get_block_table(first)[:2]
        assert manager.get_common_computed_block_ids([second]) == []
        manager.free(first)
        manager.free(second)
        third = start(manager, list(range(9)), seq_id=2).get_seqs()[0]
        assert manager.get_common_computed_block_ids([third]) == [0, 1]

    def test_the_swap_in_test_counts_what_the_next_token_takes(self):
        manager = BlockSpaceManagerV2(4, 3, 4)
        group = start(manager, list(range(8)))
        manager.swap_out(group)
        seq = group.get_seqs()[0]
        seq.status = SequenceStatus.SWAPPED
        seq.append_token_id(1, {1: Logprob(-1.0)})
        assert manager.swap_in_demand(group).need == 3  # two full blocks and one more
        start(manager, [1], seq_id=1)
        assert manager.can_swap_in(group, 0) is AllocStatus.LATER


def test_pooling_requests_need_no_blocks():
    manager = EmbeddingModelBlockSpaceManager(4, 1, 0)
    group = make_group("r0", list(range(100)))
    assert manager.can_allocate(group) is AllocStatus.OK
    manager.allocate(group)
    assert manager.get_block_table(group.get_seqs()[0]) == []
    assert manager.can_append_slots(group, 0) and manager.can_swap_out(group)
    assert manager.get_num_free_gpu_blocks() == 1
