"""Who runs in this step (mirrors ``vllm/core/scheduler.py``).

A step walks the three queues (`RequestQueues`) in three phases, each of which returns a small
result; `_commit` then puts the groups where they belong.  The default policy runs either prompts
or everything else; with chunked prefill both run together, and prompts may be cut.  What a group
needs to go ahead is asked in `Checks`, who has to stop for others in `Preemptor`.

Left out: LoRA, lookahead slots (their number is 0).  Beyond vLLM: groups of several sequences can
be recomputed, and whatever is decided is logged (`SchedulerOutputs.decisions`).
"""

import time
from collections import deque
from collections.abc import Callable, Iterable

from minivllm.config import CacheConfig, SchedulerConfig
from minivllm.core.batch import describe, note_use
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.core.block_manager_v2 import BlockSpaceManagerV2
from minivllm.core.budget import SchedulingBudget
from minivllm.core.checks import Checks
from minivllm.core.embedding_model_block_manager import EmbeddingModelBlockSpaceManager
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.core.outputs import (
    PreemptionMode,
    ScheduledSequenceGroup,
    SchedulerOutputs,
    SchedulerPrefillOutputs,
    SchedulerRunningOutputs,
    SchedulerSwappedInOutputs,
)
from minivllm.core.preemption import Preemptor
from minivllm.core.queues import RequestQueues
from minivllm.decisions import DecisionLog, Verdict
from minivllm.sequence import Sequence, SequenceGroup, SequenceGroupMetadata, SequenceStatus

__all__ = ["PreemptionMode", "ScheduledSequenceGroup", "Scheduler", "SchedulerOutputs",
           "SchedulingBudget"]


def get_block_space_manager_class(scheduler_config: SchedulerConfig) -> type[BlockSpaceManager]:
    """Return the block manager that the configuration asks for."""
    if scheduler_config.embedding_mode:
        return EmbeddingModelBlockSpaceManager
    return BlockSpaceManagerV2 if scheduler_config.use_v2_block_manager else BlockSpaceManagerV1


