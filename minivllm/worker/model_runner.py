"""Turns a step's metadata into arrays and runs the model (mirrors ``vllm/worker/model_runner.py``).

All tokens of a step lie in one flat row without padding: the new tokens of each prefill, then
one token for each decoding sequence.  Left out: CUDA graphs, LoRA, multi-modal inputs.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionBackend, AttentionMetadata
from minivllm.config import CacheConfig, ModelConfig
from minivllm.model_executor.custom_op import use_kernels
from minivllm.model_executor.model_loader import get_model
from minivllm.model_executor.sampling_metadata import SamplingMetadata
from minivllm.sequence import SequenceData, SequenceGroupMetadata, SequenceGroupOutput
from minivllm.threads import get_pool, limit_blas_threads
from minivllm.utils import InternalError, cdiv, keep_freed_memory


@dataclass(slots=True)
class SeqInput:
    """The new tokens of one sequence in this step.

    Attributes
    ----------
    token_ids : list of int
        Tokens ``context_len`` up to ``context_len + len(token_ids)`` of the sequence.
    context_len : int
        Tokens before them, whose keys and values attention reads from the cache.
    num_stored : int
        Leading tokens of the sequence whose keys and values need not be stored: a cached prefix,
        of which tokens may be computed again for their log-probabilities.
    block_table : list of int
        GPU block numbers.
    """

    token_ids: list[int]
    context_len: int
    num_stored: int
    block_table: list[int]


@dataclass
class ModelInput:
    """A step as the model sees it; `query_lens` counts the new tokens of each sequence by group."""

    input_ids: NDArray[np.int64]  # (num_tokens,)
    positions: NDArray[np.int64]  # (num_tokens,)
    attn_metadata: AttentionMetadata
    query_lens: list[int]


def compute_slot_mapping(block_table: list[int], positions: NDArray[np.int64],
                         block_size: int) -> NDArray[np.int64]:
    """Return the slot of each position: ``block_table[p // block_size] * block_size`` + offset.

    >>> compute_slot_mapping([7, 2], np.arange(3, 6), block_size=4)
    array([31,  8,  9])
    """
    blocks = np.asarray(block_table, dtype=np.int64)[positions // block_size]  # (num_tokens,)
    return blocks * block_size + positions % block_size


def prefill_input(data: SequenceData, block_table: list[int], chunk_size: int, num_cached: int,
                  every_position: bool) -> SeqInput:
    """Choose which tokens of a prompt this step computes.

    Parameters
    ----------
    data : SequenceData
        The sequence, of which `get_num_computed_tokens` tokens went before.
    block_table : list of int
        GPU block numbers.
    chunk_size : int
        Tokens that the scheduler gave this step.
    num_cached : int
        Leading tokens whose keys and values a prefix-cache hit has brought.
    every_position : bool
        Compute cached tokens as well: prompt log-probabilities need their logits.
    """
    start = data.get_num_computed_tokens()
    end = start + chunk_size
    # A chunk that lies wholly in the cached prefix computes its last token again: no step is empty.
    context_len = start if every_position else min(max(start, num_cached), end - 1)
    return SeqInput(data.get_token_ids()[context_len:end], context_len, num_cached, block_table)


def decode_input(data: SequenceData, block_table: list[int]) -> SeqInput:
    """Return the newest token, the one that is not in the cache yet."""
    return SeqInput([data.get_last_token_id()], data.get_len() - 1, 0, block_table)


class ModelRunner:
    """Builds the arrays, runs model and sampler.

    Attributes
    ----------
    model
        A class of `minivllm.model_executor.models`, with its weights.
    """

    def __init__(self, model_config: ModelConfig, cache_config: CacheConfig,
                 attn_backend: type[AttentionBackend]) -> None:
        self.model_config = model_config
        self.block_size = cache_config.block_size
        self.attn_backend = attn_backend
        self.model: Any = None

    def load_model(self, model: Any = None) -> None:
        """Read the weights, or share those of a `model` that is loaded already."""
        limit_blas_threads()
        keep_freed_memory()
        get_pool()  # says now if there is a bad number of threads
        self.model = get_model(self.model_config) if model is None else model
        use_kernels(self.model, self.attn_backend.get_layer_kernels())

    def execute_model(self, seq_group_metadata_list: list[SequenceGroupMetadata],
                      kv_caches: list[NDArray[np.float32]]) -> list[SequenceGroupOutput]:
        """Run one step and return one output for each group, in batch order."""
        model_input = self.prepare_input(seq_group_metadata_list)
        hidden_states = self.model(model_input.input_ids, model_input.positions, kv_caches,
                                   model_input.attn_metadata)  # (num_tokens, hidden_size)
        sampling_metadata = SamplingMetadata.prepare(seq_group_metadata_list,
                                                     model_input.query_lens)
        logits = self.model.compute_logits(hidden_states, sampling_metadata)
        outputs: list[SequenceGroupOutput] = self.model.sample(logits, sampling_metadata).outputs
        return outputs

    def prepare_input(self, seq_group_metadata_list: list[SequenceGroupMetadata]) -> ModelInput:
        """Lay the tokens of all groups in a row."""
        prefills: list[SeqInput] = []
        decodes: list[SeqInput] = []
        query_lens = []
        for metadata in seq_group_metadata_list:
            seqs = [self._seq_input(metadata, seq_id) for seq_id in metadata.seq_data]
            query_lens.append(len(seqs[0].token_ids))
            if not metadata.is_prompt:
                decodes += seqs
            elif decodes:
                raise InternalError(f"prefill {metadata.request_id} stands behind decodes.")
            else:
                prefills += seqs
        return self._pack(prefills, decodes, query_lens)

    def _seq_input(self, metadata: SequenceGroupMetadata, seq_id: int) -> SeqInput:
        data, block_table = metadata.seq_data[seq_id], metadata.block_tables[seq_id]
        if not metadata.is_prompt:
            return decode_input(data, block_table)
        params = metadata.sampling_params
        every_position = (params is not None and params.prompt_logprobs is not None
                          and data.get_output_len() == 0)
        num_cached = len(metadata.computed_block_nums) * self.block_size
        return prefill_input(data, block_table, metadata.token_chunk_size, num_cached,
                             every_position)

    def _pack(self, prefills: list[SeqInput], decodes: list[SeqInput],
              query_lens: list[int]) -> ModelInput:
        seqs = prefills + decodes
        lengths = np.array([len(seq.token_ids) for seq in seqs], dtype=np.int32)  # (num_seqs,)
        context_lens = np.array([seq.context_len for seq in seqs], dtype=np.int32)
        seq_lens = context_lens + lengths
        block_tables = np.zeros((len(seqs), max(map(self._num_blocks, seq_lens), default=0)),
                                dtype=np.int32)  # (num_seqs, max_blocks)
        positions, slots = [], []
        for i, seq in enumerate(seqs):
            num_blocks = self._num_blocks(seq_lens[i])
            block_tables[i, :num_blocks] = seq.block_table[:num_blocks]
            position = np.arange(seq.context_len, seq_lens[i], dtype=np.int64)
            slot = compute_slot_mapping(seq.block_table, position, self.block_size)
            slot[position < seq.num_stored] = -1
            positions.append(position)
            slots.append(slot)
        starts = np.concatenate([[0], np.cumsum(lengths[:len(prefills)])]).astype(np.int32)
        attn_metadata = AttentionMetadata(
            backend=self.attn_backend,
            num_prefills=len(prefills),
            num_prefill_tokens=int(starts[-1]),
            num_decode_tokens=len(decodes),
            slot_mapping=np.concatenate(slots) if slots else np.zeros(0, np.int64),
            seq_lens=seq_lens,
            context_lens=context_lens,
            query_start_loc=starts,
            block_tables=block_tables)
        token_ids = [token_id for seq in seqs for token_id in seq.token_ids]
        return ModelInput(np.array(token_ids, dtype=np.int64),
                          np.concatenate(positions) if positions else np.zeros(0, np.int64),
                          attn_metadata, query_lens)

    def _num_blocks(self, num_tokens: int) -> int:
        return cdiv(int(num_tokens), self.block_size)
