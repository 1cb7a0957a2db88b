"""The three queues, and every move between them (mirrors parts of ``vllm/core/scheduler.py``).

A move also gives or takes blocks and sets the sequences' status, so that the three always agree.
"""

from collections import deque
from collections.abc import Callable, Iterable

from minivllm.core.interfaces import BlockSpaceManager
from minivllm.core.outputs import SchedulerSwappedInOutputs
from minivllm.core.policy import PolicyFactory
from minivllm.decisions import Decision, sentence
from minivllm.logger import init_logger
from minivllm.sequence import Sequence, SequenceGroup, SequenceStatus

logger = init_logger(__name__)


class RequestQueues:
    """Where each unfinished request is.

    Parameters
    ----------
    block_manager : BlockSpaceManager
        Gives and takes blocks.
    clock : callable
        Returns the time.

    Attributes
    ----------
    waiting : deque of SequenceGroup
        Not started, or to be recomputed; they own no blocks.
    running : deque of SequenceGroup
        They own GPU blocks.
    swapped : deque of SequenceGroup
        They own CPU blocks.
    """

    def __init__(self, block_manager: BlockSpaceManager, clock: Callable[[], float]) -> None:
        self.block_manager = block_manager
        self.clock = clock
        self.policy = PolicyFactory.get_policy("fcfs")
        self.waiting: deque[SequenceGroup] = deque()
        self.running: deque[SequenceGroup] = deque()
        self.swapped: deque[SequenceGroup] = deque()

    def add_seq_group(self, seq_group: SequenceGroup) -> None:
        """Let a request wait."""
        self.waiting.append(seq_group)

    def abort_seq_group(self, request_id: str | Iterable[str]) -> None:
        """Drop requests, wherever they are, and free their blocks; unknown ids are ignored."""
        request_ids = {request_id} if isinstance(request_id, str) else set(request_id)
        for queue in (self.waiting, self.running, self.swapped):
            for seq_group in [group for group in queue if group.request_id in request_ids]:
                queue.remove(seq_group)
                self._finish(seq_group.get_unfinished_seqs(), SequenceStatus.FINISHED_ABORTED)

    def has_unfinished_seqs(self) -> bool:
        """Return True if any request is in a queue."""
        return bool(self.waiting or self.running or self.swapped)

    def get_num_unfinished_seq_groups(self) -> int:
        """Return how many requests are in the queues."""
        return len(self.waiting) + len(self.running) + len(self.swapped)

    def fork_seq(self, parent_seq: Sequence, child_seq: Sequence) -> None:
        """Let a child share its parent's blocks."""
        self.block_manager.fork(parent_seq, child_seq)

    def free_seq(self, seq: Sequence) -> None:
        """Give a sequence's blocks back."""
        self.block_manager.free(seq)

    def free_finished_seq_groups(self) -> None:
        """Let finished groups leave the running queue."""
        self.running = deque(group for group in self.running if not group.is_finished())

    def recompute_all(self) -> None:
        """Undo what a failed step left half done: no block can be trusted any more.

        Every running and swapped group waits to be recomputed, the first to arrive first.
        """
        stopped = self.policy.sort_by_priority(self.clock(), [*self.running, *self.swapped])
        for seq_group in stopped:
            for seq in seq_group.get_unfinished_seqs():
                seq.status = SequenceStatus.WAITING
                seq.reset_state_for_recompute()
        self.waiting.extendleft(reversed(stopped))
        self.running.clear()
        self.swapped.clear()
        self.block_manager.reset()

    def _start_head_of_waiting(self, seqs: list[Sequence]) -> None:
        """Give the head of the waiting queue its blocks; `_commit` lets it run."""
        self.block_manager.allocate(self.waiting.popleft())
        for seq in seqs:
            seq.status = SequenceStatus.RUNNING

    def _ignore_head_of_waiting(self, seqs: list[Sequence], decision: Decision) -> None:
        """Drop a request that can never start; it ends with what it has."""
        logger.warning(sentence(decision))
        self.waiting.popleft()
        self._finish(seqs, SequenceStatus.FINISHED_IGNORED)

    def _swap_in_head_of_swapped(self, seqs: list[Sequence],
                                 result: SchedulerSwappedInOutputs) -> None:
        """Bring the blocks of the head of the swapped queue back; `_commit` lets it run."""
        moves = self.block_manager.swap_in(self.swapped.popleft())
        result.blocks_to_swap_in.extend(moves)
        result.num_copies_before_swap_in += [len(result.blocks_to_copy)] * len(moves)
        for seq in seqs:
            seq.status = SequenceStatus.RUNNING

    def _give_up_head_of_swapped(self, decision: Decision) -> None:
        """Drop a group that can never come back; its finished sequences count as cut off too."""
        logger.warning(sentence(decision))
        self._finish(self.swapped.popleft().get_seqs(), SequenceStatus.FINISHED_IGNORED)

    def _finish(self, seqs: list[Sequence], status: SequenceStatus) -> None:
        """End sequences and free their blocks."""
        for seq in seqs:
            seq.status = status
            self.free_seq(seq)
