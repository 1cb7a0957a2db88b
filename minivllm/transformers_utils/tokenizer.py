"""Text to token ids and back (mirrors ``vllm/transformers_utils/tokenizer.py``).

vLLM takes transformers' tokenizers; here a thin wrapper gives the ``tokenizers`` library their
method names.  Left out: slow (Python) tokenizers, which would be code from the model directory.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers

from minivllm.transformers_utils.chat_template import render_chat_template
from minivllm.transformers_utils.config import read_json
from minivllm.transformers_utils.download import resolve_model
from minivllm.transformers_utils.gguf.reader import read_gguf
from minivllm.transformers_utils.gguf.tokenizer import llama_tokenizer, llama_tokenizer_config

# What tokenizer_config.json may name, beside a list of additional ones.
SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token",
                  "mask_token")


class Tokenizer:
    """The tokenizer of a model, under transformers' names.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        What ``tokenizer.json`` describes.
    config : mapping
        What ``tokenizer_config.json`` says: special tokens and the chat template.

    Attributes
    ----------
    special_tokens : dict
        ``bos_token``, ``eos_token``, ... to the token's text.
    all_special_tokens, all_special_ids : list of str, set of int
        The tokens that the *config* names.  ``tokenizer.json`` may mark more as special; those
        are left out by `decode`, but not by `convert_ids_to_tokens`, which is what the engine's
        incremental detokenizer uses.
    bos_token_id, eos_token_id : int or None
    chat_template : str or None
    """

    is_fast = True

    def __init__(self, tokenizer: tokenizers.Tokenizer, config: Mapping[str, Any]) -> None:
        # tokenizer.json keeps the settings that its trainer used last.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._length = tokenizer.get_vocab_size(with_added_tokens=True)
        self.special_tokens = {name: _token_text(config[name]) for name in SPECIAL_TOKENS
                               if config.get(name)}
        additional = [_token_text(token) for token in _list(config, "additional_special_tokens")]
        self.all_special_tokens = list(dict.fromkeys([*self.special_tokens.values(), *additional]))
        self.all_special_ids = {token_id for token in self.all_special_tokens
                                if (token_id := tokenizer.token_to_id(token)) is not None}
        self.bos_token_id = self._special_id("bos_token")
        self.eos_token_id = self._special_id("eos_token")
        self.chat_template = _default_template(config.get("chat_template"))

    def _special_id(self, name: str) -> int | None:
        token = self.special_tokens.get(name)
        token_id: int | None = None if token is None else self._tokenizer.token_to_id(token)
        return token_id

    def __len__(self) -> int:
        """Return the number of tokens, added ones included."""
        return self._length

    @property
    def vocab_size(self) -> int:
        """Number of tokens without the added ones."""
        return int(self._tokenizer.get_vocab_size(with_added_tokens=False))

    @property
    def max_token_id(self) -> int:
        """The highest token id; above `len(self) - 1` if ids are skipped."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Return the token ids of `text`.

        Raises
        ------
        ValueError
            If `text` is no legal text: half of a surrogate pair stands in it.
        """
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"text cannot be tokenized: character {error.start} "
                             f"({text[error.start]!r}) is half of a surrogate pair.") from error
        token_ids: list[int] = self._tokenizer.encode(
            text, add_special_tokens=add_special_tokens).ids
        return token_ids

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Return the text of `ids`."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def convert_ids_to_tokens(self, ids: Iterable[int],
                              skip_special_tokens: bool = False) -> list[str]:
        """Return each token as the vocabulary spells it; ``""`` for an id that it lacks."""
        return [self._tokenizer.id_to_token(token_id) or "" for token_id in ids
                if not (skip_special_tokens and token_id in self.all_special_ids)]

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Return the text of tokens that are spelt as the vocabulary spells them."""
        decoder = self._tokenizer.decoder
        return " ".join(tokens) if decoder is None else str(decoder.decode(list(tokens)))

    def get_added_vocab(self) -> dict[str, int]:
        """Return the tokens that were added to the vocabulary, with their ids."""
        return {token.content: token_id
                for token_id, token in self._tokenizer.get_added_tokens_decoder().items()}

    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]],
                            add_generation_prompt: bool = True) -> str:
        """Return the prompt for a conversation.

        Parameters
        ----------
        messages : sequence of mapping
            Each with ``role`` and ``content``.
        add_generation_prompt : bool
            End with what opens the assistant's answer.

        Raises
        ------
        ValueError
            If the model has no chat template, or it refuses the messages.
        ImportError
            Without the ``models`` extra.
        """
        if self.chat_template is None:
            raise ValueError("this model has no chat template (neither chat_template.jinja nor a "
                             "'chat_template' in tokenizer_config.json): it was not trained to "
                             "chat. Give it a plain prompt, through generate.")
        return render_chat_template(self.chat_template, messages,
                                    add_generation_prompt=add_generation_prompt,
                                    tools=None, documents=None, **self.special_tokens)


