"""Surprising decisions of vLLM 0.5.0.post1 that minivllm makes as well."""

from minivllm.sequence import SequenceStatus
from tests.core.driver import Driver, make_group, make_scheduler


def test_chunked_prefill_starts_prompts_while_groups_are_swapped():
    driver = Driver(make_scheduler(num_gpu_blocks=9, num_cpu_blocks=20, preemption_mode="swap",
                                   enable_chunked_prefill=True, max_num_batched_tokens=16))
    driver.add([1] * 8, [20])
    driver.add([1] * 16, [10, 10])
    while not driver.scheduler.swapped:
        driver.step()
    late = driver.add([1], [5])
    driver.step()
    assert driver.scheduler.swapped
    assert driver.groups[late].get_seqs()[0].status is SequenceStatus.RUNNING


def test_admission_does_not_count_on_cached_blocks():
    """An equal prompt waits although it would need one new block, and one is free."""
    driver = Driver(make_scheduler(num_gpu_blocks=4, enable_prefix_caching=True))
    prompt = list(range(9))
    driver.add(prompt, [3])
    driver.step()
    driver.add(prompt, [3])
    waits = driver.step().decisions[0]
    assert (waits.request_id, waits.need, waits.have) == ("r1", 3, 1)


def test_a_request_that_is_alone_is_recomputed_once_per_token_before_it_is_given_up():
    driver = Driver(make_scheduler(num_gpu_blocks=3))
    driver.add([1] * 8, [30])
    driver.run()
    # The third block is taken for the ninth token; the pool has no free block from then on.
    assert driver.counts["recompute preemptions"] == 4
    assert driver.groups["r0"].get_seqs()[0].get_len() == 13


def test_the_budget_does_not_count_on_cached_blocks():
    scheduler = make_scheduler(enable_prefix_caching=True, max_num_batched_tokens=64)
    driver = Driver(scheduler)
    for _ in range(2):
        driver.add(list(range(40)), [2])
        outputs = driver.step()
        assert outputs.num_batched_tokens == 40
        driver.run()
    assert driver.counts["prefix hits"] == 1


def test_a_free_block_is_asked_for_whether_or_not_one_is_needed():
    scheduler = make_scheduler(num_gpu_blocks=1)
    group = make_group("r0", [1])
    scheduler.add_seq_group(group)
    scheduler.schedule()
    assert not scheduler.block_manager.can_append_slots(group, 0)
