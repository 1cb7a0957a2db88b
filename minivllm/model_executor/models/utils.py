"""What all models share (mirrors ``vllm/model_executor/models/utils.py`` of later versions)."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from minivllm.model_executor.layers.logits_processor import LogitsProcessor
from minivllm.model_executor.layers.pooler import Pooler
from minivllm.model_executor.layers.sampler import Sampler
from minivllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    VocabParallelEmbedding,
)
from minivllm.model_executor.module import Array, Module
from minivllm.model_executor.pooling_metadata import PoolingMetadata
from minivllm.model_executor.sampling_metadata import SamplingMetadata
from minivllm.sequence import PoolerOutput, SamplerOutput
from minivllm.transformers_utils.config import PretrainedConfig


class CausalLM(Module):
    """A model with a head: from hidden states to logits and tokens, or to one vector.

    A family's class makes its layers in ``__init__``, runs them in ``__call__(input_ids,
    positions, kv_caches, attn_metadata) -> hidden_states``, and inherits the rest.

    Attributes
    ----------
    packed_modules_mapping : dict of str to list of str
        Merged layer -> the names of its parts in a checkpoint, in the order of its output.
    prefixes : dict of str to str
        Beginnings of tensor names in some checkpoints -> what they should be.
    ignored_tensors : tuple of str
        Ends of names of tensors that hold no weights.
    """

    packed_modules_mapping: dict[str, list[str]] = {}
    prefixes: dict[str, str] = {}
    ignored_tensors: tuple[str, ...] = ("rotary_emb.inv_freq",)

    def __init__(self, config: PretrainedConfig, embed_tokens: VocabParallelEmbedding) -> None:
        self.config = config
        self.lm_head = embed_tokens
        if not config.tie_word_embeddings:
            self.lm_head = ParallelLMHead(*embed_tokens.weight.shape)
        self.logits_processor = LogitsProcessor(config.vocab_size)
        self.sampler = Sampler()
        self._pooler = Pooler()

    def compute_logits(self, hidden_states: Array, sampling_metadata: SamplingMetadata) -> Array:
        """Return the logits ``(num_rows, vocab_size)`` of the rows that are sampled from."""
        return self.logits_processor(self.lm_head.weight, hidden_states, sampling_metadata,
                                     self.lm_head.bias)

    def sample(self, logits: Array, sampling_metadata: SamplingMetadata) -> SamplerOutput:
        """Draw the next token of each sequence."""
        return self.sampler(logits, sampling_metadata)

    def pooler(self, hidden_states: Array, pooling_metadata: PoolingMetadata) -> PoolerOutput:
        """Make one vector of each prompt's hidden states."""
        return self._pooler(hidden_states, pooling_metadata)

    def load_weights(self, weights: Iterable[tuple[str, Array]]) -> None:
        """Copy a checkpoint's tensors into the layers, one by one as they come.

        Parameters
        ----------
        weights : iterable of (str, ndarray)
            Names and tensors.

        Raises
        ------
        ValueError
            If a tensor is unknown, missing, or of the wrong shape.
        """
        targets = self._weight_targets()
        ignored = self.ignored_tensors
        if self.config.tie_word_embeddings:
            ignored += ("lm_head.weight",)
        missing = set(targets)
        for name, tensor in weights:
            name = self._rename(name)
            if name.endswith(ignored):
                continue
            if name not in targets:
                raise ValueError(f"the checkpoint has a tensor {name!r}, which "
                                 f"{type(self).__name__} does not know.")
            target = targets[name]
            if tensor.shape != target.shape:
                raise ValueError(f"tensor {name!r} of the checkpoint has shape {tensor.shape}, "
                                 f"config.json asks for {target.shape}.")
            np.copyto(target, tensor)
            missing.discard(name)
        if missing:
            raise ValueError(f"the checkpoint lacks {len(missing)} of {len(targets)} tensors: "
                             f"{', '.join(sorted(missing)[:5])}{', ...' * (len(missing) > 5)}.")

    def _rename(self, name: str) -> str:
        for prefix, replacement in self.prefixes.items():
            if name.startswith(prefix):
                return replacement + name.removeprefix(prefix)
        return name

    def _weight_targets(self) -> dict[str, Array]:
        """Return, for each tensor of a checkpoint, the array or part of one that it fills."""
        targets: dict[str, Array] = {}
        for path, module in self.named_modules():
            for kind, array in module.parameters():  # kind: "weight" or "bias"
                targets.update(self._split(path, kind, array, module))
        return targets

    def _split(self, path: str, kind: str, array: Array, module: Any) -> dict[str, Array]:
        parent, _, name = path.rpartition(".")
        parts = self.packed_modules_mapping.get(name)
        if parts is None:
            return {f"{path}.{kind}": array}
        ends = np.cumsum(module.output_sizes)[:-1]
        arrays = np.split(array, ends)  # views, along the output
        return {f"{parent}.{part}.{kind}": view for part, view in zip(parts, arrays, strict=True)}
