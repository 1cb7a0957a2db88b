"""Chooses the next tokens (mirrors ``vllm/model_executor/layers/sampler.py``).

The order of the stages is vLLM's: min_tokens, repetition, frequency and presence penalty,
temperature, top-k, top-p, min-p, softmax, choice.  (Logit bias and the user's own functions come
before, in `LogitsProcessor`.)  Log-probabilities are those of the final distribution: what is cut
off has minus infinity.  Each stage is a pure function over exactly the rows that need it; see
`minivllm.model_executor.layers.sampling`.

Left out: probabilities kept for speculative decoding, the GPU kernel.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.layers.sampling.draws import (
    Logprobs,
    Probs,
    beam_candidates,
    describe_token,
    draw,
    greedy,
    softmax,
)
from minivllm.model_executor.layers.sampling.entries import (
    Entries,
    Logits,
    apply_frequency_penalty,
    apply_presence_penalty,
    apply_repetition_penalty,
    ban_tokens,
    count_tokens,
    get_entries,
    replace_entries,
)
from minivllm.model_executor.layers.sampling.filters import (
    apply_min_p,
    apply_temperature,
    apply_top_k,
    apply_top_p,
)
from minivllm.model_executor.sampling_metadata import (
    SamplingMetadata,
    SamplingTensors,
    SequenceGroupToSample,
)
from minivllm.sampling_params import SamplingParams, SamplingType
from minivllm.sequence import CompletionSequenceGroupOutput, SamplerOutput, SequenceOutput
from minivllm.threads import get_pool
from minivllm.utils import InternalError

# Logits in a part of the batch: eight sequences' of a vocabulary of 50,000.
_SLAB_SIZE = 400_000

# (index of the parent among the group's sequences, token id) of each sample.
Samples = list[tuple[int, int]]


class UnusableLogitsError(ValueError):
    """Some requests' logits allow no choice; nothing has been drawn for any request.

    Attributes
    ----------
    request_ids : list of str
        Whose logits they are.  The other requests of the batch can go on without these.
    """

    def __init__(self, request_ids: list[str], problem: str) -> None:
        self.request_ids = request_ids
        super().__init__(f"cannot choose a token for {', '.join(request_ids)}: {problem}")


class Sampler:
    """Turns logits into tokens and their log-probabilities."""

    def __call__(self, logits: Logits, sampling_metadata: SamplingMetadata) -> SamplerOutput:
        """Choose the next tokens of a batch.

        Parameters
        ----------
        logits : (num_rows, vocab_size) float32
            Of the rows that `sampling_metadata` chose.
        sampling_metadata : SamplingMetadata
            Whose rows they are.

        Returns
        -------
        SamplerOutput
            One output for each group, in batch order.

        Raises
        ------
        UnusableLogitsError
            If a row has NaN or infinity in it, or no token left.
        """
        logits = apply_min_tokens(logits, sampling_metadata)
        logits = apply_penalties(logits, sampling_metadata)
        check_logits(logits, sampling_metadata)
        slabs = sampling_metadata.slabs(slab_rows(logits.shape[1]))
        outputs: list[list[CompletionSequenceGroupOutput]] = [[] for _ in slabs]
        remaining = enumerate(slabs)
        if len(slabs) > 1:
            get_pool().run(_sample_slabs, logits, remaining, outputs)
        else:
            _sample_slabs(0, 1, logits, remaining, outputs)
        return SamplerOutput([output for slab in outputs for output in slab])


def slab_rows(vocab_size: int) -> int:
    """Return how many rows a part of the batch has that one thread samples at a time."""
    return max(_SLAB_SIZE // vocab_size, 1)


def _sample_slabs(thread: int, num_threads: int, logits: Logits,
                  remaining: Iterator[tuple[int, tuple[slice, SamplingMetadata]]],
                  outputs: list[list[CompletionSequenceGroupOutput]]) -> None:
    """Take slabs from `remaining`, which all threads share, until none is left."""
    for i, (rows, sampling_metadata) in remaining:
        outputs[i] = sample_slab(logits[rows], sampling_metadata)


def sample_slab(logits: Logits,
                sampling_metadata: SamplingMetadata) -> list[CompletionSequenceGroupOutput]:
    """Choose the next tokens of a part of the batch.

    The parts are independent of each other, so threads share them; and small, so that the arrays
    of one stage are still in the processor's cache in the next.

    Parameters
    ----------
    logits : (num_rows, vocab_size) float32
        With penalties applied.
    sampling_metadata : SamplingMetadata
        Of these rows.
    """
    tensors = SamplingTensors.from_sampling_metadata(sampling_metadata, logits.shape[1])
    probs, logprobs = softmax(apply_filters(logits, tensors))
    return [group_output(logprobs, group, sample(probs, logprobs, group))
            for group in sampling_metadata.seq_groups]


def apply_min_tokens(logits: Logits, sampling_metadata: SamplingMetadata) -> Logits:
    """Ban end-of-sequence and stop tokens where the output is shorter than `min_tokens`."""
    vocab_size = logits.shape[1]
    banned = Entries.of(
        (row, token_id, 0)
        for group in sampling_metadata.seq_groups
        for row, data in group.sampled
        if data.get_output_len() < group.sampling_params.min_tokens
        for token_id in group.sampling_params.all_stop_token_ids
        # A stop token that does not exist needs no ban.
        if 0 <= token_id < vocab_size)
    if not len(banned.rows):
        return logits
    return replace_entries(logits, banned, ban_tokens(get_entries(logits, banned)))


def apply_penalties(logits: Logits, sampling_metadata: SamplingMetadata) -> Logits:
    """Apply repetition, frequency and presence penalty to the rows that ask for one of them.

    Rows for prompt log-probabilities are left as they are.
    """
    asking = [(row, group.sampling_params, data)
              for group in sampling_metadata.seq_groups
              for row, data in group.sampled if _has_penalties(group.sampling_params)]
    if not asking:
        return logits
    rows = [row for row, _, _ in asking]
    seen = count_tokens(rows, [data.prompt_token_ids for _, _, data in asking],
                        [data.output_token_ids for _, _, data in asking], logits.shape[1])
    params = [params for _, params, _ in asking]
    whose = np.searchsorted(rows, seen.rows)  # (num_entries,)
    values = apply_repetition_penalty(
        get_entries(logits, seen), np.array([p.repetition_penalty for p in params])[whose])
    values = apply_frequency_penalty(
        values, seen.amounts, np.array([p.frequency_penalty for p in params])[whose])
    values = apply_presence_penalty(
        values, seen.amounts, np.array([p.presence_penalty for p in params])[whose])
    return replace_entries(logits, seen, values)


def _has_penalties(params: SamplingParams) -> bool:
    return (params.repetition_penalty, params.frequency_penalty,
            params.presence_penalty) != (1.0, 0.0, 0.0)


def check_logits(logits: Logits, sampling_metadata: SamplingMetadata) -> None:
    """Raise UnusableLogitsError unless every row has a largest logit, a finite one."""
    largest = logits.max(axis=1)  # (num_rows,); NaN if any entry is
    for bad, problem in (
        (np.isnan(largest) | np.isposinf(largest),
         "there is NaN or infinity in its logits; look for it in the model's weights, or in the "
         "request's logits_processors."),
        (np.isneginf(largest), "every token of the vocabulary is forbidden; look at the request's "
                               "logits_processors and, if min_tokens is set, stop_token_ids."),
    ):
        if bad.any():
            request_ids = sampling_metadata.request_ids
            raise UnusableLogitsError(
                list(dict.fromkeys(request_ids[row] for row in np.flatnonzero(bad))), problem)


def apply_filters(logits: Logits, tensors: SamplingTensors) -> Logits:
    """Apply temperature, top-k, top-p and min-p, each to the rows that ask for it."""
    vocab_size = logits.shape[1]
    logits = _on_rows(apply_temperature, logits, tensors.temperatures, tensors.temperatures != 1)
    logits = _on_rows(apply_top_k, logits, tensors.top_ks, tensors.top_ks < vocab_size)
    logits = _on_rows(apply_top_p, logits, tensors.top_ps, tensors.top_ps < 1)
    return _on_rows(apply_min_p, logits, tensors.min_ps, tensors.min_ps > 0)


def _on_rows(stage: Callable[..., Logits], logits: Logits, values: NDArray[np.generic],
             asking: NDArray[np.bool_]) -> Logits:
    """Return `logits` with the rows that are `asking` for it gone through `stage`."""
    if asking.all():
        return stage(logits, values)
    rows = np.flatnonzero(asking)
    if len(rows):
        logits = logits.copy()
        logits[rows] = stage(logits[rows], values[rows])
    return logits


def sample(probs: Probs, logprobs: Logprobs, group: SequenceGroupToSample) -> Samples:
    """Choose the next tokens of one group.

    In its first sampling a group with `best_of` > 1 gets so many samples of its prompt; later each
    of its sequences gets one.  A beam search gets 2 * `best_of` candidates over all sequences.

    Parameters
    ----------
    probs, logprobs : (num_rows, vocab_size) float32
        Of the whole batch.
    group : SequenceGroupToSample
        Nothing is drawn from its generator if it is not to be sampled from.
    """
    if not group.do_sample:
        return []
    rows = slice(group.sample_indices.start, group.sample_indices.stop)
    sampling_type = group.sampling_params.sampling_type
    if sampling_type is SamplingType.GREEDY:
        return list(enumerate(greedy(logprobs[rows])))
    if sampling_type is SamplingType.BEAM:
        cumulative = np.array([group.seq_data[seq_id].cumulative_logprob
                               for seq_id in group.seq_ids])
        return beam_candidates(logprobs[rows], cumulative, 2 * group.sampling_params.best_of)
    return _sample_randomly(probs[rows], group)


def _sample_randomly(probs: Probs, group: SequenceGroupToSample) -> Samples:
    if group.generator is None:
        raise InternalError(f"request {group.request_id} has no generator to draw from.")
    num_samples = group.sampling_params.best_of if group.before_first_token else 1
    return [(parent, token_id) for parent, row in enumerate(probs)
            for token_id in draw(row, group.generator.integers(1 << 64, size=num_samples,
                                                               dtype=np.uint64))]


def group_output(logprobs: Logprobs, group: SequenceGroupToSample,
                 samples: Samples) -> CompletionSequenceGroupOutput:
    """Say of each sample, and of the prompt if asked, how probable it was."""
    params = group.sampling_params
    first_row = group.sample_indices.start
    outputs = [SequenceOutput(group.seq_ids[parent], token_id,
                              describe_token(logprobs[first_row + parent], token_id,
                                             params.logprobs or 0))
               for parent, token_id in samples]
    if params.prompt_logprobs is None or not group.before_first_token:
        return CompletionSequenceGroupOutput(outputs)
    prompt_logprobs = [
        describe_token(logprobs[row], token_id, params.prompt_logprobs)
        for row, token_id in zip(group.prompt_logprob_indices, group.next_prompt_tokens,
                                 strict=True)]
    return CompletionSequenceGroupOutput(outputs, list(prompt_logprobs))
