"""Exercise 03: the check."""

from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.exercises.grading import compare_with_real, toy_workload

TITLE = "May a running request go on?"
CLASS_NAME = "MyManager"
CHAPTER = "tutorials/03-scheduler.md"
HINTS = [
    "The scheduler calls this for every running request, in every decode step. The rule is "
    "simpler than you may think: it does not look at block tables at all.",
    "How many blocks could one sequence take in one step, at the very most? Suppose that every "
    "sequence of the group does.",
    "Compare seq_group.num_seqs(SequenceStatus.RUNNING) with self.get_num_free_gpu_blocks(). Mind "
    "the case in which they are equal.",
]


def check(manager: type[BlockSpaceManagerV1]) -> str:
    """Compare with the real manager on the classic example and on requests with two samples."""
    for num_gpu_blocks in (5, 6, 7):
        compare_with_real(toy_workload([5, 5, 3], num_gpu_blocks), manager)
    compare_with_real(toy_workload([5, 3], num_gpu_blocks=6, num_cpu_blocks=6, n=2), manager)
    # Here one sample of a request ends before the other.
    compare_with_real(toy_workload([5, 5], num_gpu_blocks=8, num_cpu_blocks=8, n=2,
                                   stop_token_ids=range(10)), manager)
    return ("With 5, 6 and 7 blocks, and with two samples per request, yours decides as the real "
            "one does.")
