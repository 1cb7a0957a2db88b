"""``minivllm step`` and ``minivllm show``: a terminal program, driven in tmux and through pipes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from minivllm.cli import main
from minivllm.stepper import Stepper
from minivllm.tracing.files import read_json, write_json
from minivllm.tracing.source import CLASSIC_ENGINE, CLASSIC_TOKEN_IDS, stand_in_workload
from tests.schedule import golden

REPOSITORY = Path(__file__).parents[2]
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None,
                                reason="tmux is not installed: apt-get install tmux")


class Terminal:
    """A shell in a tmux session of its own."""

    def __init__(self, directory: Path, width: int, height: int) -> None:
        self.socket = str(directory / "tmux.sock")
        env = {**os.environ, "LANG": "C.UTF-8", "PYTHONPATH": str(REPOSITORY), "TMUX": ""}
        env.pop("NO_COLOR", None)
        subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", "new-session", "-d",
                        "-x", str(width), "-y", str(height), "-c", str(directory),
                        "env PS1='$ ' sh"], env=env, check=True)

    def tmux(self, *arguments: str) -> str:
        result = subprocess.run(["tmux", "-S", self.socket, *arguments], check=True,
                                capture_output=True, text=True)
        return result.stdout

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def wait_for(self, what: str | Callable[[str], bool], seconds: float = 30) -> str:
        """Return the screen once it shows `what`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen()
            if what(screen) if callable(what) else what in screen:
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{what!r} did not appear:\n{self.screen()}")

    def start(self, *arguments: str) -> str:
        """Run ``minivllm step`` and wait for its first screen."""
        command = f"{sys.executable} -m minivllm step {' '.join(arguments)}"
        self.type("-l", f"stty -a > before; sh -c 'echo $$ > pid; exec {command}'; "
                        "echo code=$?; stty -a > after")
        self.type("Enter")
        return self.wait_for("x quit")

    def assert_restored(self, directory: Path) -> None:
        """The shell's own screen is back, with a cursor, and the line discipline as before."""
        self.wait_for(lambda screen: (directory / "after").exists() and "code=" in screen)
        assert (directory / "after").read_text() == (directory / "before").read_text()
        assert self.tmux("display-message", "-p",
                         "#{alternate_on} #{cursor_flag}").split() == ["0", "1"]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    started = Terminal(tmp_path, 80, 24)
    yield started
    subprocess.run(["tmux", "-S", started.socket, "kill-server"], check=False,
                   capture_output=True)


@pytest.fixture
def workload(tmp_path: Path) -> str:
    """A workload file with the classic three requests for the stand-in model."""
    path = tmp_path / "classic.json"
    write_json(path, stand_in_workload(CLASSIC_TOKEN_IDS, CLASSIC_ENGINE))
    return str(path)


@needs_tmux
@pytest.mark.slow
def test_a_walk(terminal: Terminal, tmp_path: Path, workload: str):
    terminal.start("--workload", workload)
    terminal.type("n")
    screen = terminal.wait_for("step 0  prefill r0 r1 | r2 waits: token budget")
    assert "GPU block pool" in screen
    assert "n next  b back  p until preemption" in screen
    terminal.type("p")
    terminal.wait_for("step 2  decode r0 r1 | r2 preempted by recompute")
    terminal.type("w")
    assert "num_gpu_blocks=6" in terminal.wait_for("num_gpu_blocks")
    terminal.wait_for("w again: back to the overview")
    terminal.type("w")
    terminal.type("Left")
    terminal.wait_for("step 1  prefill r2")
    terminal.type("t")
    terminal.wait_for("block tables")
    terminal.type("g")
    terminal.wait_for("go to step: _")
    terminal.type("1", "3", "BSpace", "0")
    terminal.wait_for("go to step: 10_")
    terminal.type("Enter")
    terminal.wait_for("step 10 ")
    terminal.type("l")
    terminal.wait_for("timeline  steps 0 to 10")
    terminal.type("s")
    terminal.wait_for("saved step-10.svg")
    assert (tmp_path / "step-10.svg").read_text(encoding="utf-8").startswith("<svg")
    terminal.type("z")
    terminal.wait_for("'z' is no command; ? lists them")
    terminal.type("h")
    terminal.wait_for("Go on until a request is preempted.")
    terminal.type("?")
    terminal.type("c")
    terminal.wait_for("no 'copy' happened; the end: every request is finished")
    terminal.type("r")
    terminal.wait_for("the end: every request is finished")
    terminal.type("x")
    terminal.wait_for("code=0")
    terminal.assert_restored(tmp_path)


