"""What the scheduler does, one rule at a time."""

import pytest

from minivllm.core.scheduler import Scheduler
from minivllm.decisions import Verdict, sentence
from minivllm.sequence import Logprob, SequenceGroup, SequenceStatus
from tests.core.driver import Driver, make_group, make_scheduler


def add(scheduler: Scheduler, *lengths: int) -> list[SequenceGroup]:
    groups = [make_group(f"r{i}", list(range(1, n + 1)), seq_id=i, arrival=i)
              for i, n in enumerate(lengths)]
    for group in groups:
        scheduler.add_seq_group(group)
    return groups


def step(scheduler: Scheduler, *, finish: tuple[str, ...] = ()):
    """Run a step: each sequence whose tokens are all computed gets one more."""
    batch, outputs = scheduler.schedule()
    for meta, scheduled in zip(batch, outputs.scheduled_seq_groups, strict=True):
        group = scheduled.seq_group
        group.update_num_computed_tokens(scheduled.token_chunk_size)
        for seq in group.get_seqs(SequenceStatus.RUNNING):
            if meta.do_sample:
                seq.append_token_id(7, {7: Logprob(-1.0)})
            if group.request_id in finish:
                seq.status = SequenceStatus.FINISHED_STOPPED
                scheduler.free_seq(seq)
    scheduler.free_finished_seq_groups()
    return batch, outputs


def ran(batch) -> list[tuple[str, str, int]]:
    return [(m.request_id, "prefill" if m.is_prompt else "decode", m.token_chunk_size)
            for m in batch]


def verdicts(outputs) -> list[tuple[str | None, str]]:
    return [(d.request_id, d.verdict.value) for d in outputs.decisions]


def names(queue) -> list[str]:
    return [group.request_id for group in queue]


class TestDefaultPolicy:
    def test_prompts_go_first_and_alone(self):
        scheduler = make_scheduler()
        add(scheduler, 5)
        assert ran(step(scheduler)[0]) == [("r0", "prefill", 5)]
        scheduler.add_seq_group(make_group("r1", [1, 2], seq_id=1, arrival=1))
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r1", "prefill", 2)]
        assert (None, "prompts go first") in verdicts(outputs)
        # The queue keeps this order; decodes go by arrival.
        assert names(scheduler.running) == ["r0", "r1"]
        assert ran(step(scheduler)[0]) == [("r0", "decode", 1), ("r1", "decode", 1)]

    def test_the_walk_stops_at_the_first_prompt_that_does_not_fit(self):
        scheduler = make_scheduler(max_num_batched_tokens=10, max_model_len=10)
        add(scheduler, 6, 5, 1)
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r0", "prefill", 6)]
        # r2 would fit but waits behind r1.
        assert verdicts(outputs) == [("r0", "admitted"), ("r1", "waits")]
        assert names(scheduler.waiting) == ["r1", "r2"]

    def test_seats_are_counted_for_all_samples_to_come(self):
        scheduler = make_scheduler(max_num_seqs=4)
        driver = Driver(scheduler)
        driver.add([1], [3, 3, 3])
        driver.add([1], [3, 3])
        outputs = driver.step()
        held = outputs.decisions[-1]
        assert (held.check.value, held.need, held.have, held.enough) == ("seats", 2, 1, 5)

    @pytest.mark.parametrize("chunked", [False, True])
    def test_who_runs_keeps_its_seat_when_prompts_are_looked_at(self, chunked):
        scheduler = make_scheduler(max_num_seqs=2, enable_chunked_prefill=chunked)
        add(scheduler, 3, 3, 3)
        for _ in range(3):
            held = step(scheduler)[1].decisions[-1]
            assert (held.request_id, held.check.value) == ("r2", "seats")
            assert (held.need, held.have, held.total) == (1, 0, 2)
        assert names(scheduler.running) == ["r0", "r1"]

    def test_a_prompt_too_long_is_ignored_and_the_next_one_served(self):
        scheduler = make_scheduler(max_model_len=8, max_num_batched_tokens=8)
        long, short = add(scheduler, 9, 3)
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r1", "prefill", 3)]
        assert outputs.ignored_seq_groups == [long]
        assert long.get_seqs()[0].status is SequenceStatus.FINISHED_IGNORED
        assert not short.is_finished()

    def test_a_prompt_too_large_for_the_pool_is_ignored(self):
        scheduler = make_scheduler(num_gpu_blocks=2)
        add(scheduler, 9)
        outputs = step(scheduler)[1]
        assert sentence(outputs.decisions[0]) == (
            "r0 is ignored: its tokens take 3 blocks, the pool has 2. "
            "It would have run with num_gpu_blocks=3.")
        assert not scheduler.has_unfinished_seqs()

    def test_swapped_groups_block_new_prompts(self):
        scheduler = make_scheduler(num_gpu_blocks=4, num_cpu_blocks=4, preemption_mode="swap")
        add(scheduler, 7, 7)
        step(scheduler)
        # r0 asks for one free block; there is none, so r1 goes.
        assert names(scheduler.running) == ["r0", "r1"]
        outputs = step(scheduler)[1]
        assert names(scheduler.swapped) == ["r1"] and outputs.preempted == 1
        assert len(outputs.blocks_to_swap_out) == 2 and not outputs.blocks_to_swap_in
        scheduler.add_seq_group(make_group("r2", [1], seq_id=2, arrival=2))
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r0", "decode", 1)]
        assert verdicts(outputs) == [(None, "swapped groups go first"), ("r1", "stays swapped")]

    def test_a_swapped_group_comes_back_when_there_is_room(self):
        scheduler = make_scheduler(num_gpu_blocks=4, num_cpu_blocks=4, preemption_mode="swap")
        add(scheduler, 7, 7)
        step(scheduler)
        swapped_out = step(scheduler, finish=("r0",))[1].blocks_to_swap_out
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r1", "decode", 1)]
        assert verdicts(outputs) == [("r1", "swapped in")]
        assert [cpu for cpu, _ in outputs.blocks_to_swap_in] == [cpu for _, cpu in swapped_out]


