"""The text of single tokens, for pictures."""

import re

from minivllm.transformers_utils.tokenizer import Tokenizer

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """Return character -> byte of byte-level BPE (GPT-2's ``bytes_to_unicode``, backwards).

    Bytes that print stand for themselves, the others for the characters from 256 on.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()


def token_text(tokenizer: Tokenizer | None, token_id: int) -> str:
    """Return a token's text, with its own spaces; its id as digits without a tokenizer.

    Bytes that are no whole character are written ``<E4>``.
    """
    if tokenizer is None:
        return str(token_id)
    spelt = tokenizer.convert_ids_to_tokens([token_id])[0]
    if byte := _BYTE_TOKEN.fullmatch(spelt):
        return f"<{byte.group(1)}>"
    text = tokenizer.decode([token_id])
    if "\N{REPLACEMENT CHARACTER}" in text and set(spelt) <= _BYTE_OF.keys():
        return _printed(bytes(_BYTE_OF[char] for char in spelt))
    # SentencePiece marks a leading space, which decoding a single token loses.
    return " " + text.lstrip() if spelt.startswith("\u2581") else text


def _printed(raw: bytes) -> str:
    """Return UTF-8 as text, and what is broken of it as ``<E4>``."""
    text = raw.decode("utf-8", "surrogateescape")
    return "".join(f"<{ord(char) - 0xDC00:02X}>" if 0xDC80 <= ord(char) <= 0xDCFF else char
                   for char in text)
