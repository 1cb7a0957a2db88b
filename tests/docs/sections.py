"""The parts of pages that are made from the code: the command line reference, the line counts."""

import argparse
import importlib
import json
from collections.abc import Callable
from pathlib import Path

from minivllm.cli import COMMANDS
from tests.docs.code_lines import code_lines
from tests.docs.quoting import ROOT


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
    for group in parser._action_groups:
        actions = [action for action in group._group_actions
                   if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))]
        if actions:
            rows = [f"| {_name(action)} | {_help(action, parser)} |" for action in actions]
            parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]))
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                parts += _describe(child, level + 1)
    return parts


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
    for char in "|<*_":
        text = text.replace(char, "\\" + char)
    return " ".join(text.split())


READING_ORDER = ROOT / "docs" / "reading-order.json"


def reading_order() -> str:
    """Return the table of the main path, with lines of code here and in vLLM."""
    stops = read_stops()
    rows = ["| | file | what it answers | code lines | in vLLM 0.5.0.post1 | code lines |",
            "|---|---|---|---:|---|---:|"]
    for number, stop in enumerate(stops, start=1):
        ours = "<br>".join(f"[`{path}`](../minivllm/{path})" for path in stop["files"])
        theirs = "<br>".join(f"`{path}`" for path in stop["vllm"])
        rows.append(f"| {number} | {ours} | {stop['answers']} | {our_lines(stop):,} | {theirs} | "
                    f"{sum(stop['vllm'].values()):,} |")
    total = sum(map(our_lines, stops))
    vllm_total = sum(sum(stop["vllm"].values()) for stop in stops)
    rows.append(f"| | **all** | | **{total:,}** | | **{vllm_total:,}** |")
    return "\n".join(rows)


def reading_order_sum() -> str:
    """Return the one sentence that the README says about size."""
    stops = read_stops()
    total = sum(map(our_lines, stops))
    vllm_total = sum(sum(stop["vllm"].values()) for stop in stops)
    return (f"The main path is {len(stops)} stops and {total:,} lines of code, where vLLM "
            f"0.5.0.post1 has {vllm_total:,}.")


def read_stops() -> list[dict]:
    """Return the stops of the main path; see ``docs/reading-order.json``."""
    return json.loads(READING_ORDER.read_text(encoding="utf-8"))


def our_lines(stop: dict) -> int:
    """Return the lines of code of a stop's files here."""
    return sum(code_lines((ROOT / "minivllm" / path).read_text(encoding="utf-8"))
               for path in stop["files"])


def package_files() -> list[Path]:
    """Return the package's Python files."""
    return sorted((ROOT / "minivllm").rglob("*.py"))


SECTIONS: dict[str, Callable[[], str]] = {
    "cli_reference": cli_reference,
    "reading_order": reading_order,
    "reading_order_sum": reading_order_sum,
}
