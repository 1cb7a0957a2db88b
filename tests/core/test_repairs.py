"""Where vLLM 0.5.0.post1 crashes, hangs, leaks or reads stale blocks: each in its smallest form.

docs/differences.md has a row for each.  The driver checks after every step that no block is lost
and that every sequence finds its own tokens in its blocks.
"""

import pytest

from minivllm.core.invariants import check_invariants
from minivllm.decisions import Check, Verdict
from minivllm.sequence import SequenceStatus
from tests.core.driver import Driver, make_scheduler

BOTH = pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])


def drive(v2: bool = False, **options) -> Driver:
    driver = Driver(make_scheduler(use_v2_block_manager=v2, **options))
    driver.scheduler.clock = lambda: float(driver.step_index)
    return driver


def ends(driver: Driver, request_id: str) -> list[tuple[int, str | None]]:
    """Return (number of output tokens, finish reason) of a request's sequences."""
    return [(seq.get_output_len(), SequenceStatus.get_finished_reason(seq.status))
            for seq in driver.groups[request_id].get_seqs()]


def verdicts(outputs) -> list[Verdict]:
    return [decision.verdict for decision in outputs.decisions]


class TestGroupsOfSeveralSequences:
    @BOTH
    def test_are_recomputed_all_at_once(self, v2):
        """vLLM: AssertionError in _preempt_by_recompute."""
        driver = drive(v2, num_gpu_blocks=9, preemption_mode="recompute")
        driver.add([1] * 8, [12])
        driver.add([1, 2] * 4, [10, 10])
        driver.run()
        assert driver.counts["recomputes of several sequences"] > 0
        assert ends(driver, "r0") == [(12, "stop")]
        assert ends(driver, "r1") == [(10, "stop")] * 2

    @BOTH
    @pytest.mark.parametrize(("lengths", "num_gpu_blocks"), [
        ([2, 12, 12], 11), ([12, 12, 2], 11), ([2, 12], 8), ([12, 2], 8)])
    def test_leave_finished_siblings_as_they_are(self, v2, lengths, num_gpu_blocks):
        """vLLM: AssertionError, or a recompute that is taken for a decode."""
        driver = drive(v2, num_gpu_blocks=num_gpu_blocks, preemption_mode="recompute")
        driver.add([1] * 8, [14])
        driver.add([1, 2] * 4, lengths)
        driver.run()
        assert driver.counts["recompute preemptions"] > 0
        assert sorted(ends(driver, "r1")) == sorted((n, "stop") for n in lengths)

    @BOTH
    def test_share_again_what_they_shared(self, v2):
        """Recomputed without sharing, two sequences of a long prompt would not fit the pool."""
        driver = drive(v2, num_gpu_blocks=12, preemption_mode="recompute")
        driver.add([2] * 4, [16])
        driver.add(list(range(24)), [8, 8])
        driver.run()
        assert driver.counts["recomputes of several sequences"] > 0
        assert ends(driver, "r1") == [(8, "stop")] * 2

    @BOTH
    def test_are_recomputed_in_chunks_if_they_exceed_the_whole_budget(self, v2):
        driver = drive(v2, num_gpu_blocks=10, preemption_mode="recompute", max_model_len=16,
                       max_num_batched_tokens=16)
        driver.add([2] * 4, [12])
        driver.add([1, 2] * 4, [8, 8, 8])
        driver.run()
        assert driver.counts["recomputes of several sequences"] > 0 and driver.counts["chunks"] > 0
        assert ends(driver, "r1") == [(8, "stop")] * 3