class TestChunkedPrefill:
    def chunked(self, **limits) -> Scheduler:
        return make_scheduler(enable_chunked_prefill=True, **limits)

    def test_a_prompt_is_cut_to_what_is_left(self):
        scheduler = self.chunked(max_num_batched_tokens=8)
        add(scheduler, 5, 9)
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r0", "prefill", 5), ("r1", "prefill", 3)]
        assert [meta.do_sample for meta in batch] == [True, False]
        # r0's decode comes first in the budget, prefills come first in the batch.
        batch, _ = step(scheduler)
        assert ran(batch) == [("r1", "prefill", 6), ("r0", "decode", 1)]
        assert batch[0].do_sample

    def test_without_tokens_left_a_prompt_waits(self):
        scheduler = self.chunked(max_num_batched_tokens=8)
        add(scheduler, 12, 3)
        outputs = step(scheduler)[1]
        assert sentence(outputs.decisions[-1], ["r0"]) == (
            "r1 waits (token budget): a chunk of its prompt is at least 1 token, 0 of the step's "
            "8 are left; r0 took 8. It would have run with max_num_batched_tokens=13.")

    def test_running_groups_pause_when_the_budget_is_used_up(self):
        scheduler = self.chunked(max_num_batched_tokens=8)
        scheduler.add_seq_group(make_group("short", [1, 2], seq_id=0, arrival=1))
        step(scheduler)
        scheduler.add_seq_group(make_group("long", list(range(30)), seq_id=1, arrival=0))
        assert ran(step(scheduler)[0]) == [("long", "prefill", 7), ("short", "decode", 1)]
        # It arrived first, so now it goes first.
        batch, outputs = step(scheduler)
        assert ran(batch) == [("long", "prefill", 8)]
        assert verdicts(outputs) == [("short", "pauses")]
        assert names(scheduler.running) == ["short", "long"]


