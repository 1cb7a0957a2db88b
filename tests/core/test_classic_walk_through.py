"""The example that explains paged attention: three prompts, blocks of 4, a pool too small.

"Hello, my name is", "The future of AI is" and "The life is" have 5, 5 and 3 tokens here.
"""

import pytest

from minivllm.core.scheduler import Scheduler, SchedulerOutputs
from minivllm.decisions import Verdict
from minivllm.sequence import Logprob
from tests.core.driver import make_group, make_scheduler


def classic(num_gpu_blocks: int) -> Scheduler:
    scheduler = make_scheduler(block_size=4, num_gpu_blocks=num_gpu_blocks, max_num_seqs=8,
                               max_num_batched_tokens=12, max_model_len=12)
    for i, length in enumerate((5, 5, 3)):
        scheduler.add_seq_group(make_group(f"r{i}", list(range(length)), seq_id=i, arrival=i))
    return scheduler


def step(scheduler: Scheduler) -> tuple[str, dict[str, list[int]], SchedulerOutputs]:
    """Run one step; return "prefill" or "decode", the block tables, and all that was decided."""
    batch, outputs = scheduler.schedule()
    for scheduled in outputs.scheduled_seq_groups:
        scheduled.seq_group.update_num_computed_tokens(scheduled.token_chunk_size)
        for seq in scheduled.seq_group.get_seqs():
            seq.append_token_id(7, {7: Logprob(-1.0)})
    tables = {meta.request_id: table for meta in batch for table in meta.block_tables.values()}
    return "prefill" if batch[0].is_prompt else "decode", tables, outputs


def preempted(outputs: SchedulerOutputs) -> list[str | None]:
    return [d.request_id for d in outputs.decisions if d.verdict is Verdict.RECOMPUTED]


@pytest.mark.parametrize(("num_gpu_blocks", "tables"), [
    (5, {"r0": [4, 3], "r1": [2, 1], "r2": [0]}),
    (6, {"r0": [5, 4], "r1": [3, 2], "r2": [1]}),
    (7, {"r0": [6, 5], "r1": [4, 3], "r2": [2]})])
def test_the_first_two_steps_are_prefills(num_gpu_blocks, tables):
    """The token budget of 12 holds 5 + 5 but not 3 more; blocks come from the top."""
    scheduler = classic(num_gpu_blocks)
    stage, blocks, outputs = step(scheduler)
    assert (stage, list(blocks)) == ("prefill", ["r0", "r1"])
    waits = outputs.decisions[-1]
    assert (waits.request_id, waits.verdict, waits.check.value, waits.need, waits.have) == (
        "r2", Verdict.WAITS, "token budget", 3, 2)
    assert waits.enough == 13
    stage, more_blocks, _ = step(scheduler)
    assert (stage, list(more_blocks)) == ("prefill", ["r2"])
    assert blocks | more_blocks == tables


def test_with_5_blocks_r2_is_preempted_though_everybody_has_a_free_slot():
    scheduler = classic(5)
    step(scheduler)
    step(scheduler)
    # r0 has 6 tokens in two blocks of 4, r1 too, r2 has 4 in one: nobody needs a block now.
    stage, tables, outputs = step(scheduler)
    assert (stage, tables) == ("decode", {"r0": [4, 3], "r1": [2, 1]})
    assert preempted(outputs) == ["r2"]
    assert [group.request_id for group in scheduler.waiting] == ["r2"]
    assert scheduler.block_manager.get_num_free_gpu_blocks() == 1


def test_with_6_blocks_step_2_decodes_all_three():
    scheduler = classic(6)
    step(scheduler)
    step(scheduler)
    stage, tables, outputs = step(scheduler)
    assert (stage, preempted(outputs)) == ("decode", [])
    assert tables == {"r0": [5, 4], "r1": [3, 2], "r2": [1]}
    # Step 3 takes the last free block, for r2's fifth token; step 4 asks for one more.
    assert step(scheduler)[1] == {"r0": [5, 4], "r1": [3, 2], "r2": [1, 0]}
    assert preempted(step(scheduler)[2]) == ["r2"]


def test_with_7_blocks_the_first_preemption_is_a_real_shortage_in_step_5():
    scheduler = classic(7)
    steps = [step(scheduler) for _ in range(6)]
    assert [preempted(outputs) for _, _, outputs in steps] == [[], [], [], [], [], ["r2"]]
    # r2 took a block for its fifth token in step 3; in step 5 r0 takes the last one for its ninth.
    assert steps[3][1] == {"r0": [6, 5], "r1": [4, 3], "r2": [2, 1]}
    assert steps[5][1]["r0"] == [6, 5, 0]
    # r1 needs one too: it gets one of r2's.
    assert steps[5][1]["r1"][:2] == [4, 3] and steps[5][1]["r1"][2] in (1, 2)
