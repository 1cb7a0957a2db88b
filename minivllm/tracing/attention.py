"""Recording what attention reads: one layer, one head, every decode step.

For example::

    llm = LLM(attention_backend=record_attention(layer=2, head=0))
    with record(llm) as trace:
        llm.generate(prompts)
    trace[3].attention("0")

The backend it returns is the NumPy one, which also computes the softmax weights of that head once
more and keeps them until the recorder has written them down.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend, gather, softmax
from minivllm.config import ModelConfig


class RecordingBackend(NumpyAttentionBackend):
    """A NumPy backend that remembers weights; `record_attention` makes a class of its own.

    Attributes
    ----------
    layer, head : int
        What is recorded.
    weights : list of (num_tokens,) float32
        Of each sequence that decoded in the newest step, in batch order: how much its newest
        token attends to each of its tokens.
    """

    layer: int
    head: int
    weights: list[NDArray[np.float32]]
    # Where the layers' caches lie in memory, in the order in which a step comes to them.
    _cache_addresses: list[int]

    @classmethod
    def check(cls, model_config: ModelConfig) -> None:
        """Raise a ValueError if the model has no such layer or head."""
        for name, number, count in (
                ("layer", cls.layer, model_config.get_num_layers()),
                ("head", cls.head, model_config.get_num_attention_heads())):
            if not 0 <= number < count:
                raise ValueError(f"{name} {number} cannot be recorded: the model has {count}, "
                                 "counted from 0.")

    @classmethod
    def take_weights(cls) -> list[NDArray[np.float32]]:
        """Return the weights of the newest step, and forget them."""
        weights, cls.weights = cls.weights, []
        return weights

    @classmethod
    def note(cls, query: NDArray[np.float32], kv_cache: NDArray[np.float32],
             block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32], scale: float,
             sliding_window: int | None) -> None:
        """Remember the weights of one layer's decodes if it is the recorded layer."""
        address = kv_cache.ctypes.data
        if address not in cls._cache_addresses:
            cls._cache_addresses.append(address)
        if cls._cache_addresses.index(address) != cls.layer:
            return
        kv_head = cls.head * kv_cache.shape[2] // query.shape[1]
        cls.weights = []
        for i, seq_len in enumerate(seq_lens):
            start = max(0, int(seq_len) - (sliding_window or int(seq_len)))
            keys, _ = gather(kv_cache, block_tables[i], start, int(seq_len))
            scores = keys[kv_head] @ query[i, cls.head] * np.float32(scale)  # (seq_len - start,)
            unseen = np.zeros(start, dtype=np.float32)
            cls.weights.append(np.concatenate([unseen, softmax(scores)]))


def record_attention(layer: int = 0, head: int = 0) -> type[RecordingBackend]:
    """Return an attention backend that records one query head of one layer.

    Parameters
    ----------
    layer, head : int
        Counted from 0.
    """
    class Backend(RecordingBackend):
        """The backend of one recording."""

        weights = []
        _cache_addresses = []

        @staticmethod
        def paged_attention(query: NDArray[np.float32], kv_cache: NDArray[np.float32],
                            block_tables: NDArray[np.int32], seq_lens: NDArray[np.int32],
                            scale: float, sliding_window: int | None,
                            out: NDArray[np.float32]) -> None:
            """Attend from the last token of each sequence, and remember how."""
            NumpyAttentionBackend.paged_attention(query, kv_cache, block_tables, seq_lens, scale,
                                                  sliding_window, out)
            Backend.note(query, kv_cache, block_tables, seq_lens, scale, sliding_window)

    Backend.layer, Backend.head = layer, head
    return Backend