class TestSwap:
    @BOTH
    def test_a_victim_without_cpu_space_is_recomputed(self, v2):
        """vLLM: RuntimeError "Aborted due to the lack of CPU swap space"."""
        driver = drive(v2, num_gpu_blocks=9, num_cpu_blocks=1, preemption_mode="swap")
        driver.add([1] * 8, [12])
        driver.add([1, 2] * 4, [10, 10])
        driver.run()
        assert driver.counts["recomputed for lack of CPU blocks"] > 0
        assert ends(driver, "r1") == [(10, "stop")] * 2

    def test_v2_counts_what_the_next_token_needs(self):
        """vLLM: NoFreeBlocksError when the token is appended after the swap-in."""
        driver = drive(True, num_gpu_blocks=5, num_cpu_blocks=8, preemption_mode="swap")
        driver.add([1] * 7, [4])
        driver.add([1, 2] * 4, [4])  # swapped out with two full blocks: the next token takes one
        driver.run()
        assert driver.counts["swap-ins"] > 0
        assert ends(driver, "r0") == [(4, "stop")] and ends(driver, "r1") == [(4, "stop")]

    def test_v2_shared_blocks_swap_once(self):
        """vLLM: each sharer gets a block of its own, and only the last of them is filled."""
        driver = drive(True, num_gpu_blocks=7, num_cpu_blocks=8, preemption_mode="swap")
        driver.add([1] * 7, [8])
        driver.add(list(range(6)), [6, 6])
        driver.run()
        assert driver.counts["swap-ins"] > 0
        assert ends(driver, "r1") == [(6, "stop")] * 2

    @BOTH
    def test_a_group_that_is_given_up_returns_its_cpu_blocks(self, v2):
        """vLLM: they are lost."""
        driver = drive(v2, num_gpu_blocks=4, num_cpu_blocks=8, preemption_mode="swap")
        driver.add([1] * 7, [20, 20])
        driver.run()
        assert driver.counts["given up"] == 1
        assert {reason for _, reason in ends(driver, "r0")} == {"length"}
        assert driver.scheduler.block_manager.get_num_free_cpu_blocks() == 8

    @BOTH
    def test_a_prompt_swapped_out_in_the_middle_comes_back_in_chunks(self, v2):
        """vLLM: never, if its rest exceeds the step's budget."""
        driver = drive(v2, num_gpu_blocks=10, num_cpu_blocks=16, preemption_mode="swap",
                       enable_chunked_prefill=True, max_num_batched_tokens=8)
        driver.add([1] * 12, [8])
        driver.add([1, 2] * 14, [3])
        driver.run()
        assert driver.counts["swap-ins"] > 0
        assert ends(driver, "r1") == [(3, "stop")]

    @BOTH
    def test_a_block_that_was_copied_and_given_up_is_not_overwritten_too_early(self, v2):
        """In vLLM all swapped blocks move before any is copied: the copy reads what came in."""
        for num_gpu_blocks in range(5, 14):
            driver = drive(v2, block_size=2, num_gpu_blocks=num_gpu_blocks, num_cpu_blocks=20,
                           preemption_mode="swap", enable_prefix_caching=True)
            for _ in range(4):
                driver.vocab_size = 1  # equal samples: equal blocks become one
                driver.add([1] * 5, [6, 6])
                driver.add([1] * 3, [9])
            driver.run()
            assert driver.counts["copies on write"] > 0

    def test_v1_blocks_of_one_key_but_different_contents_stay_apart(self):
        """The key of a prompt's last block says nothing of what follows the prompt.

        Without chunks vLLM starts no equal prompt while one is swapped out; with them one meets
        the other's block.
        """
        driver = drive(num_gpu_blocks=8, num_cpu_blocks=30, preemption_mode="swap",
                       enable_prefix_caching=True, enable_chunked_prefill=True,
                       max_num_batched_tokens=8)
        driver.vocab_size = 100
        for salt in range(5):
            driver.add([1, 2, 3, 4, 5], [6, 6], salt=salt)
        driver.run()
        assert driver.counts["swap preemptions"] > 1


class TestTightPools:
    @BOTH
    def test_a_prompt_that_fills_the_pool_runs(self, v2):
        """vLLM: with chunks it preempts itself for ever."""
        driver = drive(v2, num_gpu_blocks=4, enable_chunked_prefill=True, max_num_batched_tokens=8)
        driver.add(list(range(16)), [1])
        driver.run(max_steps=10)
        assert ends(driver, "r0") == [(1, "stop")]

    @BOTH
    @pytest.mark.parametrize("mode", ["swap", "recompute"])
    def test_a_preempted_request_may_use_the_watermark(self, v2, mode):
        """vLLM: waits for ever when swapped, is ignored when recomputed."""
        driver = drive(v2, block_size=1, num_gpu_blocks=300, num_cpu_blocks=300,
                       max_num_batched_tokens=300, max_model_len=300, preemption_mode=mode)
        driver.add([1], [10])
        driver.add([1, 2] * 148, [3])
        driver.run()
        assert driver.scheduler.block_manager.watermark_blocks == 3
        assert driver.counts[f"{mode} preemptions"] > 0
        assert ends(driver, "r1") == [(3, "stop")]

    @BOTH
    def test_a_request_that_outgrows_the_pool_ends_with_what_it_has(self, v2):
        driver = drive(v2, num_gpu_blocks=3)
        driver.add([1] * 5, [30])
        driver.add([1] * 3, [4])
        driver.run()
        # The thirteenth token has no slot.
        assert ends(driver, "r0") == [(8, "length")]
        assert ends(driver, "r1") == [(4, "stop")]


