"""What goes down to the worker in a step, and what comes back from the sampler."""

from dataclasses import dataclass, field

from minivllm.pooling_params import PoolingParams
from minivllm.sampling_params import SamplingParams
from minivllm.sequence.data import Logprob, PromptLogprobs, SequenceData
from minivllm.sequence.group import SequenceGroupState


@dataclass(slots=True)
class SequenceGroupMetadata:
    """A scheduled group as the worker sees it.

    Attributes
    ----------
    request_id : str
        Whose tokens.
    is_prompt : bool
        In prefill, also when it is recomputed.
    seq_data : dict of int to SequenceData
        The running sequences by seq_id, in the group's order.
    sampling_params : SamplingParams or None
        None for a pooling request.
    block_tables : dict of int to list of int
        seq_id -> GPU block numbers.
    do_sample : bool
        False if the prompt is not complete after this chunk.
    pooling_params : PoolingParams or None
        None for a generation request.
    token_chunk_size : int
        Tokens to process, for each of the sequences; 1 in decode.
    computed_block_nums : list of int
        Leading blocks whose keys and values are in the cache already (prefix caching).
    state : SequenceGroupState
        The sampler's.
    """

    request_id: str
    is_prompt: bool
    seq_data: dict[int, SequenceData]
    sampling_params: SamplingParams | None
    block_tables: dict[int, list[int]]
    do_sample: bool = True
    pooling_params: PoolingParams | None = None
    token_chunk_size: int = 1
    computed_block_nums: list[int] = field(default_factory=list)
    state: SequenceGroupState = field(default_factory=SequenceGroupState)


@dataclass(slots=True)
class SequenceOutput:
    """One sampled token.

    Attributes
    ----------
    parent_seq_id : int
        The sequence that it continues; several samples of one parent make forks.
    output_token : int
        The token.
    logprobs : dict of int to Logprob
        At least the token's own, and the best ones asked for.
    """

    parent_seq_id: int
    output_token: int
    logprobs: dict[int, Logprob]


@dataclass(slots=True)
class CompletionSequenceGroupOutput:
    """What the sampler says of one group.

    Attributes
    ----------
    samples : list of SequenceOutput
        Empty for a prompt chunk that is not the last.
    prompt_logprobs : PromptLogprobs or None
        One entry for each prompt token whose predecessor this step computed, if asked for.
    """

    samples: list[SequenceOutput]
    prompt_logprobs: PromptLogprobs | None = None


@dataclass(slots=True)
class EmbeddingSequenceGroupOutput:
    """The vector of one pooling request, hidden_size floats."""

    embeddings: list[float]


@dataclass
class SamplerOutput:
    """What the sampler says of each group of a step, in batch order; used like a list."""

    outputs: list[CompletionSequenceGroupOutput]

    def __getitem__(self, idx: int) -> CompletionSequenceGroupOutput:
        return self.outputs[idx]

    def __len__(self) -> int:
        return len(self.outputs)


@dataclass
class PoolerOutput:
    """What the pooler says of each group of a step, in batch order; used like a list."""

    outputs: list[EmbeddingSequenceGroupOutput]

    def __getitem__(self, idx: int) -> EmbeddingSequenceGroupOutput:
        return self.outputs[idx]

    def __len__(self) -> int:
        return len(self.outputs)


@dataclass
class ExecuteModelRequest:
    """All that the executor needs for one step.

    Attributes
    ----------
    seq_group_metadata_list : list of SequenceGroupMetadata
        The batch, prefills first.
    blocks_to_swap_in, blocks_to_swap_out, blocks_to_copy : list of (int, int)
        (source, destination) block numbers, to be moved before the model runs.
    num_copies_before_swap_in : list of int
        For each swap-in how many of the copies come before it: it may take a block that was
        copied and given up in the same step.
    num_lookahead_slots : int
        Always 0: there is no speculative decoding here.
    running_queue_size : int
        Length of the running queue.
    """

    seq_group_metadata_list: list[SequenceGroupMetadata]
    blocks_to_swap_in: list[tuple[int, int]] = field(default_factory=list)
    blocks_to_swap_out: list[tuple[int, int]] = field(default_factory=list)
    blocks_to_copy: list[tuple[int, int]] = field(default_factory=list)
    num_copies_before_swap_in: list[int] = field(default_factory=list)
    num_lookahead_slots: int = 0
    running_queue_size: int = 0


# What the engine gets back for each group.
SequenceGroupOutput = CompletionSequenceGroupOutput | EmbeddingSequenceGroupOutput
StepOutput = SamplerOutput | PoolerOutput