def get_tokenizer(name_or_path: str | Path) -> Tokenizer:
    """Load the tokenizer of a model.

    Parameters
    ----------
    name_or_path : str or Path
        A directory with ``tokenizer.json``, a ``.gguf`` file, or whatever else `LLM` takes.

    Raises
    ------
    FileNotFoundError
        If there is no such model, or no ``tokenizer.json`` in it.
    ValueError
        If a file of it is broken.
    """
    path = Path(name_or_path).expanduser()
    if not (path / "tokenizer.json").is_file():
        path = resolve_model(name_or_path)
    if path.is_file():
        gguf = read_gguf(path)
        return Tokenizer(llama_tokenizer(gguf), llama_tokenizer_config(gguf))
    file = path / "tokenizer.json"
    if not file.is_file():
        raise FileNotFoundError(f"{path} has no tokenizer.json. Pass tokenizer= a directory that "
                                "has one, or skip_tokenizer_init=True to work with token ids.")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{file} cannot be read: {error}. Download it again; if it is newer than "
                         "the tokenizers package, pip install --upgrade tokenizers") from error
    return Tokenizer(tokenizer, _read_config(path))


def check_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Check that every token has a row in the model's vocabulary of `vocab_size` rows.

    A model may have more rows than there are tokens: many are padded.

    Raises
    ------
    ValueError
        If the tokenizer belongs to another model.
    """
    if tokenizer.max_token_id >= vocab_size:
        raise ValueError(f"the tokenizer has token ids up to {tokenizer.max_token_id}, the model's "
                         f"vocabulary has {vocab_size} (vocab_size): they do not belong together. "
                         "Pass the tokenizer= of this model.")


def _read_config(directory: Path) -> dict[str, Any]:
    """Return ``tokenizer_config.json``, completed from the files that stand beside it.

    Older models name special tokens in ``special_tokens_map.json``, newer ones keep the template
    in ``chat_template.jinja``.
    """
    config: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        file = directory / name
        if file.exists():
            config.update(read_json(file))
    if (file := directory / "chat_template.jinja").exists():
        config["chat_template"] = file.read_text(encoding="utf-8")
    return config


def _token_text(token: str | Mapping[str, Any]) -> str:
    """Return the text of a special token: given itself, or within a description of it."""
    text = token.get("content") if isinstance(token, Mapping) else token
    if not isinstance(text, str):
        raise ValueError(f"tokenizer_config.json names the special token {token!r}, which should "
                         "be a text, or an object with 'content'.")
    return text


def _list(config: Mapping[str, Any], name: str) -> list[Any]:
    value = config.get(name) or []
    if not isinstance(value, list):
        raise ValueError(f"tokenizer_config.json: {name} should be a list, it is {value!r}.")
    return value


def _default_template(template: Any) -> str | None:
    """Return the chat template; of several named ones the one called ``default``."""
    if isinstance(template, list):
        if not all(isinstance(entry, Mapping) and {"name", "template"} <= entry.keys()
                   for entry in template):
            raise ValueError("tokenizer_config.json: each of several chat templates should be an "
                             "object with 'name' and 'template'.")
        template = {entry["name"]: entry["template"] for entry in template}.get("default")
    if not isinstance(template, str | None):
        raise ValueError(f"tokenizer_config.json: chat_template should be a text, it is "
                         f"{template!r}.")
    return template
