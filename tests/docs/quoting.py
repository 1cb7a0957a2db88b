"""Source code by qualified name, for the blocks that quote it.

The file is parsed, not imported, so a chapter may quote a test or a script as well.
"""

import ast
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
_HEADER = re.compile(r"# (?P<path>[\w/]+\.py): (?P<name>[\w.]+)\n")


def quoted_name(code: str) -> tuple[str, str] | None:
    r"""Return (path, qualified name) if a block's first line says that it is a quotation.

    >>> quoted_name("# minivllm/block.py: BlockTable\n...")
    ('minivllm/block.py', 'BlockTable')
    >>> quoted_name("x = 1\n")
    """
    match = _HEADER.match(code)
    return (match["path"], match["name"]) if match else None


def source_of(path: str, name: str) -> str:
    """Return the source of `name` in the file `path`, decorators included, dedented."""
    source = (ROOT / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        node = _member(node, part, f"{path}: {name}")
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    lines = source.splitlines()[first - 1:node.end_lineno]
    return textwrap.dedent("\n".join(lines)) + "\n"


def quotation(path: str, name: str) -> str:
    """Return the block that quotes `name`: its header and its source."""
    return f"# {path}: {name}\n{source_of(path, name)}"


def _member(node: ast.AST, name: str, wanted: str) -> ast.stmt:
    for child in getattr(node, "body", []):
        targets = getattr(child, "targets", [getattr(child, "target", None)])
        names = [getattr(child, "name", None), *(getattr(t, "id", None) for t in targets)]
        if name in names:
            return child
    raise ValueError(f"{wanted}: there is no {name}.")
