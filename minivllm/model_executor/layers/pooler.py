"""One vector for a prompt's hidden states (mirrors ``vllm/model_executor/layers/pooler.py``).

vLLM fixes pooling type and normalisation when the model is made; here each request says both.
"""

import numpy as np

from minivllm.model_executor.module import Array
from minivllm.model_executor.pooling_metadata import PoolingMetadata
from minivllm.pooling_params import PoolingParams
from minivllm.sequence import EmbeddingSequenceGroupOutput, PoolerOutput


class Pooler:
    """Pools each request's rows."""

    def __call__(self, hidden_states: Array, pooling_metadata: PoolingMetadata) -> PoolerOutput:
        """Return one vector for each request.

        Parameters
        ----------
        hidden_states : (num_tokens, hidden_size) float32
            After the last norm, whole prompts one after another.
        pooling_metadata : PoolingMetadata
        """
        starts = np.cumsum(pooling_metadata.prompt_lens)[:-1]
        prompts = np.split(hidden_states, starts)
        return PoolerOutput([EmbeddingSequenceGroupOutput(pool(rows, params).tolist())
                             for rows, params in zip(prompts, pooling_metadata.pooling_params,
                                                     strict=True)])


def pool(rows: Array, params: PoolingParams) -> Array:
    """Pool the hidden states ``(prompt_len, hidden_size)`` of one prompt to ``(hidden_size,)``."""
    vector: Array = rows[-1] if params.pooling_type == "last" else rows.mean(axis=0)
    return vector / np.linalg.norm(vector) if params.normalize else vector