class TestChunkedPrefill:
    @BOTH
    def test_prefix_caching_skips_only_what_is_computed(self, v2):
        """vLLM: RuntimeError in the model runner (v1), AssertionError in the block (v2)."""
        driver = drive(v2, enable_chunked_prefill=True, enable_prefix_caching=True,
                       max_num_batched_tokens=8)
        prompt = list(range(22))
        driver.add(prompt, [3])
        driver.step()
        # An equal prompt, while the first is in its middle: it shares all blocks, and may skip
        # those that are computed.
        driver.add(prompt, [3])
        driver.run()
        driver.add(prompt, [3])
        driver.run()
        assert driver.counts["chunks"] > 2 and driver.counts["prefix hits"] > 0
        assert {ends(driver, r)[0] for r in ("r0", "r1", "r2")} == {(3, "stop")}

    @BOTH
    def test_an_aborted_prompts_blocks_are_not_taken_for_computed(self, v2):
        driver = drive(v2, enable_chunked_prefill=True, enable_prefix_caching=True,
                       max_num_batched_tokens=8)
        prompt = list(range(22))
        driver.add(prompt, [3])
        driver.step()
        driver.abort("r0")
        driver.add(prompt, [3])
        outputs = driver.step()
        # Two blocks were computed; the other full ones only reserved.
        table = driver.scheduler.block_manager.get_common_computed_block_ids(
            driver.groups["r1"].get_seqs())
        assert len(table) <= 2 and outputs.num_batched_tokens == 8
        driver.run()
        assert ends(driver, "r1") == [(3, "stop")]

    def test_v1_a_block_that_became_full_is_not_replaced_by_an_unfinished_one(self):
        driver = drive(enable_chunked_prefill=True, enable_prefix_caching=True,
                       max_num_batched_tokens=3, max_num_seqs=2)
        prompt = list(range(6))
        driver.add(prompt, [12])
        while driver.groups["r0"].get_seqs()[0].get_output_len() < 8:
            driver.step()
        # r0 has to compute everything again, and an equal request comes in before it.
        scheduler = driver.scheduler
        scheduler.recompute_all()
        driver.add(prompt, [4])
        driver.groups["r1"].metrics.arrival_time = -1.0
        scheduler.waiting.appendleft(scheduler.waiting.pop())
        # When r1 fills its second block, r0 has an equal one, but has computed 4 of its 8 tokens.
        driver.run()
        assert ends(driver, "r0") == [(12, "stop")] and ends(driver, "r1") == [(4, "stop")]

    def test_v2_a_block_that_became_full_is_not_replaced_by_an_unfinished_one(self):
        options = {"enable_chunked_prefill": True, "enable_prefix_caching": True,
                   "max_num_batched_tokens": 3, "max_num_seqs": 2}
        prompt = list(range(10))
        alone = drive(True, **options)
        alone.add(prompt, [2])
        alone.run()
        first_two = alone.groups["r0"].get_seqs()[0].get_output_token_ids()
        driver = drive(True, **options)
        driver.add(prompt, [6])
        while not driver.groups["r0"].get_seqs()[0].get_output_len():
            driver.step()
        # r1 begins like r0 and its output: it has a block for tokens 8 to 11 long before they are
        # computed.  In the step after next r0 fills a block with the same tokens.
        driver.add(prompt + first_two + [9] * 30, [2])
        driver.run()
        assert ends(driver, "r0") == [(6, "stop")]

    @BOTH
    def test_decodes_over_the_budget_pause(self, v2):
        """vLLM: AssertionError at the end of scheduling."""
        driver = drive(v2, enable_chunked_prefill=True, max_num_batched_tokens=8, num_gpu_blocks=40)
        driver.add([1] * 3, [9, 9, 9])
        driver.step()
        # It arrives later but claims to have been here first, so its chunks go first.
        driver.add([1, 2] * 10, [2])
        driver.groups["r1"].metrics.arrival_time = -1.0
        paused = False
        while driver.scheduler.has_unfinished_seqs():
            paused |= Verdict.PAUSES in verdicts(driver.step())
        assert paused
        assert ends(driver, "r0") == [(9, "stop")] * 3

    def test_the_prompt_not_the_chunk_is_compared_with_the_models_limit(self):
        driver = drive(enable_chunked_prefill=True, max_num_batched_tokens=8, max_model_len=16)
        driver.add(list(range(17)), [3])
        outputs = driver.step()
        assert outputs.decisions[0].check is Check.PROMPT_LENGTH
        assert ends(driver, "r0") == [(0, "length")]


def test_v2_an_evicted_block_is_not_taken_for_computed():
    """In vLLM it is flagged as computed although it gets new content."""
    driver = drive(True, num_gpu_blocks=5, enable_prefix_caching=True)
    for first in range(4):
        driver.add([first] * 13, [2])
    driver.run()
    assert driver.counts["evictions"] > 0
    assert driver.counts["prefix hits"] == 0


def test_aborts_in_every_state_return_all_blocks():
    driver = drive(num_gpu_blocks=8, num_cpu_blocks=12)
    driver.add([1] * 8, [12])
    driver.add([1, 2] * 4, [12, 12])
    while not driver.scheduler.swapped:
        driver.step()
    driver.add([1], [3])
    for request_id in ("r1", "r2", "r0"):
        driver.abort(request_id)
    assert {name for name in driver.counts if name.startswith("aborts")} == {
        "aborts while swapped", "aborts while waiting", "aborts while running"}
    check_invariants(driver.scheduler)
    assert not driver.scheduler.has_unfinished_seqs()
    assert driver.scheduler.block_manager.get_num_free_gpu_blocks() == 8
    assert driver.scheduler.block_manager.get_num_free_cpu_blocks() == 12
