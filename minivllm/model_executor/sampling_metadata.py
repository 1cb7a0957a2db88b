"""What the sampler has to know of a batch (mirrors ``vllm/model_executor/sampling_metadata.py``).

Of a step's hidden states only some become logits: a row for each prompt position whose
log-probabilities are asked for, and a row for each sequence to sample from.  `SamplingMetadata`
says which rows these are and whose; `SamplingTensors` holds a parameter for each row.

Left out: the extra random seeds of vLLM's GPU kernel, and its lists of rows by sampling type.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from minivllm.sampling_params import SamplingParams
from minivllm.sequence import SequenceData, SequenceGroupMetadata
from minivllm.utils import InternalError

_SAMPLING_EPS = 1e-5


@dataclass
class SequenceGroupToSample:
    """The rows of one request.

    Attributes
    ----------
    request_id : str
        Whose rows.
    seq_ids : list of int
        Its running sequences.
    seq_data : dict of int to SequenceData
        Their tokens.
    sampling_params : SamplingParams
        What is asked for.
    is_prompt : bool
        In prefill.
    generator : numpy.random.Generator or None
        Its source of random numbers.
    next_prompt_tokens : list of int
        The prompt tokens that the rows of `prompt_logprob_indices` predict.
    prompt_logprob_indices : range
        Rows of the logits that are for prompt log-probabilities.
    sample_indices : range
        Rows of the logits to sample from, one for each sequence; empty before the last chunk.
    """

    request_id: str
    seq_ids: list[int]
    seq_data: dict[int, SequenceData]
    sampling_params: SamplingParams
    is_prompt: bool
    generator: np.random.Generator | None
    next_prompt_tokens: list[int]
    prompt_logprob_indices: range
    sample_indices: range

    @property
    def do_sample(self) -> bool:
        """Whether this step brings the group new tokens."""
        return len(self.sample_indices) > 0

    @property
    def before_first_token(self) -> bool:
        """Whether there is a prompt only: `best_of` sequences are still to grow out of it.

        Not so when a request is recomputed after a preemption that came later.
        """
        return self.is_prompt and all(data.get_output_len() == 0
                                      for data in self.seq_data.values())

    @property
    def sampled(self) -> list[tuple[int, SequenceData]]:
        """The sequences to sample from, each with its row of the logits."""
        return list(zip(self.sample_indices, self.seq_data.values(), strict=False))

    def moved_up(self, num_rows: int) -> "SequenceGroupToSample":
        """Return the same group with its rows so many rows further up."""
        prompt, sample = self.prompt_logprob_indices, self.sample_indices
        return replace(
            self,
            prompt_logprob_indices=range(prompt.start - num_rows, prompt.stop - num_rows),
            sample_indices=range(sample.start - num_rows, sample.stop - num_rows))

    @property
    def num_rows(self) -> int:
        """How many rows of the logits are this group's."""
        return len(self.prompt_logprob_indices) + len(self.sample_indices)


@dataclass
class SamplingMetadata:
    """Which hidden states become logits, and what is done with them.

    Attributes
    ----------
    seq_groups : list of SequenceGroupToSample
        All groups of the batch, in batch order.
    selected_token_indices : (num_rows,) int64
        For each row of the logits the token of the batch that it comes from.
    """

    seq_groups: list[SequenceGroupToSample]
    selected_token_indices: NDArray[np.int64]

    @property
    def request_ids(self) -> list[str]:
        """For each row of the logits, whose it is."""
        return [group.request_id for group in self.seq_groups for _ in range(group.num_rows)]

    def slabs(self, num_rows: int) -> list[tuple[slice, "SamplingMetadata"]]:
        """Split the batch into parts of about `num_rows` rows; a group stays in one.

        Returns
        -------
        list of (slice, SamplingMetadata)
            Rows of the logits, and whose they are, counted from the first of them.
        """
        slabs = []
        start = end = 0
        groups: list[SequenceGroupToSample] = []
        for group in self.seq_groups:
            groups.append(group.moved_up(start))
            end += group.num_rows
            if end - start >= num_rows or group is self.seq_groups[-1]:
                part = SamplingMetadata(groups, self.selected_token_indices[start:end])
                slabs.append((slice(start, end), part))
                start, groups = end, []
        return slabs

    @staticmethod
    def prepare(seq_group_metadata_list: list[SequenceGroupMetadata],
                query_lens: list[int]) -> "SamplingMetadata":
        """Choose the rows of a batch.

        Parameters
        ----------
        seq_group_metadata_list : list of SequenceGroupMetadata
            The batch.
        query_lens : list of int
            For each group, how many tokens of each of its sequences the batch computes.
        """
        seq_groups = []
        selected: list[int] = []
        first_token = 0
        for metadata, query_len in zip(seq_group_metadata_list, query_lens, strict=True):
            if metadata.do_sample and query_len == 0:
                raise InternalError(f"request {metadata.request_id} is to be sampled from, but "
                                    "none of its tokens is computed.")
            end_token = first_token + query_len * len(metadata.seq_data)
            prompt_tokens = _next_prompt_tokens(metadata, query_len)
            prompt_rows = range(len(selected), len(selected) + len(prompt_tokens))
            selected += range(first_token, first_token + len(prompt_tokens))
            num_samples = len(metadata.seq_data) if metadata.do_sample else 0
            sample_rows = range(len(selected), len(selected) + num_samples)
            if num_samples:  # the last token of each sequence
                selected += range(first_token + query_len - 1, end_token, query_len)
            seq_groups.append(_group_to_sample(metadata, prompt_tokens, prompt_rows, sample_rows))
            first_token = end_token
        return SamplingMetadata(seq_groups, np.array(selected, dtype=np.int64))


