"""The attention layer of a model (mirrors ``vllm/attention/layer.py``)."""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionMetadata


class Attention:
    """Stores the step's keys and values in the paged cache, then attends.

    Parameters
    ----------
    num_heads : int
        Query heads.
    head_size : int
    scale : float
        Multiplies query-key products.
    num_kv_heads : int, optional
        Key and value heads; None: as many as query heads.
    sliding_window : int, optional
        How many tokens a token sees, itself included; None: all before it.
    """

    def __init__(self, num_heads: int, head_size: int, scale: float,
                 num_kv_heads: int | None = None, sliding_window: int | None = None) -> None:
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = scale
        self.num_kv_heads = num_kv_heads or num_heads
        self.sliding_window = sliding_window

    def __call__(self, query: NDArray[np.float32], key: NDArray[np.float32],
                 value: NDArray[np.float32], kv_cache: NDArray[np.float32],
                 attn_metadata: AttentionMetadata) -> NDArray[np.float32]:
        """Attend from the step's tokens to all tokens before them.

        Parameters
        ----------
        query : (num_tokens, num_heads * head_size) float32
        key, value : (num_tokens, num_kv_heads * head_size) float32
        kv_cache : (2, num_blocks, num_kv_heads, block_size, head_size) float32
        attn_metadata : AttentionMetadata

        Returns
        -------
        (num_tokens, num_heads * head_size) float32
        """
        backend = attn_metadata.backend
        query = query.reshape(-1, self.num_heads, self.head_size)
        key = key.reshape(-1, self.num_kv_heads, self.head_size)
        value = value.reshape(-1, self.num_kv_heads, self.head_size)
        backend.reshape_and_cache(key, value, kv_cache, attn_metadata.slot_mapping)
        output = np.empty(query.shape, dtype=np.float32)
        split = attn_metadata.num_prefill_tokens
        if attn_metadata.num_prefills:
            backend.prefill_attention(query[:split], kv_cache, attn_metadata, self.scale,
                                      self.sliding_window, output[:split])
        if attn_metadata.num_decode_tokens:
            first = attn_metadata.num_prefills
            backend.paged_attention(query[split:], kv_cache, attn_metadata.block_tables[first:],
                                    attn_metadata.seq_lens[first:], self.scale,
                                    self.sliding_window, output[split:])
        return output.reshape(len(output), -1)
