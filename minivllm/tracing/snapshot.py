"""What a step looks like from outside: plain immutable data (vLLM has nothing like it).

A `Snapshot` says what one step decided and how it left the engine: queues, sequences with their
tokens and block tables, both block pools, swaps, copies, decisions, outputs.  The recorder
takes them, `viz` draws them, trace files keep them.  This module defines data only, so that
pictures can be drawn without an engine in sight.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from minivllm.decisions import Decision
from minivllm.tracing.batch import AttentionState, RequestResult, ScheduledRequest


@dataclass(frozen=True)
class Limits:
    """The engine's limits, as a workload file names them."""

    block_size: int
    num_gpu_blocks: int
    num_cpu_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    enable_chunked_prefill: bool = False
    enable_prefix_caching: bool = False
    use_v2_block_manager: bool = False
    preemption_mode: str | None = None


@dataclass
class TokenLog:
    """The tokens of one sequence and their texts.  It only grows: all snapshots share it."""

    request_id: str
    num_prompt_tokens: int
    token_ids: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SequenceState:
    """One sequence after a step.

    Attributes
    ----------
    seq_id : int
        The engine's number for it.
    name : str
        The request's id; with ``.0``, ``.1``, ... in order of joining if the request has, or
        had, several sequences.
    status : str
        As `SequenceStatus` names it.
    num_tokens, num_computed_tokens : int
        Prompt and output tokens; those of them whose keys and values are in the cache.
    device : str or None
        ``"gpu"`` or ``"cpu"``: which pool `block_table` counts in; None without blocks.
    block_table : tuple of int
        Logical block i is physical block ``block_table[i]``.
    cumulative_logprob : float
        Sum of the output tokens' log-probabilities.
    finish_reason : str or None
        Why it ended; None while it goes on.
    log : TokenLog
        The tokens; the first `num_tokens` of it are this snapshot's.
    """

    seq_id: int
    name: str
    status: str
    num_tokens: int
    num_computed_tokens: int
    device: str | None
    block_table: tuple[int, ...]
    cumulative_logprob: float
    finish_reason: str | None
    log: TokenLog = field(repr=False, compare=False)

    @property
    def request_id(self) -> str:
        """Its request."""
        return self.log.request_id

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens that came with the request."""
        return self.log.num_prompt_tokens

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Prompt and output tokens."""
        return tuple(self.log.token_ids[:self.num_tokens])

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of each token; its id as digits where there is no tokenizer."""
        return tuple(self.log.texts[:self.num_tokens])

    def num_filled(self, logical_idx: int, block_size: int) -> int:
        """Return how many slots of logical block `logical_idx` hold computed tokens."""
        return min(max(self.num_computed_tokens - logical_idx * block_size, 0), block_size)


@dataclass(frozen=True)
class BlockState:
    """One physical block that is in use, or free but still cached.

    Attributes
    ----------
    number : int
        Its place in the pool.
    ref_count : int
        How many block tables list it; 0: it is only cached, and may be evicted.
    content_hash : int or None
        The prefix cache's key of its content, if it has one.
    num_filled : int
        Slots that hold computed tokens.
    holders : tuple of (int, int)
        (seq_id, logical block) of each table entry that names it.
    """

    number: int
    ref_count: int
    content_hash: int | None
    num_filled: int
    holders: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class PoolState:
    """One of the two block pools.

    Attributes
    ----------
    device : str
        ``"gpu"``: what attention reads; ``"cpu"``: the swap area.
    num_blocks, num_free : int
        All blocks, and those that can be had (cached but unused ones included).
    blocks : mapping of int to BlockState
        Those in use or cached, by number; all others are empty.
    """

    device: str
    num_blocks: int
    num_free: int
    blocks: Mapping[int, BlockState]

    @property
    def num_used(self) -> int:
        """Blocks that some table lists."""
        return self.num_blocks - self.num_free

    @property
    def num_cached(self) -> int:
        """Free blocks whose content could still be found again."""
        return sum(block.ref_count == 0 for block in self.blocks.values())


@dataclass(frozen=True)
class Snapshot:
    """One step: what it decided, and how it left the engine.

    Attributes
    ----------
    step : int
        Its number; counted from 0.
    limits : Limits
        The engine's.
    waiting, running, swapped : tuple of str
        The queues after the step, request ids from head to tail.
    sequences : mapping of int to SequenceState
        By seq_id: those of queued requests, and of requests that ended in this step.
    gpu, cpu : PoolState
        The block pools after the step.
    scheduled : tuple of ScheduledRequest
        The batch, prefills first.
    num_prefill_groups, num_batched_tokens, running_queue_size : int
        As the scheduler counted them.
    blocks_to_swap_in, blocks_to_swap_out, blocks_to_copy : tuple of (int, int)
        (source, destination) block numbers, moved before the model ran.
    ignored, preempted : tuple of str
        Requests that were given up, or lost their blocks, in this step.
    decisions : tuple of Decision
        Why.
    outputs : tuple of RequestResult
        What the step returned.
    attention_weights : AttentionState or None
        If it has been recorded, and the step decoded.
    previous : Snapshot or None
        The step before, if it was recorded.
    """

    step: int
    limits: Limits
    waiting: tuple[str, ...]
    running: tuple[str, ...]
    swapped: tuple[str, ...]
    sequences: Mapping[int, SequenceState]
    gpu: PoolState
    cpu: PoolState
    scheduled: tuple[ScheduledRequest, ...] = ()
    num_prefill_groups: int = 0
    num_batched_tokens: int = 0
    running_queue_size: int = 0
    blocks_to_swap_in: tuple[tuple[int, int], ...] = ()
    blocks_to_swap_out: tuple[tuple[int, int], ...] = ()
    blocks_to_copy: tuple[tuple[int, int], ...] = ()
    ignored: tuple[str, ...] = ()
    preempted: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    outputs: tuple[RequestResult, ...] = ()
    attention_weights: AttentionState | None = None
    previous: "Snapshot | None" = field(default=None, repr=False, compare=False)

    def history(self) -> list["Snapshot"]:
        """Return the snapshots up to this one, oldest first."""
        snapshots: list[Snapshot] = []
        snapshot: Snapshot | None = self
        while snapshot is not None:
            snapshots.append(snapshot)
            snapshot = snapshot.previous
        return snapshots[::-1]

    @property
    def request_ids(self) -> list[str]:
        """All requests of this step: those in the queues, and those that ended in it."""
        return list(dict.fromkeys(seq.request_id for seq in self.sequences.values()))

    @property
    def finished(self) -> list[str]:
        """Requests that ended in this step."""
        return [output.request_id for output in self.outputs if output.finished]

    @property
    def aborted(self) -> list[str]:
        """Requests that have left since the step before without having ended."""
        if self.previous is None:
            return []
        before = (*self.previous.waiting, *self.previous.running, *self.previous.swapped)
        here = {*self.request_ids, *self.ignored}
        return [request_id for request_id in before if request_id not in here]

    def seqs_of(self, request_id: str) -> list[SequenceState]:
        """Return the sequences of one request, in the order in which they joined."""
        return [seq for seq in self.sequences.values() if seq.request_id == request_id]

    def find(self, name: str) -> list[SequenceState]:
        """Return the sequence called `name`, or all of the request called so.

        Raises
        ------
        ValueError
            If there is neither in this step.
        """
        found = [seq for seq in self.sequences.values() if name in (seq.name, seq.request_id)]
        if not found:
            names = ", ".join(self.request_ids) or "none at all"
            raise ValueError(f"there is no request or sequence {name!r} in step {self.step}; "
                             f"there are: {names}.")
        return found

    def scheduled_request(self, request_id: str) -> ScheduledRequest | None:
        """Return how `request_id` ran in this step; None if it did not."""
        for scheduled in self.scheduled:
            if scheduled.request_id == request_id:
                return scheduled
        return None


def holders_of(sequences: Mapping[int, SequenceState],
               device: str) -> Iterator[tuple[int, SequenceState, int]]:
    """Yield (block number, sequence, logical block) for each table entry of one pool."""
    for seq in sequences.values():
        if seq.device == device:
            for logical_idx, number in enumerate(seq.block_table):
                yield number, seq, logical_idx

