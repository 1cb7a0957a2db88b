"""The small helpers."""

import io
import sys
import time

import pytest

from minivllm.utils import MissingExtraError, import_extra, track


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves, beside a terminal on stderr."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_track_counts_on_a_terminal_once_it_takes_long(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    seen = []
    for item in track("abcd", 4, "Loading"):
        seen.append(item)
        clock[0] += 0.6
    assert seen == ["a", "b", "c", "d"]
    # Nothing in the first second, then two counts; at the end the line is wiped.
    assert sys.stderr.getvalue() == "\rLoading: 50 %\rLoading: 75 %\r             \r"


def test_track_is_silent_when_it_is_quick_or_nobody_watches(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(track("abcd", 4, "Loading")) == ["a", "b", "c", "d"]
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for _ in track("abcd", 4, "Loading"):
        clock[0] += 10
    assert sys.stderr.getvalue() == ""


def test_track_wipes_its_line_when_it_is_given_up(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    tracked = track("abcd", 4, "Loading")
    next(tracked)
    clock[0] = 2
    next(tracked)
    tracked.close()
    assert sys.stderr.getvalue().endswith("\r             \r")


def test_a_missing_extra_says_how_to_get_it():
    assert import_extra("json", "Tests").loads("1") == 1
    message = r"Chats need the package 'no_such_package', .*pip install 'minivllm\[models\]'"
    with pytest.raises(MissingExtraError, match=message):
        import_extra("no_such_package.inner", "Chats")
