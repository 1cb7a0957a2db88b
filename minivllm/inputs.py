"""What a prompt may look like (mirrors ``vllm/inputs.py``).

Left out: multi-modal data, and the parsing of the legacy nested-list form of prompts.
"""

from typing import TypedDict


class TextPrompt(TypedDict):
    """A prompt as text; the engine tokenizes it."""

    prompt: str


class TokensPrompt(TypedDict):
    """A prompt as token ids."""

    prompt_token_ids: list[int]


class TextTokensPrompt(TypedDict):
    """A prompt as both; the ids are used, the text is carried along."""

    prompt: str
    prompt_token_ids: list[int]


# What `LLMEngine.add_request` and `LLM.generate` take for one prompt.
PromptInputs = str | TextPrompt | TokensPrompt | TextTokensPrompt


class LLMInputs(TypedDict):
    """A prompt as the engine keeps it.

    ``prompt_token_ids`` are what the model sees, ``prompt`` is the text if there was one.
    """

    prompt_token_ids: list[int]
    prompt: str | None
