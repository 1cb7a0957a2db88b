"""Comparing two traces, field by field."""

from collections.abc import Collection
from typing import Any, NamedTuple

from minivllm.tracing.trace import FINAL_FIELDS, FORMAT, STEP_FIELDS

_MISSING = "(nothing)"


class Difference(NamedTuple):
    """The first place where two traces differ, and what each has there.

    Attributes
    ----------
    where : str
        For example ``step 12: scheduled[1].block_table``.
    ours, expected : Any
        The two values.
    """

    where: str
    ours: Any
    expected: Any

    def __str__(self) -> str:
        return f"{self.where}: ours {self.ours!r}, expected {self.expected!r}"


def check_trace(trace: Any, source: str) -> dict[str, Any]:
    """Return `trace` if it looks like one, else raise a ValueError that names `source`."""
    if not isinstance(trace, dict) or trace.get("format") != FORMAT:
        raise ValueError(f'{source}: not a trace: its format must be "{FORMAT}".')
    steps, final = trace.get("steps"), trace.get("final")
    if not isinstance(steps, list) or not isinstance(final, dict):
        raise ValueError(f"{source}: a trace must have a list of steps and an object final.")
    for index, step in enumerate(steps):
        if not isinstance(step, dict) or not isinstance(step.get("step"), int):
            raise ValueError(f"{source}: steps[{index}] must be an object with a number step.")
    return trace


def first_difference(ours: dict[str, Any], expected: dict[str, Any],
                     ignore: Collection[str] = ()) -> Difference | None:
    """Return where two traces differ first, None if nowhere.

    Every field of the format is compared, in the order in which things happen: the steps, each
    from what was decided to what came out, then the end.

    Parameters
    ----------
    ours, expected : dict
        Two traces.
    ignore : collection of str
        Names of fields to leave out, at any depth.
    """
    for our_step, their_step in zip(ours["steps"], expected["steps"], strict=False):
        difference = _differ(our_step, their_step, f"step {their_step['step']}: ",
                             STEP_FIELDS, ignore)
        if difference:
            return difference
    if len(ours["steps"]) != len(expected["steps"]):
        return Difference("number of steps", len(ours["steps"]), len(expected["steps"]))
    for field in ("workload", "stalled", "error"):
        if ours.get(field) != expected.get(field):
            return Difference(field, ours.get(field), expected.get(field))
    return _differ(ours["final"], expected["final"], "final: ", FINAL_FIELDS, ignore)


def _differ(ours: dict[str, Any], expected: dict[str, Any], where: str,
            fields: Collection[str], ignore: Collection[str]) -> Difference | None:
    for field in fields:
        if field in ignore:
            continue
        difference = _first_difference(ours.get(field, _MISSING), expected.get(field, _MISSING),
                                       where + field, ignore)
        if difference:
            return difference
    return None


def _first_difference(ours: Any, expected: Any, where: str,
                      ignore: Collection[str]) -> Difference | None:
    """Compare two values; look into objects, and into lists of objects of equal length."""
    if ours == expected:
        return None
    if isinstance(ours, dict) and isinstance(expected, dict):
        return _differ(ours, expected, f"{where}.", {**expected, **ours}, ignore)
    if _are_objects(ours) and _are_objects(expected) and len(ours) == len(expected):
        pairs = enumerate(zip(ours, expected, strict=True))
        differences = (_first_difference(mine, theirs, f"{where}[{i}]", ignore)
                       for i, (mine, theirs) in pairs)
        return next(filter(None, differences), None)
    return Difference(where, ours, expected)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(x, dict) for x in value)
