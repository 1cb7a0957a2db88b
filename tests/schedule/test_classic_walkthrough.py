"""The classic walk-through: three prompts of 5, 5 and 3 tokens, and an engine just too small.

Blocks have 4 slots, a step 12 tokens, the model 12 positions.  The traces in ``classic/`` are
vLLM's own.
"""

import pytest

from minivllm.tracing.trace import trace_workload
from tests.schedule import golden

# What runs in a step: request -> (P for prefill or D for decode, its tokens, its block table).
Step = dict[str, tuple[str, int, list[int]]]


def first_steps(num_gpu_blocks: int, num_steps: int, version: int = 1) -> list[Step]:
    name = f"classic_{num_gpu_blocks}_blocks_v{version}"
    trace = trace_workload(golden.workload("classic", name))
    return [{group["request_id"]: ("P" if group["is_prompt"] else "D", seq["len"],
                                   seq["block_table"])
             for group in step["scheduled"] for seq in group["seqs"]}
            for step in trace["steps"][:num_steps]]


def preempting_steps(num_gpu_blocks: int) -> list[int]:
    trace = trace_workload(golden.workload("classic", f"classic_{num_gpu_blocks}_blocks_v1"))
    return [step["step"] for step in trace["steps"] if step["preempted"]]


def test_with_5_blocks_r2_is_preempted_although_its_last_block_has_a_free_slot():
    assert first_steps(5, 4) == [
        # 5 + 5 tokens fit into the step's 12, 3 more do not.  Blocks are handed out from the top.
        {"r0": ("P", 5, [4, 3]), "r1": ("P", 5, [2, 1])},
        # Prompts go first.
        {"r2": ("P", 3, [0])},
        # No block is free.  Nobody needs one: each new token goes into a free slot.  But the test
        # is one free block per sequence, so r2, the last to arrive, has to go.
        {"r0": ("D", 6, [4, 3]), "r1": ("D", 6, [2, 1])},
        # Its token is kept: it comes back as a prompt of 4 tokens, and its block with it.
        {"r2": ("P", 4, [0])},
    ]
    assert preempting_steps(5)[0] == 2


def test_with_6_blocks_step_2_decodes_all_three():
    assert first_steps(6, 4) == [
        {"r0": ("P", 5, [5, 4]), "r1": ("P", 5, [3, 2])},
        {"r2": ("P", 3, [1])},
        {"r0": ("D", 6, [5, 4]), "r1": ("D", 6, [3, 2]), "r2": ("D", 4, [1])},
        # r2's fifth token takes the last block.
        {"r0": ("D", 7, [5, 4]), "r1": ("D", 7, [3, 2]), "r2": ("D", 5, [1, 0])},
    ]
    assert preempting_steps(6)[0] == 4


def test_with_7_blocks_the_first_preemption_is_a_real_shortage():
    assert first_steps(7, 6) == [
        {"r0": ("P", 5, [6, 5]), "r1": ("P", 5, [4, 3])},
        {"r2": ("P", 3, [2])},
        {"r0": ("D", 6, [6, 5]), "r1": ("D", 6, [4, 3]), "r2": ("D", 4, [2])},
        {"r0": ("D", 7, [6, 5]), "r1": ("D", 7, [4, 3]), "r2": ("D", 5, [2, 1])},
        {"r0": ("D", 8, [6, 5]), "r1": ("D", 8, [4, 3]), "r2": ("D", 6, [2, 1])},
        # r0 and r1 both begin a third block; one is free, r2 gives the other.
        {"r0": ("D", 9, [6, 5, 0]), "r1": ("D", 9, [4, 3, 1])},
    ]
    assert preempting_steps(7)[0] == 5


def test_flavour_2_hands_blocks_out_from_the_bottom_and_decides_the_same():
    assert first_steps(5, 3, version=2) == [
        {"r0": ("P", 5, [0, 1]), "r1": ("P", 5, [2, 3])},
        {"r2": ("P", 3, [4])},
        {"r0": ("D", 6, [0, 1]), "r1": ("D", 6, [2, 3])},
    ]


@pytest.mark.parametrize("name", golden.names("classic"))
def test_equal_to_vllm_to_the_end(name):
    assert golden.difference("classic", name) is None
