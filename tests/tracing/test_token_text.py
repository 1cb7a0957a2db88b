"""Single tokens as text: spaces kept, parts of characters as bytes."""

from pathlib import Path

import pytest

from minivllm.tracing.token_text import token_text
from minivllm.transformers_utils.tokenizer import get_tokenizer


def texts(directory: Path, text: str) -> list[str]:
    tokenizer = get_tokenizer(directory)
    return [token_text(tokenizer, token_id)
            for token_id in tokenizer.encode(text, add_special_tokens=False)]


@pytest.mark.parametrize("name", ["gpt2", "qwen2-tied", "llama-mha"])
def test_tokens_put_together_are_the_text(tiny_dir: Path, name: str):
    text = "The future of AI is\n 12 cats, and more."
    assert "".join(texts(tiny_dir / name, text)).lstrip() == text


@pytest.mark.parametrize("name", ["gpt2", "llama-mha"])
def test_parts_of_a_character_are_bytes(tiny_dir: Path, name: str):
    """The tiny vocabularies have no Chinese: each byte is a token."""
    assert "".join(texts(tiny_dir / name, "中")).lstrip() == "<E4><B8><AD>"


def test_without_a_tokenizer_a_token_is_its_number():
    assert token_text(None, 42) == "42"


def test_special_tokens_are_spelt_out(tiny_dir: Path):
    tokenizer = get_tokenizer(tiny_dir / "llama-mha")
    assert token_text(tokenizer, tokenizer.bos_token_id) == "<s>"
