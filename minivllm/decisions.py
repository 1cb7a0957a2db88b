"""Why a request ran, waited or was stopped: the decision log.

vLLM has nothing like it.  Wherever the scheduler decides about a request it writes a `Decision`:
the check, what the request needed, and what there was.  A reader can check each with a finger: a
request is held back exactly if ``need + reserve > have``.  Requests behind the head of a queue
are not logged, they wait for the head; neither are running groups that simply go on.
"""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


class Check(str, enum.Enum):
    """What is compared; the value is the name used in sentences."""

    PROMPT_LENGTH = "prompt length"
    POOL_SIZE = "pool size"
    GPU_BLOCKS = "free blocks"
    CPU_BLOCKS = "CPU blocks"
    TOKENS = "token budget"
    CHUNK = "token budget for a chunk"
    SEATS = "seats"
    RULE = "rule"


class Verdict(str, enum.Enum):
    """What was decided; the value is the key in trace files."""

    ADMITTED = "admitted"
    SWAPPED_IN = "swapped in"
    WAITS = "waits"
    STAYS_SWAPPED = "stays swapped"
    PAUSES = "pauses"
    RECOMPUTED = "preempted by recompute"
    SWAPPED_OUT = "preempted by swap"
    NOT_SWAPPED_OUT = "recomputed instead of swapped"
    IGNORED = "ignored"
    GIVEN_UP = "given up"
    PROMPTS_FIRST = "prompts go first"
    SWAPPED_FIRST = "swapped groups go first"
    NO_SWAP_IN = "no swap-in after a preemption"
    PROMPTS_DELAYED = "prompts are delayed"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision and the numbers behind it.

    Attributes
    ----------
    request_id : str or None
        About whom; None for a rule that concerns a whole queue.
    verdict : Verdict
        What was decided.
    check : Check
        What was compared.
    need, have, reserve : int
        The request is held back exactly if ``need + reserve > have``.
    other : str or None
        The request in whose favour it was decided.
    total : int
        The engine's limit behind `have`.
    enough : int or None
        The smallest value of that limit with which the request would have run in this step; None
        if raising this one limit might not have been enough.
    takes : int or None
        How many blocks `other` takes when it goes on: free ones are asked for whether or not it
        needs them.
    """

    request_id: str | None
    verdict: Verdict
    check: Check
    need: int = 0
    have: int = 0
    reserve: int = 0
    other: str | None = None
    total: int = 0
    enough: int | None = None
    takes: int | None = None

    @property
    def held_back(self) -> bool:
        """True if there was too little of something."""
        return self.need + self.reserve > self.have

    @property
    def limit(self) -> str | None:
        """The name of the engine argument that sets `total`; None for a rule."""
        return LIMITS.get(self.check)


# Which engine argument a check depends on.
LIMITS = {
    Check.PROMPT_LENGTH: "max_model_len",
    Check.POOL_SIZE: "num_gpu_blocks",
    Check.GPU_BLOCKS: "num_gpu_blocks",
    Check.CPU_BLOCKS: "num_cpu_blocks",
    Check.TOKENS: "max_num_batched_tokens",
    Check.CHUNK: "max_num_batched_tokens",
    Check.SEATS: "max_num_seqs",
}

_PREEMPTED = (Verdict.RECOMPUTED, Verdict.SWAPPED_OUT)


class DecisionLog:
    """The decisions of one step, and which limits have already decided something in it.

    A claim "it would have run with ..." must hold for the step as a whole: if the same limit also
    held back an earlier request, and a smaller raise would have let that one go ahead, then the
    rest of the step would have gone differently, and the claim is dropped.
    """

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self._turning_points: dict[str, int] = {}

    def rule(self, verdict: Verdict) -> None:
        """Log a rule without numbers."""
        self.decisions.append(Decision(None, verdict, Check.RULE))

    def add(self, *decisions: Decision) -> None:
        """Log decisions; those of one call do not stand in each other's way."""
        for decision in decisions:
            point = self._turning_points.get(decision.limit or "")
            if decision.enough is not None and point is not None and point <= decision.enough:
                decision = replace(decision, enough=None)
            self.decisions.append(decision)
        for decision in decisions:
            if decision.limit is not None and decision.held_back:
                self.set_turning_point(
                    decision.limit,
                    decision.total + decision.need + decision.reserve - decision.have)

    def set_turning_point(self, limit: str, value: int) -> None:
        """Note that with this value of the limit the step so far would have gone differently."""
        self._turning_points[limit] = min(value, self._turning_points.get(limit, value))


