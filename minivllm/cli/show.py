"""``minivllm show``: draw a recorded trace."""

import argparse
from collections.abc import Sequence

from rich.console import Console

from minivllm.stepper import Stepper


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm show",
        description="Draw a trace that `minivllm simulate --trace`, `generate --trace` or "
        "Stepper.save has written: its timeline and memory, or one step.")
    result.add_argument("file", metavar="FILE", help="the trace, .json or .json.gz")
    result.add_argument("--step", type=int, metavar="K", help="draw this step")
    result.add_argument("--svg", metavar="OUT", help="write an SVG instead of printing")
    result.add_argument("--animate", action="store_true", help="with --svg: play all steps")
    return result


def main(argv: Sequence[str]) -> int:
    """Run the sub-command."""
    args = parser().parse_args(argv)
    stepper = Stepper.load(args.file)
    if args.animate:
        if args.svg is None or args.step is not None:
            raise ValueError("--animate plays all steps of a trace: it goes with --svg OUT, and "
                             "without --step.")
        stepper.trace.svg(args.svg, animate=True)
        return 0
    if not len(stepper):
        raise ValueError(f"{args.file} has no steps.")
    try:
        view = stepper[-1 if args.step is None else args.step]
    except IndexError as error:
        raise ValueError(f"{args.file}: {error}") from None
    pictures = [view.timeline(), view.memory()] if args.step is None else [view.picture()]
    if args.svg is not None:
        pictures[0].svg(args.svg)
        return 0
    console = Console(highlight=False)
    for picture in pictures:
        console.print(picture)
    return 0