def _next_prompt_tokens(metadata: SequenceGroupMetadata, query_len: int) -> list[int]:
    """Return the prompt tokens that follow the computed ones, if their log-probabilities are due.

    They are not when a request with output tokens is recomputed: the user has them already.
    """
    params = metadata.sampling_params
    data = next(iter(metadata.seq_data.values()))
    if (not metadata.is_prompt or params is None or params.prompt_logprobs is None
            or data.get_output_len() > 0):
        return []
    end = data.get_num_computed_tokens() + metadata.token_chunk_size
    return data.prompt_token_ids[end - query_len + 1:end + 1]


def _group_to_sample(metadata: SequenceGroupMetadata, next_prompt_tokens: list[int],
                     prompt_rows: range, sample_rows: range) -> SequenceGroupToSample:
    if metadata.sampling_params is None:
        raise InternalError(f"request {metadata.request_id} has no sampling parameters.")
    return SequenceGroupToSample(
        request_id=metadata.request_id, seq_ids=list(metadata.seq_data),
        seq_data=metadata.seq_data, sampling_params=metadata.sampling_params,
        is_prompt=metadata.is_prompt, generator=metadata.state.generator,
        next_prompt_tokens=next_prompt_tokens, prompt_logprob_indices=prompt_rows,
        sample_indices=sample_rows)


@dataclass
class SamplingTensors:
    """One value for each row of the logits; what changes nothing is 1, the vocabulary size, 1, 0.

    Attributes
    ----------
    temperatures : (num_rows,) float32
    top_ks : (num_rows,) int64
    top_ps, min_ps : (num_rows,) float64
    """

    temperatures: NDArray[np.float32]
    top_ks: NDArray[np.int64]
    top_ps: NDArray[np.float64]
    min_ps: NDArray[np.float64]

    @classmethod
    def from_sampling_metadata(cls, sampling_metadata: SamplingMetadata,
                               vocab_size: int) -> "SamplingTensors":
        """Read the parameters of each group, and say in one way what changes nothing."""
        groups = sampling_metadata.seq_groups
        params = [group.sampling_params for group in groups]
        group_of_row = np.repeat(np.arange(len(groups)), [group.num_rows for group in groups])
        largest = float(np.finfo(np.float32).max)
        # Greedy and beam search have the plain distribution.
        temperatures = [min(p.temperature, largest) if p.temperature >= _SAMPLING_EPS else 1.0
                        for p in params]
        top_ks = [vocab_size if p.top_k == -1 else min(p.top_k, vocab_size) for p in params]
        top_ps = [p.top_p if p.top_p < 1.0 - _SAMPLING_EPS else 1.0 for p in params]
        min_ps = [p.min_p if p.min_p > _SAMPLING_EPS else 0.0 for p in params]
        return cls(np.array(temperatures, np.float32)[group_of_row],
                   np.array(top_ks, np.int64)[group_of_row],
                   np.array(top_ps, np.float64)[group_of_row],
                   np.array(min_ps, np.float64)[group_of_row])