def _count(number: int, noun: str) -> str:
    """Return "1 block" or "2 blocks".

    >>> _count(1, "block"), _count(2, "block")
    ('1 block', '2 blocks')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _join(names: Sequence[str]) -> str:
    """Return "a, b and c".

    >>> _join(["a", "b", "c"])
    'a, b and c'
    """
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


# One sentence for each verdict and check.
_SENTENCES = {
    (Verdict.ADMITTED, Check.GPU_BLOCKS):
        "{r} starts: its prompt takes {need_blocks}, {have} of {total} are free{keep}.",
    (Verdict.SWAPPED_IN, Check.GPU_BLOCKS):
        "{r} is swapped in: it takes {need_blocks}, {have} of {total} are free{keep}.",
    (Verdict.WAITS, Check.GPU_BLOCKS):
        "{r} waits (free blocks): its prompt takes {need_blocks}, {have} of {total} are "
        "free{keep}.",
    (Verdict.WAITS, Check.TOKENS):
        "{r} waits (token budget): its prompt is {need_tokens}, {have} of the step's {total} are "
        "left{took}.",
    (Verdict.WAITS, Check.CHUNK):
        "{r} waits (token budget): a chunk of its prompt is at least {need_tokens}, {have} of the "
        "step's {total} are left{took}.",
    (Verdict.WAITS, Check.SEATS):
        "{r} waits (seats): it may become {need_seqs}, {have} of {total} seats are free.",
    (Verdict.STAYS_SWAPPED, Check.GPU_BLOCKS):
        "{r} stays swapped (free blocks): it takes {need_blocks}, {have} of {total} are "
        "free{keep}.",
    (Verdict.STAYS_SWAPPED, Check.TOKENS):
        "{r} stays swapped (token budget): it has {need_tokens} to run, {have} of the step's "
        "{total} are left{took}.",
    (Verdict.STAYS_SWAPPED, Check.CHUNK):
        "{r} stays swapped (token budget): a chunk of its prompt is at least {need_tokens}, {have} "
        "of the step's {total} are left{took}.",
    (Verdict.STAYS_SWAPPED, Check.SEATS):
        "{r} stays swapped (seats): it may become {need_seqs}, {have} of {total} seats are free.",
    (Verdict.PAUSES, Check.TOKENS):
        "{r} pauses (token budget): it has {need_tokens} to run, {have} of the step's {total} are "
        "left{took}.",
    (Verdict.RECOMPUTED, Check.GPU_BLOCKS):
        "{r} is preempted by recompute (free blocks): the check wants {need_free} before {o} goes "
        "on{needs_none}, {have} of {total} are free.",
    (Verdict.SWAPPED_OUT, Check.GPU_BLOCKS):
        "{r} is swapped out (free blocks): the check wants {need_free} before {o} goes "
        "on{needs_none}, {have} of {total} are free.",
    (Verdict.NOT_SWAPPED_OUT, Check.CPU_BLOCKS):
        "{r} is recomputed instead of swapped out: it takes {need} CPU blocks, {have} of {total} "
        "are free.",
    (Verdict.IGNORED, Check.PROMPT_LENGTH):
        "{r} is ignored: its prompt is {need_tokens}, at most {have} are allowed.",
    (Verdict.IGNORED, Check.POOL_SIZE):
        "{r} is ignored: its tokens take {need_blocks}, the pool has {total}{keep}.",
    (Verdict.GIVEN_UP, Check.POOL_SIZE):
        "{r} is given up: to go on it takes {need_blocks}, the pool has {total}{keep}.",
    (Verdict.PROMPTS_FIRST, Check.RULE): "Prompts go first: running requests pause.",
    (Verdict.SWAPPED_FIRST, Check.RULE): "Swapped requests go first: no prompt may start.",
    (Verdict.NO_SWAP_IN, Check.RULE): "No swap-in in a step with a preemption.",
    (Verdict.PROMPTS_DELAYED, Check.RULE): "Prompts are delayed to gather more of them.",
}


def sentence(decision: Decision, took: Iterable[str] = ()) -> str:
    """Say a decision in one sentence, and in a second one what would have been enough.

    Parameters
    ----------
    decision : Decision
        What to say.
    took : iterable of str
        The requests that were scheduled before it in the step: they took the tokens.
    """
    d, names = decision, list(took)
    used = d.total - d.have
    other = "it" if d.other == d.request_id else d.other
    text = _SENTENCES[d.verdict, d.check].format(
        r=d.request_id, need=d.need, have=d.have, total=d.total, o=other,
        need_blocks=_count(d.need, "block"), need_free=_count(d.need, "free block"),
        needs_none=f" (here {other} needs none)" if d.takes == 0 else "",
        need_tokens=_count(d.need, "token"), need_seqs=_count(d.need, "sequence"),
        keep=f" and {d.reserve} must stay free" if d.reserve else "",
        took=f"; {_join(names)} took {used}" if names else "")
    if d.enough is None:
        return text
    outcome = "been swapped out" if d.verdict is Verdict.NOT_SWAPPED_OUT else "run"
    return f"{text} It would have {outcome} with {d.limit}={d.enough}."