@needs_tmux
@pytest.mark.slow
def test_ctrl_c_restores_the_terminal(terminal: Terminal, tmp_path: Path, workload: str):
    terminal.start("--workload", workload)
    terminal.type("C-c")
    terminal.wait_for("code=130")
    terminal.assert_restored(tmp_path)


@needs_tmux
@pytest.mark.slow
def test_an_error_restores_the_terminal(terminal: Terminal, tmp_path: Path, workload: str):
    """A fault of the program itself ends it with a traceback on the shell's own screen."""
    (tmp_path / "sitecustomize.py").write_text(
        "import minivllm.stepper as stepper\n"
        "def broken(self, n=1):\n"
        "    raise RuntimeError('a fault')\n"
        "stepper.Stepper.step = broken\n", encoding="utf-8")
    terminal.type("-l", f"export PYTHONPATH={tmp_path}:{REPOSITORY}")
    terminal.type("Enter")
    terminal.start("--workload", workload)
    terminal.type("n")
    terminal.wait_for("RuntimeError: a fault")
    terminal.wait_for("code=1")
    terminal.assert_restored(tmp_path)


@needs_tmux
@pytest.mark.slow
def test_a_kill_and_a_stop_restore_the_terminal(terminal: Terminal, tmp_path: Path,
                                                workload: str):
    terminal.start("--workload", workload)
    terminal.type("n")
    terminal.wait_for("step 0  prefill r0 r1")
    terminal.type("C-z")
    terminal.wait_for(lambda screen: "Stopped" in screen or "Suspended" in screen)
    assert terminal.tmux("display-message", "-p", "#{alternate_on}").strip() == "0"
    terminal.type("-l", "fg")
    terminal.type("Enter")
    terminal.wait_for("step 0  prefill r0 r1")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    terminal.wait_for(lambda screen: screen.rstrip().endswith("$"))
    # The stop has cut the command line short: its end is typed anew.
    terminal.type("-l", "echo code=$?; stty -a > after")
    terminal.type("Enter")
    terminal.wait_for("code=143")
    terminal.assert_restored(tmp_path)


@needs_tmux
@pytest.mark.slow
def test_the_picture_follows_the_window(terminal: Terminal, workload: str):
    terminal.start("--workload", workload)
    terminal.type("n")
    terminal.wait_for("step 0  prefill r0 r1")
    assert "block tables" not in terminal.screen()
    terminal.tmux("resize-window", "-x", "120", "-y", "45")
    screen = terminal.wait_for("block tables")
    assert "timeline  steps 0 to 0" in screen
    assert max(map(len, screen.split("\n"))) > 100


def run_through_a_pipe(commands: str, *arguments: str) -> str:
    env = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(REPOSITORY)}
    result = subprocess.run([sys.executable, "-m", "minivllm", "step", *arguments],
                            input=commands, capture_output=True, text=True, encoding="utf-8",
                            env=env, check=True)
    assert "\x1b" not in result.stdout
    return result.stdout


def test_one_command_per_line_through_a_pipe(workload: str):
    out = run_through_a_pipe("n\np\nw r2\nb\nd\ng 5\nl\nx\nn\n", "--workload", workload)
    assert "step 0  prefill r0 r1" in out
    assert "step 2  decode r0 r1" in out
    assert re.search(r"num_gpu_blocks=6", " ".join(out.split()))
    assert "step 0 → step 1  what changed" in out
    assert "timeline  steps 0 to 5" in out
    assert "step 6" not in out


def test_a_page_that_is_asked_for_again_is_shown_again(workload: str):
    out = run_through_a_pipe("n\nw\nn\nw\n", "--workload", workload)
    assert "why  in step 0" in out and out.rstrip().split("\n")[-2].startswith("why  in step 1")


def test_the_keys_are_explained_before_the_first_step(workload: str):
    out = run_through_a_pipe("?\nq\n", "--workload", workload)
    assert "5 blocks of 4 tokens, 12 tokens a step" in " ".join(out.split())
    assert "p  Go on until a request is preempted." in out


