"""Parameters of a pooling request (mirrors ``vllm/pooling_params.py``)."""

from dataclasses import dataclass, replace
from typing import Any


@dataclass
class PoolingParams:
    """What `LLM.encode` does with the hidden states of a prompt.

    Attributes
    ----------
    pooling_type : str
        ``"last"``: the last token's; ``"mean"``: the mean over all tokens.
    normalize : bool
        Divide the vector by its 2-norm.
    additional_data : Any
        Carried along, not looked at (vLLM's only field).
    """

    pooling_type: str = "last"
    normalize: bool = True
    additional_data: Any = None

    def __post_init__(self) -> None:
        if self.pooling_type not in ("last", "mean"):
            raise ValueError(f"pooling_type must be 'last' or 'mean', got {self.pooling_type!r}.")

    def clone(self) -> "PoolingParams":
        """Return a copy."""
        return replace(self)
