"""One request: the group of sequences that continue the same prompt."""

from dataclasses import dataclass

import numpy as np

from minivllm.pooling_params import PoolingParams
from minivllm.sampling_params import SamplingParams
from minivllm.sequence.data import PromptLogprobs
from minivllm.sequence.sequence import UNFINISHED, Sequence, SequenceStatus


@dataclass
class RequestMetrics:
    """Points in time of a request, in seconds of the engine's clock.

    Attributes
    ----------
    arrival_time : float
        When it was added.
    last_token_time : float
        When its newest token came.
    first_scheduled_time : float or None
        When it was first part of a batch.
    first_token_time : float or None
        When its first token came.
    time_in_queue : float or None
        From arrival to first scheduled.
    finished_time : float or None
        When its last sequence ended.
    """

    arrival_time: float
    last_token_time: float
    first_scheduled_time: float | None = None
    first_token_time: float | None = None
    time_in_queue: float | None = None
    finished_time: float | None = None


@dataclass
class SequenceGroupState:
    """What a group keeps between steps for the sampler.

    Attributes
    ----------
    generator : numpy.random.Generator or None
        The request's own source of random numbers, so that its draws do not depend on others.
    """

    generator: np.random.Generator | None = None


class SequenceGroup:
    """One request: the sequences that continue the same prompt.

    Parameters
    ----------
    request_id : str
        The user's name for it.
    seqs : list of Sequence
        At first one.
    arrival_time : float
        For first-come-first-served.
    sampling_params : SamplingParams, optional
        None for a pooling request.
    embeddings : list of float, optional
        The result of a pooling request.
    pooling_params : PoolingParams, optional
        None for a generation request.
    """

    def __init__(self, request_id: str, seqs: list[Sequence], arrival_time: float,
                 sampling_params: SamplingParams | None = None,
                 embeddings: list[float] | None = None,
                 pooling_params: PoolingParams | None = None) -> None:
        self.request_id = request_id
        self.seqs_dict = {seq.seq_id: seq for seq in seqs}
        self.sampling_params = sampling_params
        self.metrics = RequestMetrics(arrival_time=arrival_time, last_token_time=arrival_time)
        self.prompt_logprobs: PromptLogprobs | None = None
        self.state = SequenceGroupState()
        self.embeddings = embeddings
        self.pooling_params = pooling_params

    @property
    def prompt(self) -> str | None:
        """The prompt's text; all sequences have the same."""
        return next(iter(self.seqs_dict.values())).prompt

    @property
    def prompt_token_ids(self) -> list[int]:
        """The prompt's tokens; all sequences have the same."""
        return next(iter(self.seqs_dict.values())).prompt_token_ids

    def maybe_set_first_token_time(self, time: float) -> None:
        """Note when the first token came."""
        if self.metrics.first_token_time is None and self.get_seqs()[0].get_output_len() >= 1:
            self.metrics.first_token_time = time

    def maybe_set_first_scheduled_time(self, time: float) -> None:
        """Note when the request was first part of a batch."""
        if self.metrics.first_scheduled_time is None:
            self.metrics.first_scheduled_time = time
            self.metrics.time_in_queue = time - self.metrics.arrival_time

    def set_finished_time(self, time: float | None) -> None:
        """Note when the request ended."""
        self.metrics.finished_time = time

    def get_max_num_running_seqs(self) -> int:
        """Return how many sequences may run in the rest of the request's life: its seats."""
        params = self.sampling_params
        if params and (params.use_beam_search or params.best_of > len(self.seqs_dict)):
            # A beam search keeps `best_of` beams; a prompt will become `best_of` sequences.
            return params.best_of
        return self.num_unfinished_seqs()

    def get_seqs(self, status: SequenceStatus | None = None) -> list[Sequence]:
        """Return the sequences (with this status), in the order in which they joined."""
        seqs = list(self.seqs_dict.values())
        if status is None or len(seqs) == 1 and seqs[0].status is status:
            return seqs
        return [seq for seq in seqs if seq.status is status]

    def get_unfinished_seqs(self) -> list[Sequence]:
        """Return the sequences that go on."""
        return [seq for seq in self.seqs_dict.values() if seq.status in UNFINISHED]

    def get_finished_seqs(self) -> list[Sequence]:
        """Return the sequences that have ended."""
        return [seq for seq in self.seqs_dict.values() if seq.is_finished()]

    def update_num_computed_tokens(self, num_new_computed_tokens: int) -> None:
        """Note that a step has computed so many more tokens of each unfinished sequence."""
        for seq in self.seqs_dict.values():
            if not seq.is_finished():
                seq.data.update_num_computed_tokens(num_new_computed_tokens)

    def get_num_uncomputed_tokens(self) -> int:
        """Return how many tokens of unfinished sequences are still to be computed."""
        return sum(seq.data.get_num_uncomputed_tokens() for seq in self.get_unfinished_seqs())

    def num_seqs(self, status: SequenceStatus | None = None) -> int:
        """Return how many sequences (with this status) there are."""
        if status is None:
            return len(self.seqs_dict)
        return sum(seq.status is status for seq in self.seqs_dict.values())

    def num_unfinished_seqs(self) -> int:
        """Return how many sequences go on."""
        return len([seq for seq in self.seqs_dict.values() if seq.status in UNFINISHED])

    def num_finished_seqs(self) -> int:
        """Return how many sequences have ended."""
        return len(self.get_finished_seqs())

    def find(self, seq_id: int) -> Sequence:
        """Return the sequence with this id."""
        if seq_id not in self.seqs_dict:
            raise ValueError(f"Sequence {seq_id} not found.")
        return self.seqs_dict[seq_id]

    def add(self, seq: Sequence) -> None:
        """Let a forked sequence join."""
        if seq.seq_id in self.seqs_dict:
            raise ValueError(f"Sequence {seq.seq_id} already exists.")
        self.seqs_dict[seq.seq_id] = seq

    def remove(self, seq_id: int) -> None:
        """Let a sequence go that is no candidate any more."""
        if seq_id not in self.seqs_dict:
            raise ValueError(f"Sequence {seq_id} not found.")
        del self.seqs_dict[seq_id]

    def is_finished(self) -> bool:
        """Return True once every sequence has ended."""
        for seq in self.seqs_dict.values():
            if not seq.is_finished():
                return False
        return True

    def is_prefill(self) -> bool:
        """Return True if the unfinished sequences (all in the same stage) are in prefill."""
        for seq in self.seqs_dict.values():
            if not seq.is_finished():
                return seq.is_prefill()
        return False

    def __repr__(self) -> str:
        return (f"SequenceGroup(request_id={self.request_id}, "
                f"sampling_params={self.sampling_params}, num_seqs={len(self.seqs_dict)})")
