"""What a user gets back (mirrors ``vllm/outputs.py``)."""

from dataclasses import dataclass

from minivllm.sequence import (
    PromptLogprobs,
    RequestMetrics,
    SampleLogprobs,
    Sequence,
    SequenceGroup,
    SequenceStatus,
)


@dataclass
class CompletionOutput:
    """One continuation of a prompt.

    Attributes
    ----------
    index : int
        Its place among the request's sequences.
    text : str
        The text; while unfinished, what a streaming caller may show.
    token_ids : list of int
        The output tokens.
    cumulative_logprob : float
        Sum of their log-probabilities.
    logprobs : list of dict or None
        For each token, the best tokens and itself, if asked for.
    finish_reason : str or None
        ``"stop"``, ``"length"``, ``"abort"``, or None while unfinished.
    stop_reason : int, str or None
        The stop token or string that ended it; None for end-of-sequence and length.
    """

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float
    logprobs: SampleLogprobs | None
    finish_reason: str | None = None
    stop_reason: int | str | None = None

    def finished(self) -> bool:
        """Return True once nothing more comes."""
        return self.finish_reason is not None


@dataclass
class RequestOutput:
    """The state of a generation request after a step.

    Attributes
    ----------
    request_id : str
        The user's name for it.
    prompt : str or None
        The prompt's text, if it came as text.
    prompt_token_ids : list of int
        The prompt's tokens.
    prompt_logprobs : list or None
        One entry for each prompt token, the first None, if asked for.
    outputs : list of CompletionOutput
        The best `n` sequences, best first.
    finished : bool
        Whether the whole request is finished.
    metrics : RequestMetrics or None
        Points in time.
    """

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    prompt_logprobs: PromptLogprobs | None
    outputs: list[CompletionOutput]
    finished: bool
    metrics: RequestMetrics | None = None

    @classmethod
    def from_seq_group(cls, seq_group: SequenceGroup) -> "RequestOutput":
        """Describe `seq_group` as it is now; later steps do not change what is returned."""
        params = seq_group.sampling_params
        if params is None:
            raise ValueError("Sampling parameters are missing for a CompletionRequest.")
        seqs = seq_group.get_seqs()
        outputs = []
        for index, seq in _best_seqs(seq_group, seqs):
            outputs.append(CompletionOutput(
                index=index,
                text=seq.get_output_text_to_return(params.output_text_buffer_length),
                token_ids=seq.get_output_token_ids().copy(),
                cumulative_logprob=seq.get_cumulative_logprob(),
                # A sequence always has those of its own tokens; the user only if asked for.
                logprobs=None if params.logprobs is None else seq.output_logprobs.copy(),
                finish_reason=SequenceStatus.get_finished_reason(seq.status),
                stop_reason=seq.stop_reason))
        return cls(seq_group.request_id, seq_group.prompt, seq_group.prompt_token_ids,
                   seq_group.prompt_logprobs, outputs, seq_group.is_finished(), seq_group.metrics)


def _best_seqs(seq_group: SequenceGroup, seqs: list[Sequence]) -> list[tuple[int, Sequence]]:
    """Return the best `n` of `seqs` with their places, best first."""
    params = seq_group.sampling_params
    indexed = list(enumerate(seqs))
    if len(indexed) == 1 or params is None:
        return indexed
    if params.use_beam_search:
        indexed.sort(key=lambda pair: pair[1].get_beam_search_score(params.length_penalty),
                     reverse=True)
    else:
        indexed.sort(key=lambda pair: pair[1].get_cumulative_logprob(), reverse=True)
    return indexed[:params.n]


@dataclass
class EmbeddingOutput:
    """A vector of `hidden_size` floats."""

    embedding: list[float]

    def __repr__(self) -> str:
        return f"EmbeddingOutput(embedding={len(self.embedding)})"


@dataclass
class EmbeddingRequestOutput:
    """The result of a pooling request."""

    request_id: str
    outputs: EmbeddingOutput
    prompt_token_ids: list[int]
    finished: bool

    @classmethod
    def from_seq_group(cls, seq_group: SequenceGroup) -> "EmbeddingRequestOutput":
        """Describe `seq_group`, whose embeddings have been set."""
        if seq_group.embeddings is None:
            raise ValueError("Embeddings are missing in seq_group for EmbeddingRequest.")
        return cls(seq_group.request_id, EmbeddingOutput(seq_group.embeddings),
                   seq_group.prompt_token_ids, seq_group.is_finished())


class RequestOutputFactory:
    """Chooses the kind of output."""

    @staticmethod
    def create(seq_group: SequenceGroup) -> RequestOutput | EmbeddingRequestOutput:
        """Describe a generation or a pooling request."""
        if seq_group.embeddings is not None:
            return EmbeddingRequestOutput.from_seq_group(seq_group)
        return RequestOutput.from_seq_group(seq_group)
