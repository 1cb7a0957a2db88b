"""Mistral (vLLM runs it through ``vllm/model_executor/models/llama.py``).

Llama whose tokens see only the last ``sliding_window`` tokens.  The window is a mask in attention,
given to each layer by the configuration, so that nothing is left to say here but the name.
"""

from minivllm.model_executor.models.llama import LlamaForCausalLM


class MistralForCausalLM(LlamaForCausalLM):
    """Mistral with its head."""
