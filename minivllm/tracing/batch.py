"""What a step ran and what it returned: the parts of a `Snapshot` that are about its batch.

Data only, like `minivllm.tracing.snapshot`.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ScheduledSequence:
    """A sequence of the batch as the scheduler handed it to the model."""

    seq_id: int
    num_tokens: int
    num_computed_tokens: int
    block_table: tuple[int, ...]


@dataclass(frozen=True)
class ScheduledRequest:
    """A request of the batch as the scheduler handed it to the model.

    Attributes
    ----------
    request_id : str
        Which.
    is_prompt : bool
        In prefill, also when it is recomputed.
    token_chunk_size : int
        Tokens to compute, for each sequence.
    do_sample : bool
        False if the prompt is not complete after this chunk.
    seqs : tuple of ScheduledSequence
        Its running sequences.
    computed_block_nums : tuple of int
        Leading blocks found in the prefix cache.
    """

    request_id: str
    is_prompt: bool
    token_chunk_size: int
    do_sample: bool
    seqs: tuple[ScheduledSequence, ...]
    computed_block_nums: tuple[int, ...] = ()


@dataclass(frozen=True)
class CompletionState:
    """One of a request's best sequences; `token_ids` are None while the request goes on."""

    index: int
    num_output_tokens: int
    token_ids: tuple[int, ...] | None
    cumulative_logprob: float
    finish_reason: str | None
    stop_reason: int | str | None


@dataclass(frozen=True)
class RequestResult:
    """What a step returned for one request, best sequence first."""

    request_id: str
    finished: bool
    outputs: tuple[CompletionState, ...]


@dataclass(frozen=True)
class AttentionState:
    """What one head of one layer read in a step: see `minivllm.tracing.attention`.

    `weights` maps the seq_id of each decoding sequence to one weight for each of its tokens.
    """

    layer: int
    head: int
    weights: Mapping[int, tuple[float, ...]]