class TestPreemption:
    def test_the_latest_to_arrive_goes_first_and_comes_back_first_in_line(self):
        scheduler = make_scheduler(num_gpu_blocks=7)
        add(scheduler, 8, 8, 8)
        step(scheduler)
        # r0 takes the last free block for its ninth token, r1 takes one of r2's.
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r0", "decode", 1), ("r1", "decode", 1)]
        decision = outputs.decisions[-1]
        assert (decision.request_id, decision.verdict, decision.other) == (
            "r2", Verdict.RECOMPUTED, "r1")
        assert names(scheduler.waiting) == ["r2"]
        seq = scheduler.waiting[0].get_seqs()[0]
        assert seq.get_output_len() == 1 and seq.data.get_num_computed_tokens() == 0

    def test_groups_of_one_sequence_are_recomputed_and_others_swapped(self):
        scheduler = make_scheduler(num_gpu_blocks=7, num_cpu_blocks=8)
        driver = Driver(scheduler)
        driver.add([1] * 8, [9])
        driver.add([1] * 8, [9, 9])
        driver.run()
        assert driver.counts["swap preemptions"] > 0 and driver.counts["swap-ins"] > 0
        scheduler = make_scheduler(num_gpu_blocks=5)
        driver = Driver(scheduler)
        driver.add([1] * 8, [9])
        driver.add([1] * 8, [9])
        driver.run()
        assert driver.counts["recompute preemptions"] > 0
        assert driver.counts["swap preemptions"] == 0


class TestOtherCalls:
    def test_abort_frees_blocks_in_every_queue(self):
        scheduler = make_scheduler(num_gpu_blocks=4, num_cpu_blocks=4, preemption_mode="swap")
        add(scheduler, 7, 7)
        step(scheduler)
        step(scheduler)
        scheduler.add_seq_group(make_group("r2", [1], seq_id=2, arrival=2))
        assert [names(q) for q in (scheduler.waiting, scheduler.running, scheduler.swapped)] == [
            ["r2"], ["r0"], ["r1"]]
        scheduler.abort_seq_group("r1")
        assert scheduler.block_manager.get_num_free_cpu_blocks() == 4
        scheduler.abort_seq_group(["r2", "r0", "unknown"])
        assert scheduler.block_manager.get_num_free_gpu_blocks() == 4
        assert not scheduler.has_unfinished_seqs()

    def test_the_number_of_unfinished_groups(self):
        scheduler = make_scheduler()
        add(scheduler, 3, 4)
        assert scheduler.get_num_unfinished_seq_groups() == 2
        step(scheduler, finish=("r0",))
        assert scheduler.get_num_unfinished_seq_groups() == 1

    def test_delay_factor_gathers_prompts(self):
        time = [0.0]
        scheduler = make_scheduler(delay_factor=0.5, clock=lambda: time[0])
        add(scheduler, 3)
        step(scheduler)
        # The prompt step took 10 seconds: the next prompt waits for 5, decodes go on.
        time[0] = 10.0
        scheduler.add_seq_group(make_group("r1", [1], seq_id=1, arrival=10.0))
        batch, outputs = step(scheduler)
        assert ran(batch) == [("r0", "decode", 1)]
        assert verdicts(outputs) == [(None, "prompts are delayed")]
        time[0] = 15.5
        assert ran(step(scheduler)[0]) == [("r1", "prefill", 1)]

    def test_a_failed_step_is_undone_by_recomputing_everything(self):
        scheduler = make_scheduler(num_gpu_blocks=4, num_cpu_blocks=4, preemption_mode="swap",
                                   enable_prefix_caching=True)
        add(scheduler, 7)
        scheduler.add_seq_group(make_group("r1", [9] * 6, seq_id=1, arrival=1))
        step(scheduler)
        step(scheduler)
        scheduler.add_seq_group(make_group("r2", [1], seq_id=2, arrival=2))
        assert scheduler.swapped
        scheduler.schedule()
        scheduler.recompute_all()
        assert names(scheduler.waiting) == ["r0", "r1", "r2"]
        assert scheduler.block_manager.get_num_free_gpu_blocks() == 4
        assert scheduler.block_manager.get_num_free_cpu_blocks() == 4
        batch, _ = scheduler.schedule()
        # What the failed step should have computed is not taken for computed.
        assert all(meta.computed_block_nums == [] for meta in batch)
