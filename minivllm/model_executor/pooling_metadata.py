"""What the pooler is told about a step (mirrors ``vllm/model_executor/pooling_metadata.py``)."""

from dataclasses import dataclass

from minivllm.pooling_params import PoolingParams


@dataclass
class PoolingMetadata:
    """The requests of a step, in batch order.

    Attributes
    ----------
    pooling_params : list of PoolingParams
        Of each request.
    prompt_lens : list of int
        Of each request: how many rows of the hidden states are its own.
    """

    pooling_params: list[PoolingParams]
    prompt_lens: list[int]