class Scheduler(RequestQueues):
    """Chooses the groups and tokens of each step, and preempts when blocks run out.

    Parameters
    ----------
    scheduler_config : SchedulerConfig
        The limits of a step.
    cache_config : CacheConfig
        The block pools.
    block_manager : type of BlockSpaceManager, optional
        Instead of the one that the configuration names.
    clock : callable, optional
        Returns the time.
    """

    def __init__(self, scheduler_config: SchedulerConfig, cache_config: CacheConfig, *,
                 block_manager: type[BlockSpaceManager] | None = None,
                 clock: Callable[[], float] = time.time) -> None:
        manager_class = block_manager or get_block_space_manager_class(scheduler_config)
        if not (isinstance(manager_class, type) and issubclass(manager_class, BlockSpaceManager)):
            raise ValueError("block_manager must be a subclass of BlockSpaceManager, "
                             f"got {block_manager!r}.")
        super().__init__(manager_class(
            block_size=cache_config.block_size,
            num_gpu_blocks=cache_config.num_gpu_blocks or 0,
            num_cpu_blocks=cache_config.num_cpu_blocks or 0,
            sliding_window=cache_config.sliding_window,
            enable_caching=cache_config.enable_prefix_caching), clock)
        self.scheduler_config = scheduler_config
        self.cache_config = cache_config
        self.checks = Checks(scheduler_config, self.block_manager)
        self.preemptor = Preemptor(scheduler_config, self.block_manager)
        # For delay_factor: when prompts were last looked at, and how long a prompt step took.
        self.prev_time = 0.0
        self.prev_prompt = False
        self.last_prompt_latency = 0.0

    def schedule(self) -> tuple[list[SequenceGroupMetadata], SchedulerOutputs]:
        """Decide about the next step, and describe its batch for the worker."""
        budget = SchedulingBudget(self.scheduler_config.max_num_batched_tokens,
                                  self.scheduler_config.max_num_seqs)
        if self.scheduler_config.chunked_prefill_enabled:
            outputs = self._schedule_chunked_prefill(budget, DecisionLog())
        else:
            outputs = self._schedule_default(budget, DecisionLog())
        now = self.clock()
        scheduled = outputs.scheduled_seq_groups
        batch = [describe(group, self.block_manager, now) for group in scheduled]
        if self.cache_config.enable_prefix_caching:
            note_use(scheduled, self.block_manager, now)
        return batch, outputs

    def _schedule_default(self, budget: SchedulingBudget, log: DecisionLog) -> SchedulerOutputs:
        """Run prompts if any can start, else everything else."""
        prefills, swapped = SchedulerPrefillOutputs(), SchedulerSwappedInOutputs()
        running = SchedulerRunningOutputs()
        if self.waiting or self.swapped:  # who runs already asks for no seat
            self._take_seats(self.running, budget)
        if not self.swapped:
            prefills = self._schedule_prefills(budget, log)
        elif self.waiting:
            log.rule(Verdict.SWAPPED_FIRST)
        if prefills.seq_groups:
            running.unvisited.extend(self.running)
            if self.running:
                log.rule(Verdict.PROMPTS_FIRST)
        else:
            running = self._schedule_running(budget, log)
            swapped = self._schedule_swapped_unless_preempted(running, budget, log)
        return self._commit(prefills, running, swapped, budget, log)

    def _schedule_chunked_prefill(self, budget: SchedulingBudget,
                                  log: DecisionLog) -> SchedulerOutputs:
        """Run what runs, then what is swapped, then as much of new prompts as fits."""
        running = self._schedule_running(budget, log)
        ran = running.prefill_seq_groups + running.decode_seq_groups
        self._take_seats([s.seq_group for s in ran] + running.unvisited, budget)
        swapped = self._schedule_swapped_unless_preempted(running, budget, log)
        prefills = self._schedule_prefills(budget, log)
        return self._commit(prefills, running, swapped, budget, log)

    def _schedule_prefills(self, budget: SchedulingBudget,
                           log: DecisionLog) -> SchedulerPrefillOutputs:
        """Start waiting groups from the head of the queue until one does not fit."""
        result = SchedulerPrefillOutputs()
        if not self._passed_delay(self.clock()):
            log.rule(Verdict.PROMPTS_DELAYED)
            return result
        while self.waiting:
            seq_group = self.waiting[0]
            seqs = seq_group.get_seqs(SequenceStatus.WAITING)
            chunk = self._get_chunk(seqs, budget, self.scheduler_config.chunked_prefill_enabled)
            decision = self.checks.may_start(seq_group, seqs, chunk, budget)
            log.add(decision)
            if decision.verdict is Verdict.IGNORED:
                self._ignore_head_of_waiting(seqs, decision)
                result.ignored_seq_groups.append(seq_group)
            elif decision.held_back:
                break
            else:
                self._start_head_of_waiting(seqs)
                self._take_seats([seq_group], budget)
                result.seq_groups.append(self._prefill(seq_group, seqs, chunk, budget))
        self.prev_prompt = bool(result.seq_groups)
        return result

    def _schedule_running(self, budget: SchedulingBudget,
                          log: DecisionLog) -> SchedulerRunningOutputs:
        """Let running groups go on, the first to arrive first; preempt when blocks run out."""
        result = SchedulerRunningOutputs()
        queue = self.policy.sort_by_priority(self.clock(), self.running)
        while queue:
            seq_group = queue.popleft()
            seqs = seq_group.get_seqs(SequenceStatus.RUNNING)
            is_prefill = seqs[0].data.is_prefill
            chunk = self._get_chunk(seqs, budget, may_cut=True) if is_prefill else 1
            fits = 0 < chunk * len(seqs) <= budget.remaining_token_budget()
            # As in vLLM, several decodes look for blocks before anybody looks at the budget.
            looks_for_blocks = fits or not (is_prefill or len(seqs) == 1)
            if looks_for_blocks and not (
                    self.block_manager.can_append_slots(seq_group, 0)
                    or self.preemptor.make_room(seq_group, queue, result, log)):
                break
            if not fits:
                log.add(self.checks.pauses(seq_group, seqs, budget))
                queue.appendleft(seq_group)
                break
            if is_prefill:
                result.prefill_seq_groups.append(self._prefill(seq_group, seqs, chunk, budget))
            else:
                self._decode(seq_group, seqs, budget, result)
        result.unvisited.extend(queue)
        return result

    def _schedule_swapped(self, budget: SchedulingBudget,
                          log: DecisionLog) -> SchedulerSwappedInOutputs:
        """Bring swapped groups back, the first to arrive first, until one does not fit."""
        result = SchedulerSwappedInOutputs()
        self.swapped = self.policy.sort_by_priority(self.clock(), self.swapped)
        while self.swapped:
            seq_group = self.swapped[0]
            seqs = seq_group.get_seqs(SequenceStatus.SWAPPED)
            chunk = self._get_chunk(seqs, budget, may_cut=False)
            decision = self.checks.may_swap_in(seq_group, seqs, chunk, budget)
            log.add(decision)
            if decision.verdict is Verdict.GIVEN_UP:
                self._give_up_head_of_swapped(decision)
                result.infeasible_seq_groups.append(seq_group)
                continue
            if decision.held_back:
                break
            self._swap_in_head_of_swapped(seqs, result)
            self._take_seats([seq_group], budget)
            if seqs[0].is_prefill():
                result.prefill_seq_groups.append(self._prefill(seq_group, seqs, chunk, budget))
            else:
                self._decode(seq_group, seqs, budget, result)
        return result

    def _schedule_swapped_unless_preempted(
            self, running: SchedulerRunningOutputs, budget: SchedulingBudget,
            log: DecisionLog) -> SchedulerSwappedInOutputs:
        """Bring nobody back in a step in which others had to go."""
        if not running.num_preempted:
            return self._schedule_swapped(budget, log)
        if self.swapped:
            log.rule(Verdict.NO_SWAP_IN)
        return SchedulerSwappedInOutputs()

    def _commit(self, prefills: SchedulerPrefillOutputs, running: SchedulerRunningOutputs,
                swapped: SchedulerSwappedInOutputs, budget: SchedulingBudget,
                log: DecisionLog) -> SchedulerOutputs:
        """Put all groups where they belong now, and sum up the step."""
        all_prefills = (prefills.seq_groups + running.prefill_seq_groups
                        + swapped.prefill_seq_groups)
        self.waiting.extendleft(running.preempted)
        self.swapped.extend(running.swapped_out)
        self.running = deque(running.unvisited)
        for scheduled in (prefills.seq_groups, running.decode_seq_groups,
                          running.prefill_seq_groups, swapped.decode_seq_groups,
                          swapped.prefill_seq_groups):
            self.running.extend(s.seq_group for s in scheduled)
        return SchedulerOutputs(
            scheduled_seq_groups=(all_prefills + running.decode_seq_groups
                                  + swapped.decode_seq_groups),
            num_prefill_groups=len(all_prefills),
            num_batched_tokens=budget.num_batched_tokens,
            blocks_to_swap_in=swapped.blocks_to_swap_in,
            blocks_to_swap_out=running.blocks_to_swap_out,
            blocks_to_copy=running.blocks_to_copy + swapped.blocks_to_copy,
            num_copies_before_swap_in=[len(running.blocks_to_copy) + num_copies
                                       for num_copies in swapped.num_copies_before_swap_in],
            ignored_seq_groups=prefills.ignored_seq_groups + swapped.infeasible_seq_groups,
            num_lookahead_slots=0,
            running_queue_size=len(self.running),
            preempted=running.num_preempted,
            decisions=log.decisions)

    def _take_seats(self, seq_groups: Iterable[SequenceGroup], budget: SchedulingBudget) -> None:
        """Take seats for groups that run or could run."""
        budget.num_curr_seqs += sum(map(SequenceGroup.get_max_num_running_seqs, seq_groups))

    def _get_chunk(self, seqs: list[Sequence], budget: SchedulingBudget, may_cut: bool) -> int:
        """Return how many tokens of each sequence to compute; 0 if the budget is used up.

        All sequences of a group are equally long.  What exceeds even a whole step's budget is
        always cut.
        """
        rest = seqs[0].get_num_new_tokens()
        if may_cut or rest * len(seqs) > budget.token_budget:
            return min(rest, budget.remaining_token_budget() // len(seqs))
        return rest

    def _prefill(self, seq_group: SequenceGroup, seqs: list[Sequence], chunk: int,
                 budget: SchedulingBudget) -> ScheduledSequenceGroup:
        """Take the tokens of a prompt, or of a part of it, out of the budget."""
        budget.num_batched_tokens += chunk * len(seqs)
        budget.num_cut_tokens += (seqs[0].get_num_new_tokens() - chunk) * len(seqs)
        return ScheduledSequenceGroup(seq_group, chunk, seqs)

    def _decode(self, seq_group: SequenceGroup, seqs: list[Sequence], budget: SchedulingBudget,
                result: SchedulerRunningOutputs | SchedulerSwappedInOutputs) -> None:
        """Take a token of each sequence out of the budget, and make a slot for it."""
        budget.num_batched_tokens += len(seqs)
        for seq in seqs:
            result.blocks_to_copy += self.block_manager.append_slots(seq, 0)
        result.decode_seq_groups.append(ScheduledSequenceGroup(seq_group, 1, seqs))

    def _passed_delay(self, now: float) -> bool:
        """Return False while prompts are to be gathered (`delay_factor`)."""
        if self.prev_prompt:
            self.last_prompt_latency = now - self.prev_time
        self.prev_time, self.prev_prompt = now, False
        factor = self.scheduler_config.delay_factor
        if factor <= 0 or not self.waiting or not self.running:
            return True
        earliest = min(group.metrics.arrival_time for group in self.waiting)
        return now - earliest > factor * self.last_prompt_latency

