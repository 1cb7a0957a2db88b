"""Tokens and seats of a step; which blocks a recomputed group can share."""

from minivllm.core.budget import SchedulingBudget
from minivllm.core.layout import common_beginning, num_distinct_blocks, shared_layout
from minivllm.sequence import Logprob, Sequence
from tests.core.driver import make_group


def test_a_budget_says_what_is_left():
    budget = SchedulingBudget(token_budget=4, max_num_seqs=4)
    budget.num_batched_tokens += 3
    budget.num_curr_seqs += 2
    assert (budget.remaining_token_budget(), budget.remaining_seats()) == (1, 2)


def sequences(*outputs: list[int], prompt: list[int]) -> list[Sequence]:
    seqs = []
    for i, tokens in enumerate(outputs):
        seq = make_group("r0", prompt, seq_id=i).get_seqs()[0]
        for token in tokens:
            seq.append_token_id(token, {token: Logprob(-1.0)})
        seqs.append(seq)
    return seqs


def test_equal_blocks_after_equal_beginnings_are_shared():
    prompt = [1, 2, 3, 4, 5]
    seqs = sequences([6, 7, 8, 9], [6, 7, 9, 9], [6, 7, 8, 1], prompt=prompt)
    #          1 2 3 4 | 5 6 7 8 | 9        block 0 | block 1 | block 2
    #          1 2 3 4 | 5 6 7 9 | 9        the last one is equal, but not what is before it
    #          1 2 3 4 | 5 6 7 8 | 1
    assert shared_layout(seqs, 4) == [[0, 1, 2], [0, 3, 4], [0, 1, 5]]
    assert num_distinct_blocks(seqs, 4) == 6
    assert num_distinct_blocks(seqs[:1], 4) == 3


def test_equal_sequences_share_their_last_block_too():
    assert shared_layout(sequences([6], [6], prompt=[1, 2]), 4) == [[0], [0]]


def test_a_prefill_skips_only_what_all_sequences_have_computed():
    seqs = sequences([6], [7], prompt=[1, 2])
    assert common_beginning(seqs, [[4, 5], [4, 6]]) == [4]
    assert common_beginning(seqs, [[4], []]) == []
    # In decode vLLM leaves out those without; nobody uses the answer.
    for seq in seqs:
        seq.data.update_num_computed_tokens(3)
    assert common_beginning(seqs, [[4], []]) == [4]
