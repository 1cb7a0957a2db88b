"""Writes one page for each room of the package, filled from docstrings (``docs/api/``)."""

import ast
from pathlib import Path

HEAD = """# API reference

From the docstrings, room by room; [the architecture page](../architecture.md) says what each room
is for.

```{{toctree}}
:maxdepth: 1

{pages}
```
"""


def write_api_pages(root: Path) -> None:
    """Write ``docs/api/index.md`` and a page for each room; unchanged files are left alone."""
    rooms: dict[str, list[str]] = {}
    for path in sorted((root / "minivllm").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "__main__" or "exercises" in parts[:-2] or not documented(path):
            continue
        module = ".".join(part for part in parts if part != "__init__")
        rooms.setdefault(parts[1] if len(parts) > 2 else "minivllm", []).append(module)
    folder = root / "docs" / "api"
    folder.mkdir(exist_ok=True)
    for room, modules in rooms.items():
        write(folder / f"{room}.md", page(room, modules))
    write(folder / "index.md", HEAD.format(pages="\n".join(rooms)))


def page(room: str, modules: list[str]) -> str:
    """Return the page of one room: a heading and the docstrings of each of its modules."""
    parts = [f"# {room}\n"]
    for module in modules:
        parts.append(f"## {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n"
                     "   :members:\n   :ignore-module-all:\n```\n")
    return "\n".join(parts)


def documented(path: Path) -> bool:
    """Return True if a module says what it is; empty ``__init__.py`` files do not."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is not None


def write(path: Path, text: str) -> None:
    """Write a file unless it is the same already, so that Sphinx reads it only when needed."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
