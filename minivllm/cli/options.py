"""Options that several sub-commands share, made from the classes that they fill.

A flag is a field's name with dashes, its help is what the class's docstring says of the field,
so that the command line cannot drift from the library.
"""

import argparse
import inspect
import re
from typing import Any

from minivllm.engine.arg_utils import EngineArgs
from minivllm.sampling_params import SamplingParams

# Parameters that a command line cannot carry, that a sub-command sets itself, or (`seed`) whose
# flag is that of a sampling parameter.
_NOT_ENGINE_OPTIONS = ("self", "model", "skip_tokenizer_init", "disable_log_stats", "seed")
_NOT_SAMPLING_OPTIONS = ("self", "logits_processors", "logit_bias", "detokenize",
                         "skip_special_tokens", "spaces_between_special_tokens")


def add_model_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--model`` and ``--attention-backend``."""
    parser.add_argument("--model", "-m", default=default, metavar="MODEL",
                        help="a name that `minivllm models` lists, a directory in Hugging Face "
                        f"layout, a .gguf file, or a hub id (default: {default})")
    parser.add_argument("--attention-backend", choices=["auto", "numpy", "numba"], default=None,
                        help="how attention reads the KV cache (default: auto)")


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each setting of `EngineArgs`."""
    _add_options(parser.add_argument_group("engine"), EngineArgs, _NOT_ENGINE_OPTIONS, {})


def add_sampling_options(parser: argparse.ArgumentParser, **defaults: Any) -> None:
    """Add a flag for each of `SamplingParams`; `defaults` replace the class's own."""
    _add_options(parser.add_argument_group("sampling"), SamplingParams, _NOT_SAMPLING_OPTIONS,
                 defaults)


def engine_kwargs(args: argparse.Namespace) -> dict[str, Any]:
    """Return what `add_model_option` and `add_engine_options` have read, for `LLM`."""
    names = [name for name in inspect.signature(EngineArgs).parameters
             if name not in _NOT_ENGINE_OPTIONS]
    return {"model": args.model, "attention_backend": args.attention_backend,
            **{name: getattr(args, name) for name in names}}


def sampling_params(args: argparse.Namespace) -> SamplingParams:
    """Return what `add_sampling_options` has read."""
    names = [name for name in inspect.signature(SamplingParams.__init__).parameters
             if name not in _NOT_SAMPLING_OPTIONS]
    return SamplingParams(**{name: getattr(args, name) for name in names})


def _add_options(group: Any, cls: type, left_out: tuple[str, ...],
                 defaults: dict[str, Any]) -> None:
    descriptions = field_descriptions(cls)
    for name, parameter in inspect.signature(cls).parameters.items():
        if name in left_out:
            continue
        flag = flag_of(name)
        default = defaults.get(name, parameter.default)
        text = descriptions[name].replace("%", "%%")
        kind = str(parameter.annotation)
        if name == "early_stopping":
            group.add_argument(flag, type=_early_stopping, default=default,
                               metavar="{true,false,never}", help=text)
        elif parameter.annotation is bool:
            group.add_argument(flag, action="store_true", default=default, help=text)
        elif "list" in kind:
            of_what = int if "list[int]" in kind else str
            group.add_argument(flag, action="append", type=of_what, default=default,
                               metavar=of_what.__name__.upper(),
                               help=f"{text} Give it again for more.")
        else:
            scalar = next(t for t in (int, float, str) if t.__name__ in kind)
            shown = "" if default is None else f" (default: {default})"
            group.add_argument(flag, type=scalar, default=default,
                               metavar=scalar.__name__.upper(), help=text + shown)


def _early_stopping(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text.lower(), text)


def flag_of(name: str) -> str:
    """Return the flag of a field.

    >>> flag_of("top_k")
    '--top-k'
    """
    return "--" + name.replace("_", "-")


def field_descriptions(cls: type) -> dict[str, str]:
    """Read a NumPy-style docstring: ``a, b : type`` and the indented text below it."""
    text = inspect.cleandoc(cls.__doc__ or "").replace("``", "`")
    entries = re.findall(r"^(\w+(?:, \w+)*) : .*\n((?:    .*\n?)+)", text, flags=re.MULTILINE)
    return {name: " ".join(description.split())
            for names, description in entries for name in names.split(", ")}
