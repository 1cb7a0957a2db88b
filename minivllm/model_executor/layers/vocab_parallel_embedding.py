"""Token embeddings (mirrors ``vllm/model_executor/layers/vocab_parallel_embedding.py``).

Left out: splitting the vocabulary over ranks, and padding it for that.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.module import Array, Module, empty_weight


class VocabParallelEmbedding(Module):
    """A row for each token id.

    Attributes
    ----------
    weight : (num_embeddings, embedding_dim) float32
    bias : (num_embeddings,) float32 or None
        Of an output embedding: added to the logits.
    """

    bias: Array | None = None

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self.weight = empty_weight(num_embeddings, embedding_dim)

    def __call__(self, ids: NDArray[np.int64]) -> Array:
        """Return the rows of `ids`: ``(num_tokens,)`` to ``(num_tokens, embedding_dim)``."""
        return self.weight[ids]


class ParallelLMHead(VocabParallelEmbedding):
    """The output embedding: logits are products of its rows with a hidden state."""

    def __init__(self, num_embeddings: int, embedding_dim: int, bias: bool = False) -> None:
        super().__init__(num_embeddings, embedding_dim)
        if bias:
            self.bias = empty_weight(num_embeddings)
