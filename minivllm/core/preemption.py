"""How a running group gives its blocks back (mirrors ``_preempt`` in ``vllm/core/scheduler.py``).

Beyond vLLM: a group of several sequences can be recomputed, and is if the CPU pool has no room
for its blocks (vLLM stops there); a prompt that would restart for ever is let through.
"""

from collections import deque

from minivllm.config import SchedulerConfig
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.core.outputs import PreemptionMode, SchedulerRunningOutputs
from minivllm.decisions import Check, Decision, DecisionLog, Verdict
from minivllm.logger import init_logger
from minivllm.sequence import SequenceGroup, SequenceStatus

logger = init_logger(__name__)


class Preemptor:
    """Stops running groups, by swap or by recompute.

    Parameters
    ----------
    scheduler_config : SchedulerConfig
        Says which way.
    block_manager : BlockSpaceManager
        Gets the blocks back.
    """

    def __init__(self, scheduler_config: SchedulerConfig,
                 block_manager: BlockSpaceManager) -> None:
        self.user_specified_preemption_mode = scheduler_config.preemption_mode
        self.max_num_batched_tokens = scheduler_config.max_num_batched_tokens
        self.block_manager = block_manager
        self.chunked_prefill_enabled = scheduler_config.chunked_prefill_enabled
        self.num_cumulative_preemption = 0

    def make_room(self, seq_group: SequenceGroup, queue: deque[SequenceGroup],
                  result: SchedulerRunningOutputs, log: DecisionLog) -> bool:
        """Stop groups from the end of the queue, at last `seq_group` itself, until it can go on.

        Returns whether it can.
        """
        decisions: list[Decision] = []
        while not self.block_manager.can_append_slots(seq_group, 0):
            if not queue and self.would_restart_for_ever(seq_group):
                break
            enough = self._pool_for_all([seq_group, *queue])
            victim = queue.pop() if queue else seq_group
            decisions += self.preempt(victim, seq_group, result, enough)
            if victim is seq_group:
                break
        log.add(*decisions)
        return not decisions or decisions[-1].request_id != seq_group.request_id

    def _pool_for_all(self, seq_groups: list[SequenceGroup]) -> int | None:
        """Return the smallest GPU pool in which these running groups could all go on now.

        With chunked prefill the token budget has a say too: then it is not told.
        """
        if self.chunked_prefill_enabled:
            return None
        manager = self.block_manager
        missing = taken = 0
        for seq_group in seq_groups:
            missing = max(missing, manager.append_demand(seq_group) + taken
                          - manager.get_num_free_gpu_blocks())
            taken += manager.num_blocks_to_append(seq_group)
        return manager.num_total_gpu_blocks + missing

    def preempt(self, victim: SequenceGroup, other: SequenceGroup,
                result: SchedulerRunningOutputs, enough: int | None = None) -> list[Decision]:
        """Stop `victim`, for `other` needs its blocks; say why, and what pool would be enough."""
        need, have = (self.block_manager.append_demand(other),
                      self.block_manager.get_num_free_gpu_blocks())
        takes = self.block_manager.num_blocks_to_append(other)
        decisions = []
        if self._swaps(victim):
            verdict = Verdict.SWAPPED_OUT
            self._preempt_by_swap(victim, result)
        else:
            verdict = Verdict.RECOMPUTED
            if self._preferred_mode(victim) is PreemptionMode.SWAP:
                decisions.append(self._no_cpu_space(victim))
            self._preempt_by_recompute(victim, result)
        self._warn(victim, verdict)
        decisions.append(Decision(
            victim.request_id, verdict, Check.GPU_BLOCKS, need, have, other=other.request_id,
            total=self.block_manager.num_total_gpu_blocks, enough=enough, takes=takes))
        return decisions

    def would_restart_for_ever(self, seq_group: SequenceGroup) -> bool:
        """Return True for a prompt that could not even go on alone in the pool.

        It needs no new block for its next chunk, yet the append test asks for free ones.  Were it
        recomputed it would start again with its first chunk and come to the same point.
        """
        if not seq_group.is_prefill() or self._swaps(seq_group):
            return False
        seqs = seq_group.get_seqs(SequenceStatus.RUNNING)
        blocks = {number for seq in seqs for number in self.block_manager.get_block_table(seq)}
        return (len(blocks) + len(seqs) > self.block_manager.num_total_gpu_blocks
                and seqs[0].get_len() * len(seqs) > self.max_num_batched_tokens)

    def _preferred_mode(self, victim: SequenceGroup) -> PreemptionMode:
        """Recomputing one sequence costs less than moving its blocks twice; not so several."""
        if self.user_specified_preemption_mode is None:
            single = victim.get_max_num_running_seqs() == 1
            return PreemptionMode.RECOMPUTE if single else PreemptionMode.SWAP
        return PreemptionMode[self.user_specified_preemption_mode.upper()]

    def _swaps(self, victim: SequenceGroup) -> bool:
        """Return whether the group would be swapped out: it should be, and there is room."""
        return (self._preferred_mode(victim) is PreemptionMode.SWAP
                and self.block_manager.can_swap_out(victim))

    def _preempt_by_recompute(self, victim: SequenceGroup,
                              result: SchedulerRunningOutputs) -> None:
        for seq in victim.get_seqs(SequenceStatus.RUNNING):
            seq.status = SequenceStatus.WAITING
            self.block_manager.free(seq)
            seq.reset_state_for_recompute()
        result.preempted.append(victim)

    def _preempt_by_swap(self, victim: SequenceGroup, result: SchedulerRunningOutputs) -> None:
        result.blocks_to_swap_out.extend(self.block_manager.swap_out(victim))
        for seq in victim.get_seqs(SequenceStatus.RUNNING):
            seq.status = SequenceStatus.SWAPPED
        result.swapped_out.append(victim)

    def _no_cpu_space(self, victim: SequenceGroup) -> Decision:
        need = self.block_manager.swap_out_demand(victim)
        have, total = (self.block_manager.get_num_free_cpu_blocks(),
                       self.block_manager.num_total_cpu_blocks)
        return Decision(victim.request_id, Verdict.NOT_SWAPPED_OUT, Check.CPU_BLOCKS, need, have,
                        total=total, enough=total + need - have)

    def _warn(self, victim: SequenceGroup, verdict: Verdict) -> None:
        if self.num_cumulative_preemption % 50 == 0:
            logger.warning(
                "Request %s is %s because the KV cache is full; this costs time. "
                "Raise kv_cache_space, or lower max_num_seqs. Preemptions so far: %d.",
                victim.request_id, verdict.value, self.num_cumulative_preemption + 1)
        self.num_cumulative_preemption += 1
