"""Drives a model without an engine: sequences, their blocks, and steps are made by hand."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from minivllm.attention.backends.abstract import AttentionMetadata
from minivllm.model_executor.model_loader.weight_utils import list_tensors
from minivllm.model_executor.models.registry import get_model_class
from minivllm.model_executor.sampling_metadata import SamplingMetadata
from minivllm.transformers_utils.config import get_config

# Tiny random checkpoints: one of each family with its tokenizer, and more variants without.
TINY = Path(__file__).parent.parent / "golden" / "tiny"
FAMILIES = Path(__file__).parent.parent / "golden" / "families"
CHECKPOINTS = {path.parent.name: path.parent
               for folder in (TINY, FAMILIES) for path in sorted(folder.glob("*/golden.json"))}


def golden(name, file="golden.json"):
    return json.loads((CHECKPOINTS[name] / file).read_text(encoding="utf-8"))


def tensors_of(directory):
    return {tensor.name: tensor.read() for tensor in list_tensors(Path(directory))}


def load_tiny(name, tensors=None):
    """Return a golden model; `tensors` replaces those of its files."""
    config = get_config(CHECKPOINTS[name])
    model = get_model_class(config)(config)
    model.load_weights((tensors or tensors_of(CHECKPOINTS[name])).items())
    return model


def logits_of(model, hidden_states):
    """Return the logits of every row, as the model's own head computes them."""
    return model.compute_logits(hidden_states,
                                SamplingMetadata([], np.arange(len(hidden_states))))


@dataclass
class Seq:
    """One sequence: what is in the cache, and where."""

    block_table: list
    num_cached: int = 0
    hidden: list = field(default_factory=list)  # rows of all computed tokens

    def logits(self, model):
        """Return the logits of every computed position, (num_cached, vocab_size)."""
        return logits_of(model, np.concatenate(self.hidden))

    def last_logits(self, model):
        """Return the logits after the newest token, (vocab_size,)."""
        return logits_of(model, self.hidden[-1][-1:])[0]


class Driver:
    """A KV cache in which every sequence gets blocks at random, as after many evictions."""

    def __init__(self, model, backend, block_size=16, num_blocks=64, seed=0):
        self.model, self.backend, self.block_size = model, backend, block_size
        config = model.config
        shape = backend.get_kv_cache_shape(num_blocks, block_size, config.num_key_value_heads,
                                           config.head_dim)
        # What is never written must never be read: NaN would show.
        self.kv_caches = [np.full(shape, np.nan, np.float32)
                          for _ in range(config.num_hidden_layers)]
        self.free = list(np.random.default_rng(seed).permutation(num_blocks))

    def add(self, max_len):
        num_blocks = -(-max_len // self.block_size)
        return Seq([self.free.pop() for _ in range(num_blocks)])

    def step(self, batch):
        """Compute new tokens: `batch` holds (sequence, token ids) pairs.

        A single token after others is a decode; the decodes stand behind the prefills.
        """
        batch = sorted(batch, key=lambda item: self._is_decode(*item))
        lens = np.array([len(tokens) for _, tokens in batch], np.int32)
        context_lens = np.array([seq.num_cached for seq, _ in batch], np.int32)
        num_decodes = sum(self._is_decode(*item) for item in batch)
        num_prefills = len(batch) - num_decodes
        tables = np.zeros((len(batch), max(len(seq.block_table) for seq, _ in batch)), np.int32)
        positions, slots = [], []
        for i, (seq, tokens) in enumerate(batch):
            tables[i, :len(seq.block_table)] = seq.block_table
            position = np.arange(seq.num_cached, seq.num_cached + len(tokens))
            blocks = np.array(seq.block_table)[position // self.block_size]
            positions.append(position)
            slots.append(blocks * self.block_size + position % self.block_size)
        starts = np.concatenate([[0], np.cumsum(lens[:num_prefills])]).astype(np.int32)
        metadata = AttentionMetadata(
            backend=self.backend, num_prefills=num_prefills, num_prefill_tokens=int(starts[-1]),
            num_decode_tokens=num_decodes, slot_mapping=np.concatenate(slots).astype(np.int64),
            seq_lens=context_lens + lens, context_lens=context_lens, query_start_loc=starts,
            block_tables=tables)
        ids = np.concatenate([tokens for _, tokens in batch]).astype(np.int64)
        hidden = self.model(ids, np.concatenate(positions).astype(np.int64), self.kv_caches,
                            metadata)
        for (seq, tokens), rows in zip(batch, np.split(hidden, np.cumsum(lens)[:-1]), strict=True):
            seq.hidden.append(rows)
            seq.num_cached += len(tokens)

    def _is_decode(self, seq, tokens):
        return len(tokens) == 1 and seq.num_cached > 0
