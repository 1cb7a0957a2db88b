"""Chat templates: messages to a prompt, through Jinja (as transformers' own).

Templates come with models, so they run in Jinja's sandbox, which lets them call nothing but
harmless methods and change nothing that they are given.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from minivllm.utils import import_extra


def render_chat_template(template: str, messages: Sequence[Mapping[str, Any]],
                         **variables: Any) -> str:
    """Return the prompt that `template` makes of `messages`.

    Parameters
    ----------
    template : str
        Jinja source.
    messages : sequence of mapping
        Each with ``role`` (``system``, ``user``, ``assistant``) and ``content``.
    **variables
        What else the template sees: ``add_generation_prompt``, ``bos_token``, ...

    Raises
    ------
    ValueError
        If the messages are ill-formed, or the template is broken or refuses them.
    MissingExtraError
        Without the ``models`` extra.
    """
    check_messages(messages)
    compiled = _compile(template)
    try:
        return str(compiled.render(messages=messages, **variables))
    except Exception as error:  # a template is a program: anything can go wrong in it
        raise ValueError(f"the chat template cannot render these messages: {error}") from error


def check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise a ValueError that names the first message without ``role`` and ``content``."""
    if isinstance(messages, (str, Mapping)) or not messages:
        raise ValueError("messages must be a list of at least one {'role': ..., 'content': ...}, "
                         f"got {messages!r}.")
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) \
                or "content" not in message:
            raise ValueError(f"messages[{i}] must be {{'role': 'user', 'content': '...'}}, got "
                             f"{message!r}.")


@lru_cache(maxsize=16)
def _compile(template: str) -> Any:
    """Compile a template in the environment that Hugging Face's templates are written for."""
    jinja2 = import_extra("jinja2", "Chat templates")
    sandbox = import_extra("jinja2.sandbox", "Chat templates")

    def raise_exception(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = _strftime_now
    try:
        return environment.from_string(template)
    except jinja2.TemplateError as error:
        raise ValueError(f"the chat template is broken: {error}") from error


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None,
            separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:
    """Jinja's own filter escapes HTML; a prompt wants plain JSON."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def _strftime_now(date_format: str) -> str:
    return datetime.now().strftime(date_format)
