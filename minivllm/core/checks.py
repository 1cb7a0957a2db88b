"""May this group run?  The scheduler's questions, each answered by a `Decision`.

What ``vllm/core/scheduler.py`` asks in the middle of its loops stands here together, with the
numbers that the decision log shows.
"""

from typing import NamedTuple

from minivllm.config import SchedulerConfig
from minivllm.core.budget import SchedulingBudget
from minivllm.core.interfaces import AllocStatus, BlockDemand, BlockSpaceManager
from minivllm.decisions import Check, Decision, Verdict
from minivllm.sequence import Sequence, SequenceGroup


class Verdicts(NamedTuple):
    """What is said in a queue: if all is well, if there is too little now, if for ever."""

    ok: Verdict
    later: Verdict
    never: Verdict


WAITING = Verdicts(Verdict.ADMITTED, Verdict.WAITS, Verdict.IGNORED)
SWAPPED = Verdicts(Verdict.SWAPPED_IN, Verdict.STAYS_SWAPPED, Verdict.GIVEN_UP)


class Row(NamedTuple):
    """One comparison; `is_short` if there is too little, `enough` is the limit that would do."""

    check: Check
    need: int
    have: int
    reserve: int
    total: int
    is_short: bool
    enough: int | None


class Checks:
    """Answers the scheduler's questions; changes nothing.

    Parameters
    ----------
    scheduler_config : SchedulerConfig
        The limits.
    block_manager : BlockSpaceManager
        Knows the blocks.
    """

    def __init__(self, scheduler_config: SchedulerConfig,
                 block_manager: BlockSpaceManager) -> None:
        self.config = scheduler_config
        self.block_manager = block_manager

    def may_start(self, seq_group: SequenceGroup, seqs: list[Sequence], chunk: int,
                  budget: SchedulingBudget) -> Decision:
        """Decide about a waiting group; `chunk` tokens of each of `seqs` would run."""
        status = self.block_manager.can_allocate(seq_group)
        demand = self.block_manager.allocation_demand(seq_group)
        rows = self._rows(seq_group, status, demand, seqs, chunk, budget)
        too_long = self._length_row(seqs[0].get_len())
        # As in vLLM, a prompt that gets no chunk waits before anybody looks at its length.
        no_chunk = self.config.chunked_prefill_enabled and chunk == 0
        return self._decide(seq_group, [*rows, too_long] if no_chunk else [too_long, *rows],
                            demand, WAITING)

    def may_swap_in(self, seq_group: SequenceGroup, seqs: list[Sequence], chunk: int,
                    budget: SchedulingBudget) -> Decision:
        """Decide about a swapped group; `chunk` tokens of each of `seqs` would run."""
        status = self.block_manager.can_swap_in(seq_group, 0)
        demand = self.block_manager.swap_in_demand(seq_group)
        rows = self._rows(seq_group, status, demand, seqs, chunk, budget)
        return self._decide(seq_group, rows, demand, SWAPPED)

    def pauses(self, seq_group: SequenceGroup, seqs: list[Sequence],
               budget: SchedulingBudget) -> Decision:
        """Say that a running group has no tokens left in this step."""
        row = self._token_row(Check.TOKENS, len(seqs), budget)
        fits = self.block_manager.can_append_slots(seq_group, 0)
        return Decision(seq_group.request_id, Verdict.PAUSES, row.check, row.need, row.have,
                        total=row.total, enough=row.enough if fits else None)

    def _decide(self, seq_group: SequenceGroup, rows: list[Row], demand: BlockDemand,
                verdicts: Verdicts) -> Decision:
        """The first row that is short decides; if it is the only one, more of it would do."""
        short = [row for row in rows if row.is_short]
        if not short:
            return Decision(seq_group.request_id, verdicts.ok, Check.GPU_BLOCKS, demand.need,
                            demand.have, demand.reserve, total=demand.total)
        row = short[0]
        for_ever = row.check in (Check.PROMPT_LENGTH, Check.POOL_SIZE)
        return Decision(seq_group.request_id, verdicts.never if for_ever else verdicts.later,
                        row.check, row.need, row.have, row.reserve, total=row.total,
                        enough=row.enough if len(short) == 1 else None)

    def _rows(self, seq_group: SequenceGroup, status: AllocStatus, demand: BlockDemand,
              seqs: list[Sequence], chunk: int, budget: SchedulingBudget) -> list[Row]:
        """Compare blocks, tokens and seats, in this order."""
        tokens = (self._token_row(Check.TOKENS, chunk * len(seqs), budget) if chunk > 0
                  else self._token_row(Check.CHUNK, len(seqs), budget))
        return [self._block_row(status, demand), tokens,
                self._seat_row(seq_group.get_max_num_running_seqs(), budget)]

    def _length_row(self, length: int) -> Row:
        limit = self.config.max_model_len
        enough: int | None = length
        if not self.config.chunked_prefill_enabled:
            limit = min(limit, self.config.max_num_batched_tokens)
            # A whole prompt needs the token budget too: raising one limit may not do.
            enough = length if length <= self.config.max_num_batched_tokens else None
        return Row(Check.PROMPT_LENGTH, length, limit, 0, limit, length > limit, enough)

    def _block_row(self, status: AllocStatus, demand: BlockDemand) -> Row:
        missing = demand.need + demand.reserve - demand.have
        enough = self.block_manager.pool_size_with(missing) if missing > 0 else demand.total
        is_short = status is not AllocStatus.OK
        if status is AllocStatus.NEVER:
            return Row(Check.POOL_SIZE, demand.need, demand.total, demand.total_reserve,
                       demand.total, is_short, enough)
        return Row(Check.GPU_BLOCKS, demand.need, demand.have, demand.reserve, demand.total,
                   is_short, enough)

    def _token_row(self, check: Check, need: int, budget: SchedulingBudget) -> Row:
        have = budget.remaining_token_budget()
        # A prompt that was cut to fit takes the first tokens of a larger budget.
        enough = budget.token_budget + budget.num_cut_tokens + need - have
        return Row(check, need, have, 0, budget.token_budget, need > have, enough)

    def _seat_row(self, need: int, budget: SchedulingBudget) -> Row:
        have = budget.remaining_seats()
        return Row(Check.SEATS, need, have, 0, budget.max_num_seqs, need > have,
                   budget.max_num_seqs + need - have)
