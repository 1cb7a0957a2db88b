"""A terminal as a screen: single keys in, whole pictures out, everything put back at the end.

Works over ssh and in tmux: it uses the alternate screen and nothing that a VT100 lacks.
"""

import os
import re
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

try:
    import termios
    import tty
except ImportError:  # Windows has none of it.
    termios = None  # type: ignore[assignment]

from rich.console import Console, RenderableType

_ENTER = "\x1b[?1049h\x1b[?25l"  # alternate screen, no cursor
_LEAVE = "\x1b[?25h\x1b[?1049l"
_ARROWS = {"\x1b[C": "right", "\x1b[D": "left", "\x1b[A": "up", "\x1b[B": "down",
           "\x1bOC": "right", "\x1bOD": "left", "\x1bOA": "up", "\x1bOB": "down"}
# An escape sequence of an arrow key, or one character.
_KEY = re.compile(r"\x1b[\[O][A-D]|.", re.DOTALL)


def has_raw_keys() -> bool:
    """Return whether keys can be read one by one and the screen be drawn over."""
    return (termios is not None and sys.stdin.isatty() and sys.stdout.isatty()
            and os.environ.get("TERM", "dumb") != "dumb")


class Screen:
    """What can be done with the terminal inside `take_terminal`."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, force_terminal=True)
        self._typed_ahead: list[str] = []
        # Signals write here: drawing inside a signal handler could interrupt drawing.
        self._wakeup, self._waker = os.pipe()

    @property
    def height(self) -> int:
        """Its lines."""
        return self.console.size.height

    def draw(self, renderable: RenderableType, footer: RenderableType, offset: int = 0) -> None:
        """Draw `renderable` from line `offset` on, and `footer` at the bottom."""
        lines, bottom = self._lines(renderable), self._lines(footer)
        room = max(self.height - len(bottom), 0)
        shown = lines[offset:offset + room]
        if offset + room < len(lines) and shown:
            shown[-1] = f"... {len(lines) - offset - room + 1} more lines (arrow down)"
        shown += [""] * (room - len(shown)) + bottom
        # The rest of each line is erased, so nothing flickers and nothing is left over.
        _write("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in shown[:self.height]) + "\x1b[J")

    def num_lines(self, renderable: RenderableType) -> int:
        """Return how many lines `renderable` takes."""
        return len(self._lines(renderable))

    def _lines(self, renderable: RenderableType) -> list[str]:
        with self.console.capture() as capture:
            self.console.print(renderable)
        return capture.get().rstrip("\n").split("\n")

    def key(self) -> str:
        """Wait for a key and return it: a character, ``left``, ``up``, ...; "" at the end.

        ``redraw`` is no key: the window has another size, or the program comes back from ^Z.
        """
        if not self._typed_ahead:
            stdin = sys.stdin.fileno()
            ready, _, _ = select.select([stdin, self._wakeup], [], [])
            if self._wakeup in ready:
                os.read(self._wakeup, 1024)
                return "redraw"
            self._typed_ahead = _KEY.findall(os.read(stdin, 1024).decode(errors="ignore")) or [""]
        key = self._typed_ahead.pop(0)
        return _ARROWS.get(key, key)

    def wake(self) -> None:
        """Let `key` return ``redraw``."""
        os.write(self._waker, b"!")


def _write(text: str) -> None:
    """Write to the terminal, past Python's buffer: a signal handler may do so at any time."""
    data = text.encode(sys.stdout.encoding, "replace")
    while data:
        data = data[os.write(sys.stdout.fileno(), data):]


@contextmanager
def take_terminal(screen: Screen) -> Iterator[None]:
    """Take the terminal, and give it back as it was, whatever happens."""
    stdin = sys.stdin.fileno()
    before = termios.tcgetattr(stdin)

    def enter() -> None:
        tty.setcbreak(stdin)
        _write(_ENTER)

    def leave() -> None:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)
        _write(_LEAVE)

    def on_resize(*_: object) -> None:
        screen.wake()

    def on_end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def on_stop(*_: object) -> None:
        leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        enter()
        screen.wake()

    handlers: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
        signal.SIGWINCH: on_resize, signal.SIGTSTP: on_stop, signal.SIGTERM: on_end,
        signal.SIGHUP: on_end}
    old = {number: signal.getsignal(number) for number in handlers}
    enter()
    try:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        yield
    finally:
        for number, old_handler in old.items():
            signal.signal(number, old_handler)
        leave()
