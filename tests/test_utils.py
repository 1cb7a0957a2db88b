"""The small helpers."""

import ctypes
import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from minivllm.utils import HeldInterrupts, MissingExtraError, import_extra, track


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


def test_interrupts_are_held_to_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with HeldInterrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")
        done.append("never")
    assert done == ["all of it"]


def test_interrupts_are_let_through_where_that_is_said():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with HeldInterrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            done.append("before")
            with interrupts.let_through():
                done.append("never")
    with pytest.raises(KeyboardInterrupt):
        with HeldInterrupts() as interrupts:
            try:
                with interrupts.let_through():
                    signal.raise_signal(signal.SIGINT)
                    done.append("never")
            finally:
                signal.raise_signal(signal.SIGINT)
                done.append("cleaned up")
    assert done == ["before", "cleaned up"]


def test_interrupts_are_nothing_to_other_threads():
    done = []

    def work():
        with HeldInterrupts() as interrupts, interrupts.let_through():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_an_unknown_logging_level_is_said_in_one_line():
    result = subprocess.run([sys.executable, "-c", "import minivllm.engine.llm_engine"],
                            env={**os.environ, "MINIVLLM_LOGGING_LEVEL": "loud"},
                            capture_output=True, text=True, check=True)
    assert "MINIVLLM_LOGGING_LEVEL must be DEBUG, " in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"),
                    reason="it is about the malloc of glibc")
def test_memory_of_dropped_arrays_is_kept_for_new_ones():
    program = """if True:
        import resource
        import numpy as np
        from minivllm.utils import keep_freed_memory

        def num_page_faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(20):
                [np.ones(1 << 17) for _ in range(8)]  # of 1 MiB
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        keep_freed_memory()
        num_page_faults()
        print(num_page_faults())
        """
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                            check=True, timeout=60)
    assert int(result.stdout) < 2048  # once all of them have so many pages
