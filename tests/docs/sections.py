"""The parts of pages that are made from the code: commands, line counts, calls of layers."""

import argparse
import importlib
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minivllm.attention.layer import Attention
from minivllm.cli import COMMANDS
from minivllm.model_executor.layers import linear
from minivllm.model_executor.layers.activation import get_act_fn
from minivllm.model_executor.layers.layernorm import LayerNorm, RMSNorm
from minivllm.model_executor.layers.rotary_embedding import get_rope
from minivllm.model_executor.layers.vocab_parallel_embedding import (
    ParallelLMHead,
    VocabParallelEmbedding,
)
from tests.docs.code_lines import code_lines
from tests.docs.quoting import ROOT
from tests.docs.speeds import peers_table, stages_table

Stop = dict[str, Any]


def make_section(name: str) -> str:
    """Return the Markdown of the section called `name`."""
    if name not in SECTIONS:
        raise ValueError(f"no section is called {name!r}; there are: {', '.join(SECTIONS)}.")
    return f"\n{SECTIONS[name]().strip()}\n\n"


def cli_reference() -> str:
    """Return a heading and tables of arguments for each sub-command."""
    return "\n\n".join(command_reference(name) for name in COMMANDS)


def command_reference(name: str) -> str:
    """Return the reference of one sub-command, and of those below it, from its parser."""
    parser = importlib.import_module(COMMANDS[name].module).parser()
    return "\n\n".join(_describe(parser, level=2))


def _describe(parser: argparse.ArgumentParser, level: int) -> list[str]:
    parts = [f"{'#' * level} {parser.prog}", _escape(parser.description or "")]
    # argparse's own groups have no name that says anything; the others do.
    plain, *named = _groups(parser)
    for title, actions in [("", plain[1]), *named]:
        if actions:
            rows = [f"| {_name(action)} | {_help(action, parser)} |" for action in actions]
            parts.append("\n".join([f"| {title or 'argument'} | |", "|---|---|", *rows]))
    if parser.epilog:
        parts.append(_escape(parser.epilog))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                parts += _describe(child, level + 1)
    return parts


def _groups(parser: argparse.ArgumentParser) -> list[tuple[str, list[argparse.Action]]]:
    """Return the arguments of argparse's two groups as one, then those of each named group."""
    groups = [(group.title or "", [
        action for action in group._group_actions
        if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))])
        for group in parser._action_groups]
    return [("", groups[0][1] + groups[1][1]), *groups[2:]]


def _name(action: argparse.Action) -> str:
    names = action.option_strings or [str(action.metavar or action.dest)]
    value = ""
    if action.option_strings and action.nargs != 0:
        value = " " + (str(action.metavar) if action.metavar else
                       "{" + ",".join(map(str, action.choices)) + "}" if action.choices else
                       action.dest.upper())
    return f"`{', '.join(names)}{value}`"


def _help(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    formatter = parser._get_formatter()
    return _escape(formatter._expand_help(action) if action.help else "")


def _escape(text: str) -> str:
    """Return `text` on one line, so that Markdown shows it as it is; code stays code."""
    parts = " ".join(text.split()).split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([<*_|])", r"\\\1", parts[i])
    return "`".join(parts)


# The stops of the main path, and the lines of code of vLLM 0.5.0.post1's files.
READING_ORDER = ROOT / "docs" / "reading-order.json"
VLLM_LINES = ROOT / "docs" / "vllm-lines.json"


def reading_order() -> str:
    """Return the table of the main path, with lines of code here and in vLLM."""
    stops = read_json(READING_ORDER)
    rows = ["| | file | code lines | vLLM's |", "|---|---|---:|---:|"]
    for number, stop in enumerate(stops, start=1):
        ours = "<br>".join(f"[`{path}`](../minivllm/{path})" for path in stop["files"])
        theirs = ", ".join(f"`vllm/{path}`" for path in stop["vllm"])
        rows.append(f"| {number} | *{stop['answers']}*<br>{ours}<br>mirrors {theirs} "
                    f"| {our_lines(stop):,} | {vllm_lines(stop):,} |")
    total, vllm_total = sum(map(our_lines, stops)), sum(map(vllm_lines, stops))
    rows.append(f"| | **all** | **{total:,}** | **{vllm_total:,}** |")
    return "\n".join(rows)


def reading_order_sum() -> str:
    """Return the one sentence that the README says about size, in hundreds of lines."""
    num_stops, total, vllm_total = reading_order_sums()
    return (f"The main path is {num_stops} stops and about {total:,} lines of code; the same "
            f"files of vLLM 0.5.0.post1 have {vllm_total:,}.")


def reading_order_sum_zh() -> str:
    """Return the same in Chinese."""
    num_stops, total, vllm_total = reading_order_sums()
    return (f"主路径共 {num_stops} 站，约 {total:,} 行代码；vLLM 0.5.0.post1 中对应的文件有 "
            f"{vllm_total:,} 行。")


def reading_order_sums() -> tuple[int, int, int]:
    """Return the number of stops, and in hundreds the lines of code here and in vLLM."""
    stops = read_json(READING_ORDER)
    total, vllm_total = (round(sum(map(count, stops)), -2) for count in (our_lines, vllm_lines))
    return len(stops), total, vllm_total


def our_lines(stop: Stop) -> int:
    """Return the lines of code of a stop's files here."""
    return sum(code_lines((ROOT / "minivllm" / path).read_text(encoding="utf-8"))
               for path in stop["files"])


def vllm_lines(stop: Stop) -> int:
    """Return the lines of code of a stop's files in vLLM."""
    return sum(read_json(VLLM_LINES)[path] for path in stop["vllm"])


# What a model is made of.
LAYERS: list[Callable[..., Any]] = [
    linear.QKVParallelLinear, linear.MergedColumnParallelLinear, linear.ColumnParallelLinear,
    linear.RowParallelLinear, RMSNorm, LayerNorm, get_act_fn, get_rope, Attention,
    VocabParallelEmbedding, ParallelLMHead]


def layers() -> str:
    """Return a table of layers as they are called, by the file that they are in."""
    files: dict[str, list[str]] = {}
    for layer in LAYERS:
        path = layer.__module__.removeprefix("minivllm.").replace(".", "/") + ".py"
        arguments = ", ".join(str(parameter.replace(annotation=parameter.empty))
                              for parameter in inspect.signature(layer).parameters.values())
        files.setdefault(path, []).append(f"`{layer.__name__}({arguments})`")
    rows = [f"| `{path}` | {'<br>'.join(calls)} |" for path, calls in files.items()]
    return "\n".join(["| in `minivllm/` | |", "|---|---|", *rows])


def read_json(path: Path) -> Any:
    """Return what a JSON file holds."""
    return json.loads(path.read_text(encoding="utf-8"))


SECTIONS: dict[str, Callable[[], str]] = {
    "cli_reference": cli_reference,
    "layers": layers,
    "peers": peers_table,
    "reading_order": reading_order,
    "reading_order_sum": reading_order_sum,
    "reading_order_sum_zh": reading_order_sum_zh,
    "stages": stages_table,
}
