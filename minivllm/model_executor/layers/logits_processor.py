"""From hidden states to logits (mirrors ``vllm/model_executor/layers/logits_processor.py``).

Computes logits of the rows that are needed, and lets requests change theirs before sampling: by
`logit_bias` (ours; vLLM has it only in its server) and by `logits_processors`.

Left out: padded and distributed vocabularies.
"""

import inspect
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.custom_op import CustomOp
from minivllm.model_executor.layers.matmul import linear
from minivllm.model_executor.layers.sampling.entries import (
    Entries,
    Logits,
    apply_logit_bias,
    get_entries,
    replace_entries,
)
from minivllm.model_executor.sampling_metadata import SamplingMetadata, SequenceGroupToSample
from minivllm.sequence import SequenceData
from minivllm.utils import number


class LogitsProcessor(CustomOp):
    """Computes logits and applies what requests want to do with them.

    Parameters
    ----------
    vocab_size : int
        Number of token ids.
    scale : float
        Factor on all logits.
    """

    def __init__(self, vocab_size: int, scale: float = 1.0) -> None:
        self.vocab_size = vocab_size
        self.scale = scale

    def __call__(self, embedding: NDArray[np.float32], hidden_states: NDArray[np.float32],
                 sampling_metadata: SamplingMetadata,
                 embedding_bias: NDArray[np.float32] | None = None) -> Logits:
        """Return the logits of the chosen rows.

        Parameters
        ----------
        embedding : (vocab_size, hidden_size) float32
            Weights of the output layer.
        hidden_states : (num_tokens, hidden_size) float32
            Of the whole batch.
        sampling_metadata : SamplingMetadata
            Chooses rows.
        embedding_bias : (vocab_size,) float32, optional
            Bias of the output layer.

        Returns
        -------
        (num_rows, vocab_size) float32
        """
        hidden_states = hidden_states[sampling_metadata.selected_token_indices]
        logits = linear(hidden_states, embedding, self.kernels)  # (num_rows, vocab_size)
        if embedding_bias is not None:
            logits += embedding_bias
        if self.scale != 1.0:
            logits *= np.float32(self.scale)
        logits = apply_logit_biases(logits, sampling_metadata)
        return apply_logits_processors(logits, sampling_metadata)


def apply_logit_biases(logits: Logits, sampling_metadata: SamplingMetadata) -> Logits:
    """Add the requests' `logit_bias` to the rows that they sample from."""
    biases = Entries.of(
        (row, token_id, bias)
        for group in sampling_metadata.seq_groups if group.sampling_params.logit_bias
        for row in group.sample_indices
        for token_id, bias in group.sampling_params.logit_bias.items())
    if not len(biases.rows):
        return logits
    biased = apply_logit_bias(get_entries(logits, biases), biases.amounts)
    return replace_entries(logits, biases, biased)


def apply_logits_processors(logits: Logits, sampling_metadata: SamplingMetadata) -> Logits:
    """Let the requests' own functions change the rows that they sample from."""
    groups = [group for group in sampling_metadata.seq_groups
              if group.sampling_params.logits_processors]
    if groups:
        logits = logits.copy()
    for group in groups:
        for row, data in group.sampled:
            logits[row] = _processed(logits[row], group, data)
    return logits


def _processed(row: NDArray[np.float32], group: SequenceGroupToSample,
               data: SequenceData) -> NDArray[np.float32]:
    for processor in group.sampling_params.logits_processors or ():
        if len(inspect.signature(processor).parameters) == 3:
            result = processor(data.prompt_token_ids, data.output_token_ids, row)
        else:
            result = processor(data.output_token_ids, row)
        if np.shape(result) != row.shape:
            raise ValueError(f"a logits processor of request {group.request_id} must return "
                             f"logits of shape {row.shape}, got {np.shape(result)}.")
        row = np.asarray(result, dtype=np.float32)
    return row


def check_logit_bias(logit_bias: Any, vocab_size: int) -> None:
    """Check `logit_bias` before a request is queued.

    Raises
    ------
    ValueError
        If it is not a dict of token ids of the vocabulary to numbers.
    """
    if logit_bias is None:
        return
    if not isinstance(logit_bias, Mapping):
        raise ValueError("logit_bias must be a dict of token id to bias, got "
                         f"{type(logit_bias).__name__}.")
    for token_id, bias in logit_bias.items():
        if not isinstance(token_id, Integral) or isinstance(token_id, bool):
            raise ValueError(f"logit_bias: token ids must be int, got {token_id!r}.")
        if not 0 <= int(token_id) < vocab_size:
            raise ValueError(f"logit_bias: token id {token_id} is outside the vocabulary: ids are "
                             f"0 to {vocab_size - 1}.")
        number(f"logit_bias: the bias of token {token_id}", bias)
