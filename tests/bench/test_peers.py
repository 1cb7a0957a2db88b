"""The programs that are compared: one works, the others are stopped, and none is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.peers import Program

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.fixture(autouse=True)
def programs_find_minivllm(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def state_of(pid):
    """Return a letter: T is stopped; None: there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_program_is_stopped_between_its_answers():
    program = Program("minivllm", sys.executable, "tiny")
    program.start()
    for _ in range(2):
        _, tokens = program.generate([[5, 6, 7], [8, 9]], 4)
        assert [len(row) for row in tokens] == [4, 4]
        wait_until(lambda: state_of(program.process.pid) == "T")
    program.stop()
    assert program.process.returncode == 0


def test_a_program_that_dies_is_named():
    program = Program("nobody", sys.executable, "tiny")
    program.start()
    with pytest.raises(RuntimeError, match=r"nobody died; run `.*peer_worker.py nobody tiny`"):
        program.generate([[5]], 1)
    program.kill()
    assert program.process.returncode is not None


@pytest.mark.slow
@pytest.mark.parametrize("end", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_nobody_is_left_behind(end, smollm2_dir):
    """The second program is stopped, for it waits while the first generates and generates."""
    program = ["--program", "minivllm", sys.executable, str(smollm2_dir)]
    parent = subprocess.Popen([sys.executable, "-m", "tests.bench.peers", "--case", "latency",
                               "--rounds", "1000", *program, *program],
                              cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def children():
        path = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        return [int(pid) for pid in path.read_text("utf-8").split()]

    wait_until(lambda: len(children()) == 2 and "T" in map(state_of, children()))
    programs = children()
    os.kill(parent.pid, getattr(signal, end))
    assert parent.wait(timeout=60) != 0
    assert [state_of(pid) for pid in programs] == [None, None]
