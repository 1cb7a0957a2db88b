"""Who may import whom: the floors of the house, read from the imports themselves."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "minivllm"

# Rooms by floor.  A room imports from the floors below it, from its own package, and from the
# neighbours on its floor that are named below.
FLOORS = [
    ["workloads", "sequence", "block", "decisions", "config", "sampling_params", "pooling_params",
     "inputs", "outputs", "lora.request", "tracing.snapshot", "tracing.batch", "transformers_utils",
     "logger", "envs", "threads", "utils", "version"],
    ["model_executor", "lora", "attention", "distributed"],
    ["worker"],
    ["core", "executor"],
    ["engine"],
    ["tracing", "viz", "entrypoints"],
    ["stepper", "exercises", "bench"],
    ["cli", "__main__"],
]
NEIGHBOURS = {
    "model_executor": {"attention", "distributed"},
    "lora": {"attention", "distributed"},
    "tracing": {"viz"},
    "__main__": {"cli"},
}
# Exceptions that the table states: core sees floor 0 only, executor floors 0 to 2.
HIGHEST_FLOOR_SEEN = {"core": 0, "executor": 2}
# Third-party packages that a room must not import.
FORBIDDEN = {"engine": {"rich"}, "core": {"numpy", "numba", "rich"}}

FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def room_of(module: str) -> str:
    """Return the room of ``minivllm.a.b``: ``a``, or ``a.b`` where the table names it."""
    parts = module.split(".")[1:]
    if ".".join(parts[:2]) in FLOOR:
        return ".".join(parts[:2])
    return parts[0] if parts else "minivllm"


def imports_of(path: Path) -> list[tuple[int, str]]:
    """Return (line, module) of every import in a file, those inside functions too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "minivllm":
                found += [(node.lineno, f"minivllm.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module))
    return found


def broken_rules(room: str, imported: str) -> str | None:
    """Return what is wrong with `room` importing the module `imported`, None if nothing."""
    if not imported.startswith("minivllm"):
        top = imported.split(".")[0]
        return f"{room} must not import {top}" if top in FORBIDDEN.get(room, ()) else None
    other = room_of(imported)
    if other in (room, "version", "minivllm"):
        return None
    if other not in FLOOR:
        return f"{other} has no floor"
    if FLOOR[other] > HIGHEST_FLOOR_SEEN.get(room, FLOOR[room]):
        return f"{room} (floor {FLOOR[room]}) must not import {other} (floor {FLOOR[other]})"
    same_floor = FLOOR[other] == FLOOR[room]
    if same_floor and FLOOR[room] > 0 and other not in NEIGHBOURS.get(room, ()):
        return f"{room} must not import its neighbour {other}"
    return None


def all_files() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", all_files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_follow_the_floors(path: Path) -> None:
    module = "minivllm." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    room = room_of(module)
    assert room in FLOOR, f"{room} has no floor: add it to the table"
    broken = [f"line {line}: {rule}" for line, imported in imports_of(path)
              if (rule := broken_rules(room, imported))]
    assert not broken, "\n".join(broken)


def test_the_rules_catch_what_they_forbid() -> None:
    assert broken_rules("core", "minivllm.attention.layer")
    assert broken_rules("core", "numpy")
    assert broken_rules("engine", "minivllm.tracing.recorder")
    assert broken_rules("engine", "rich.console")
    assert broken_rules("executor", "minivllm.core.scheduler")
    assert broken_rules("viz", "minivllm.stepper")
    assert broken_rules("viz", "minivllm.tracing.record")
    assert not broken_rules("viz", "minivllm.tracing.snapshot")
    assert broken_rules("model_executor", "minivllm.worker.worker")
    assert not broken_rules("core", "minivllm.sequence")
    assert not broken_rules("executor", "minivllm.worker.worker")


def test_floor_zero_has_no_cycles() -> None:
    """Any floor-0 module may import any other, as long as it does not come back."""
    edges: dict[str, set[str]] = {}
    for path in all_files():
        module = "minivllm." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        room = room_of(module)
        if FLOOR.get(room) == 0:
            others = {room_of(name) for _, name in imports_of(path) if name.startswith("minivllm")}
            edges.setdefault(room, set()).update(others - {room, "minivllm"})

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        stack = list(edges.get(start, ()))
        while stack:
            room = stack.pop()
            if room not in seen:
                seen.add(room)
                stack += edges.get(room, ())
        return seen

    assert [room for room in edges if room in reachable(room)] == []


def test_no_torch_and_no_machine_paths() -> None:
    """The package stands alone: no torch, no place of this machine, no unfinished note."""
    for path in all_files():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) torch", text, flags=re.MULTILINE), path
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", text), path
