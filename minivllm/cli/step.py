"""``minivllm step``: walk through an engine's steps in the terminal.

With raw keys it is a live picture with one key for each command; through a pipe, or in a
notebook's shell, it reads one command per line instead.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.text import Text

from minivllm.cli.options import field_descriptions, flag_of
from minivllm.cli.screen import Screen, has_raw_keys, take_terminal
from minivllm.engine.arg_utils import EngineArgs
from minivllm.stepper import Stepper
from minivllm.tracing.workload import read_workload
from minivllm.transformers_utils.download import DEFAULT_MODEL
from minivllm.viz.overview import draw_brief, draw_overview
from minivllm.viz.pen import BOLD, DIM, Pen, span
from minivllm.viz.picture import Picture
from minivllm.viz.timeline import draw_timeline


class Key(NamedTuple):
    """A key, its word for the footer, and what it does."""

    key: str
    word: str
    sentence: str


# The footer shows them in this order.
KEYS = [
    Key("n", "next", "Make the next step, or look at it if it is recorded (also: right, space)."),
    Key("b", "back", "Look at the step before; the engine stays where it is (also: left)."),
    Key("p", "until preemption", "Go on until a request is preempted."),
    Key("c", "until copy", "Go on until a shared block is copied (two samples of one prompt)."),
    Key("r", "run", "Go on to the end."),
    Key("g", "go to step", "Go to the step of a number."),
    Key("w", "why", "Why requests ran or did not."),
    Key("t", "tables", "Where each token is."),
    Key("d", "diff", "What the step changed."),
    Key("l", "timeline", "What each request did so far."),
    Key("m", "memory", "How many blocks were used so far."),
    Key("s", "save SVG", "Save the picture to a file."),
    Key("?", "help", "This list (also: h)."),
    Key("x", "quit", "Leave (also: q)."),
]
_ALIASES = {"right": "n", " ": "n", "left": "b", "h": "?", "q": "x", "\x04": "x", "": "x"}


class Session:
    """A walk: the stepper, which picture is shown, and what there is to say.

    Attributes
    ----------
    page : str
        The key of the picture that is shown; ``""`` is the overview.
    name : str or None
        The request that it is about; None: all.
    message : str
        What the last command said.
    """

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.page = ""
        self.name: str | None = None
        self.message = ""
        self._motions: dict[str, Callable[[], Picture]] = {
            "n": stepper.step, "b": stepper.back, "r": stepper.run,
            "p": lambda: stepper.until("preempt"), "c": lambda: stepper.until("copy")}
        self._pages: dict[str, Callable[[], Picture]] = {
            "w": lambda: stepper.why(self.name), "t": lambda: stepper.table(self.name),
            "d": stepper.diff, "l": stepper.timeline, "m": stepper.memory, "?": key_help}

    def do(self, key: str, argument: str = "") -> bool:
        """Do what `key` stands for; return False if that is to quit."""
        self.message = ""
        key = _ALIASES.get(key, key)
        try:
            if key == "x":
                return False
            if key in self._motions:
                self.message = self._motions[key]().data["note"]
            elif key in self._pages:
                self._turn_to(key, argument)
            elif key == "g":
                if not argument.isdecimal():
                    raise ValueError(f"g takes a number, got {argument!r}: g 5.")
                self.stepper.go(int(argument))
            elif key == "s":
                path = argument or f"step-{self.stepper.view.step}.svg"
                self.picture().svg(path)
                self.message = f"saved {path}"
            else:
                self.message = f"{key!r} is no command; ? lists them"
        except (ValueError, IndexError, OSError) as error:
            self.message = str(error)
        return True

    def _turn_to(self, key: str, name: str) -> None:
        """Show another picture; the key of the one that is shown leads back to the overview."""
        shown = self.page, self.name
        self.page = "" if self.page == key and not name else key
        self.name = name or None
        try:
            self.picture()
        except ValueError:
            # There is nothing to draw: stay where it was.
            self.page, self.name = shown
            raise

    def is_page(self, key: str) -> bool:
        """Return whether `key` shows another picture of the same step."""
        return _ALIASES.get(key, key) in self._pages

    def picture(self) -> Picture:
        """Return the picture that is to be shown."""
        return self._pages[self.page]() if self.page else self.stepper.picture()


def key_help() -> Picture:
    """Return what each key does."""
    def draw(pen: Pen) -> list[Text]:
        lines = [line for key in KEYS
                 for line in pen.prose(key.sentence, span(f"{key.key}  ", BOLD))]
        return [pen.heading("keys"), *lines,
                *pen.prose("The key of a picture again: back to the overview.")]

    return Picture("keys", [key._asdict() for key in KEYS], draw)


def footer(session: Session, width: int) -> Group:
    """Return the line of keys, and above it what there is to say."""
    pen = Pen(width)
    keys = [span(key.key, BOLD).append(f" {key.word}", DIM) for key in KEYS]
    back = f"{session.page} again: back to the overview" if session.page else ""
    message = session.message or back
    return Group(Text(pen.fit(message, width), "bold"), *pen.wrap(keys))


def run_screen(session: Session) -> None:
    """Show a live picture and take single keys."""
    screen = Screen()
    offset = 0

    def redraw() -> None:
        bottom = footer(session, screen.console.width)
        room = screen.height - screen.num_lines(bottom)
        screen.draw(_page(session, room), bottom, offset)

    with take_terminal(screen):
        while True:
            redraw()
            key = screen.key()
            if key == "redraw":
                continue
            if key in ("up", "down"):
                most = max(screen.num_lines(_page(session, screen.height)) - screen.height // 2, 0)
                offset = min(max(offset + (5 if key == "down" else -5), 0), most)
                continue
            offset = 0
            argument = _read_number(session, screen, redraw) if key == "g" else ""
            if key == "g" and not argument:
                continue
            if not session.do(key, argument):
                return


def _page(session: Session, height: int) -> RenderableType:
    """Return the picture that is to be shown; of the overview as much as fits the height."""
    stepper = session.stepper
    if session.page == "?":
        return session.picture()
    if not len(stepper):
        return Group(stepper.picture(), Text("n makes step 0, ? says what the keys do."))
    view = stepper.view
    if session.page:
        return Group(view.line(), Text(), session.picture())

    def draw(pen: Pen) -> list[Text]:
        lines = draw_overview(view, pen)
        if len(lines) > height:
            return draw_brief(view, pen)
        history = draw_timeline(view, pen)
        return [*lines, Text(), *history] if len(lines) + len(history) < height else lines

    return Picture(f"step {view.step}", None, draw)


def _read_number(session: Session, screen: Screen, redraw: Callable[[], None]) -> str:
    """Read digits up to the return key; "" if there are none."""
    digits = ""
    while True:
        session.message = f"go to step: {digits}_"
        redraw()
        key = screen.key()
        if key in ("\r", "\n", "", "\x1b"):
            session.message = ""
            return digits if key in ("\r", "\n") else ""
        if key in ("\x7f", "\b"):
            digits = digits[:-1]
        elif key.isdecimal():
            digits += key


def run_lines(session: Session) -> None:
    """Read one command per line, with an argument after a space: ``g 5``, ``w r2``."""
    console = Console(highlight=False)
    console.print(session.stepper.picture())
    console.print(Text(" | ".join(f"{key.key} {key.word}" for key in KEYS)))
    for line in sys.stdin:
        key, _, argument = line.strip().partition(" ")
        if session.is_page(key):
            session.page = ""  # asked for again, it is shown again
        if not session.do(key or "n", argument.strip()):
            return
        if session.message:
            console.print(Text(session.message))
        elif session.is_page(key):
            console.print(session.picture())
        else:
            console.print(session.stepper.picture())


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm step", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Walk through scheduling, step by step, with one key for each command.\n"
                    "Without arguments: the classic three requests.",
        epilog="keys: " + ", ".join(f"{key.key} {key.word}" for key in KEYS) + "\n"
               "Where there are no single keys (a pipe), one command is read per line: g 5, w r2.")
    result.add_argument("prompts", nargs="*", metavar="PROMPT", help="texts, run by a real model")
    result.add_argument("--workload", metavar="W.json", help="run this workload instead")
    result.add_argument("--trace", metavar="T.json", help="walk through this recording instead")
    result.add_argument("--model", "-m", default=None, metavar="MODEL",
                        help=f"for PROMPT (default: {DEFAULT_MODEL})")
    result.add_argument("--n", type=int, metavar="N",
                        help="so many samples of each PROMPT, drawn at temperature 1")
    _add_engine_options(result)
    return result


def _add_engine_options(result: argparse.ArgumentParser) -> None:
    texts = field_descriptions(EngineArgs)
    for name in ("block_size", "max_num_seqs", "max_num_batched_tokens", "max_model_len"):
        result.add_argument(flag_of(name), type=int, metavar="N", help=texts[name])
    for name in ("num_gpu_blocks", "num_cpu_blocks"):
        result.add_argument(flag_of(name), type=int, metavar="N", help=texts[f"{name}_override"])
    for name in ("enable_chunked_prefill", "enable_prefix_caching", "use_v2_block_manager"):
        result.add_argument(flag_of(name), action="store_true", default=None, help=texts[name])
    result.add_argument("--preemption-mode", choices=["swap", "recompute"],
                        help=texts["preemption_mode"])


def main(argv: Sequence[str]) -> int:
    """Run the sub-command."""
    arguments = vars(parser().parse_args(argv))
    prompts, workload, trace, n = (arguments.pop(name)
                                   for name in ("prompts", "workload", "trace", "n"))
    engine_args = {name: value for name, value in arguments.items() if value is not None}
    if sum(map(bool, (prompts, workload, trace))) > 1:
        raise ValueError("name prompts, --workload, or --trace: only one of them.")
    if n is not None and not prompts:
        raise ValueError("--n is for prompts: minivllm step PROMPT --n 2.")
    if trace and engine_args:
        raise ValueError(f"a trace has been recorded already: --{next(iter(engine_args))} cannot "
                         "change it.".replace("_", "-"))
    if n is not None:
        stepper = Stepper([], **{"model": DEFAULT_MODEL} | engine_args)
        for prompt in prompts:
            stepper.add(prompt, n=n, temperature=1.0)
    elif trace:
        stepper = Stepper.load(trace)
    else:
        source = read_workload(workload) if workload else prompts or None
        stepper = Stepper(source, **engine_args)
    session = Session(stepper)
    if has_raw_keys():
        run_screen(session)
    else:
        run_lines(session)
    return 0
