"""The one matrix product of all models (its place in vLLM: ``torch.nn.functional.linear``)."""

from minivllm.model_executor.module import Array


def linear(x: Array, weight: Array) -> Array:
    """Multiply each row of `x` with a weight.

    Parameters
    ----------
    x : (num_tokens, input_size) float32
    weight : (output_size, input_size) float32
        As checkpoints store it.

    Returns
    -------
    (num_tokens, output_size) float32
    """
    output: Array = x @ weight.T  # (num_tokens, input_size) @ (input_size, output_size)
    return output
