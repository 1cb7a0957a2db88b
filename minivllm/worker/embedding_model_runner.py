"""Runs pooling requests (mirrors ``vllm/worker/embedding_model_runner.py``).

A pooling request is over after its prefill, so nothing of it is kept: the block manager gives it
no blocks, and its keys and values go to a scratch cache that every layer uses in turn.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.pooling_metadata import PoolingMetadata
from minivllm.pooling_params import PoolingParams
from minivllm.sequence import SequenceGroupMetadata, SequenceGroupOutput
from minivllm.worker.model_runner import ModelRunner, SeqInput


class EmbeddingModelRunner(ModelRunner):
    """Builds the arrays, runs model and pooler."""

    def execute_model(self, seq_group_metadata_list: list[SequenceGroupMetadata],
                      kv_caches: list[NDArray[np.float32]]) -> list[SequenceGroupOutput]:
        """Run one step and return the vector of each group, in batch order."""
        prefills: list[SeqInput] = []
        num_blocks = 0
        for metadata in seq_group_metadata_list:
            [data] = metadata.seq_data.values()
            token_ids = data.get_token_ids()
            end = num_blocks + self._num_blocks(len(token_ids))
            prefills.append(SeqInput(token_ids, 0, 0, list(range(num_blocks, end))))
            num_blocks = end
        query_lens = [len(seq.token_ids) for seq in prefills]
        model_input = self._pack(prefills, [], query_lens)
        config = self.model_config
        scratch = np.zeros(self.attn_backend.get_kv_cache_shape(
            num_blocks, self.block_size, config.get_num_kv_heads(), config.get_head_size()),
            dtype=np.float32)
        hidden_states = self.model(model_input.input_ids, model_input.positions,
                                   [scratch] * config.get_num_layers(),
                                   model_input.attn_metadata)  # (num_tokens, hidden_size)
        pooling_metadata = PoolingMetadata(
            [metadata.pooling_params or PoolingParams() for metadata in seq_group_metadata_list],
            query_lens)
        outputs: list[SequenceGroupOutput] = self.model.pooler(hidden_states,
                                                               pooling_metadata).outputs
        return outputs
