"""Linear layers (mirrors ``vllm/model_executor/layers/linear.py``).

vLLM's names say how a layer would be split over ranks: a *column parallel* layer splits its
output, a *row parallel* layer its input.  With one rank they compute the same.  Layers that read
the same input are *merged*: one weight, one product, for what a checkpoint stores as several
tensors.  Left out: ranks, quantisation, and the bias that vLLM can leave to the caller to add.
"""

from collections.abc import Sequence

from minivllm.model_executor.custom_op import CustomOp
from minivllm.model_executor.layers.matmul import linear
from minivllm.model_executor.module import Array, empty_weight


class LinearBase(CustomOp):
    """``y = x @ weight.T + bias``.

    Attributes
    ----------
    weight : (output_size, input_size) float32
    bias : (output_size,) float32 or None
    output_sizes : sequence of int
        How the output is divided among the tensors of the checkpoint.
    """

    def __init__(self, input_size: int, output_sizes: Sequence[int], bias: bool) -> None:
        self.output_sizes = output_sizes
        self.weight = empty_weight(sum(output_sizes), input_size)
        self.bias = empty_weight(sum(output_sizes)) if bias else None

    def __call__(self, x: Array) -> Array:
        """Map ``(num_tokens, input_size)`` to ``(num_tokens, output_size)``."""
        output = linear(x, self.weight, self.kernels)
        if self.bias is not None:
            output += self.bias
        return output


class ColumnParallelLinear(LinearBase):
    """A linear layer whose output could be split over ranks."""

    def __init__(self, input_size: int, output_size: int, bias: bool = True) -> None:
        super().__init__(input_size, [output_size], bias)


class RowParallelLinear(LinearBase):
    """A linear layer whose input could be split over ranks."""

    def __init__(self, input_size: int, output_size: int, bias: bool = True) -> None:
        super().__init__(input_size, [output_size], bias)


class MergedColumnParallelLinear(LinearBase):
    """Several column parallel layers over one input, as one: gate and up projection."""

    def __init__(self, input_size: int, output_sizes: Sequence[int], bias: bool = True) -> None:
        super().__init__(input_size, output_sizes, bias)


class QKVParallelLinear(LinearBase):
    """Query, key and value projection as one layer.

    Parameters
    ----------
    hidden_size : int
    head_size : int
    total_num_heads : int
        Query heads.
    total_num_kv_heads : int, optional
        Key heads, and value heads; None: as many as query heads.
    bias : bool
    """

    def __init__(self, hidden_size: int, head_size: int, total_num_heads: int,
                 total_num_kv_heads: int | None = None, bias: bool = True) -> None:
        self.q_size = total_num_heads * head_size
        self.kv_size = (total_num_kv_heads or total_num_heads) * head_size
        super().__init__(hidden_size, [self.q_size, self.kv_size, self.kv_size], bias)

    def project(self, x: Array) -> tuple[Array, Array, Array]:
        """Return query, key and value of each token, as views into one array.

        Their shapes are ``(num_tokens, q_size)`` and twice ``(num_tokens, kv_size)``.
        """
        qkv = self(x)
        k_start, v_start = self.q_size, self.q_size + self.kv_size
        return qkv[:, :k_start], qkv[:, k_start:v_start], qkv[:, v_start:]