def test_samples_of_a_prompt_share_blocks_until_one_writes():
    out = run_through_a_pipe("c\nd\n", "'Hello, my name is'", "--n", "2", "--block-size", "4",
                             "--num-gpu-blocks", "8")
    assert re.search(r"copy on write: block \d → \d; r0.0 is about to write", out)


def test_what_is_wrong_is_said_and_the_walk_goes_on(workload: str):
    out = run_through_a_pipe("w\nhm\nn\ng nine\ng ²\nw r9\nn\n", "--workload", workload)
    assert "no step" in out
    assert "'hm' is no command" in out
    assert "a number, got 'nine'" in out
    assert "a number, got '²'" in out
    assert "there is no request or sequence 'r9'" in out
    assert "step 1  prefill r2" in out


@pytest.mark.parametrize("arguments", [
    ["--workload", "w.json", "--trace", "t.json"], ["Hello", "--workload", "w.json"],
    ["--trace", "t.json", "--block-size", "4"], ["--trace", "missing.json"], ["--n", "2"],
    ["--workload", "missing"]])
def test_bad_arguments_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["step", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("minivllm step: error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("spoil", [
    lambda trace: trace["recording"].pop("limits"),
    lambda trace: trace["recording"]["limits"].pop("block_size"),
    lambda trace: trace["steps"][1].pop("running"),
    lambda trace: trace["steps"][1].update(scheduled=None),
    lambda trace: trace["steps"][0]["decisions"][0].update(verdict="sent away")])
def test_a_broken_recording_is_one_line(spoil: Callable[[dict], object], tmp_path: Path,
                                        capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "t.json"
    source = golden.GOLDEN / "named" / "preempt_swap_v1.workload.json.gz"
    assert main(["simulate", str(source), "--trace", str(path)]) == 0
    trace = read_json(path)
    spoil(trace)
    write_json(path, trace)
    for command in (["show", str(path)], ["step", "--trace", str(path)]):
        capsys.readouterr()
        assert main(command) == 2
        err = capsys.readouterr().err
        assert err.startswith(f"minivllm {command[0]}: error: {path}: its recording is broken: ")
        assert err.count("\n") == 1


def test_simulate_records_and_show_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, svg = tmp_path / "t.json", tmp_path / "t.svg"
    source = golden.GOLDEN / "named" / "preempt_swap_v1.workload.json.gz"
    assert main(["simulate", str(source), "--trace", str(path)]) == 0
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert "timeline  steps 0 to" in out
    assert "CPU blocks used" in out
    assert main(["show", str(path), "--step", "3"]) == 0
    assert capsys.readouterr().out.startswith("step 3  ")
    assert main(["show", str(path), "--step", "3", "--svg", str(svg)]) == 0
    assert "mv-frame" not in svg.read_text(encoding="utf-8")
    assert main(["show", str(path), "--svg", str(svg), "--animate"]) == 0
    assert "mv-frame" in svg.read_text(encoding="utf-8")
    assert Stepper.load(path).trace[3].step == 3
    # It is still a trace of the format.
    assert main(["simulate", str(source), "--expect", str(path)]) == 0


def test_show_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source = golden.GOLDEN / "named" / "preempt_swap_v1"
    assert main(["show", f"{source}.trace.json.gz"]) == 2
    assert "minivllm simulate WORKLOAD.json --trace FILE" in capsys.readouterr().err
    path = tmp_path / "t.json"
    main(["simulate", f"{source}.workload.json.gz", "--trace", str(path)])
    assert main(["show", str(path), "--animate"]) == 2
    assert main(["show", str(path), "--step", "999"]) == 2
    assert "step 999 has not been recorded" in capsys.readouterr().err


def test_generate_records_too(tmp_path: Path, tiny_dir: Path,
                              capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "t.json"
    assert main(["generate", "Hello", "The future", "--model", str(tiny_dir / "llama-mha"),
                 "--max-tokens", "3", "--trace", str(path)]) == 0
    capsys.readouterr()
    trace = Stepper.load(path).trace
    assert len(trace) == 3
    assert len(trace[0].scheduled) == 2
    assert main(["show", str(path), "--step", "0"]) == 0
    assert "·The │ ·f │ ut │ u │ re │ ▸" in capsys.readouterr().out
