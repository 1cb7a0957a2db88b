"""Exercises: solutions pass, untouched stubs say what is missing, wrong answers are explained."""

import inspect
import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from minivllm.cli import main
from minivllm.exercises import check, runner
from minivllm.exercises.recording_array import RecordingArray
from tests.exercises.wrong_answers import WRONG

EXERCISES = runner.exercises()
NUMBERS = [exercise.number for exercise in EXERCISES]
MISSING = {"01": "allocate is missing", "02": "paged_attention is missing",
           "03": "can_append_slots is missing"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.mark.parametrize("exercise", EXERCISES, ids=NUMBERS)
def test_the_solution_passes(exercise):
    answer = runner.load_class(exercise, exercise.folder / runner.SOLUTION)
    verdict = runner.grade(exercise, answer)
    assert verdict.passed, verdict.message
    assert "ours" in verdict.message


@pytest.mark.parametrize("exercise", EXERCISES, ids=NUMBERS)
def test_the_untouched_stub_fails_with_its_message(exercise):
    verdict = runner.grade(exercise, runner.load_class(exercise, exercise.folder / runner.STUB))
    assert not verdict.passed
    assert verdict.message == f"{MISSING[exercise.number]}: this is what you are to write."


@pytest.mark.parametrize(("number", "answer", "message"), WRONG,
                         ids=[f"{number}-{i}" for i, (number, *_) in enumerate(WRONG)])
def test_a_wrong_answer_gets_a_message_that_points_at_the_mistake(number, answer, message):
    verdict = runner.grade(runner.find(number), answer)
    assert not verdict.passed
    assert message in verdict.message


def test_each_exercise_has_three_wrong_answers_or_more():
    assert all(sum(number == n for n, *_ in WRONG) >= 3 for number in NUMBERS)


@pytest.mark.parametrize("exercise", EXERCISES, ids=NUMBERS)
def test_stub_and_solution_have_the_same_shape(exercise):
    """The same classes, the same methods, the same arguments."""
    def shape(name):
        source = (exercise.folder / name).read_text(encoding="utf-8")
        return re.findall(r"^ *(?:class|def) .*?:$", source, flags=re.MULTILINE | re.DOTALL)

    assert shape(runner.STUB) == shape(runner.SOLUTION)


@pytest.mark.parametrize("exercise", EXERCISES, ids=NUMBERS)
def test_hints_go_from_a_nudge_to_more(exercise):
    assert len(exercise.hints) >= 3
    assert (Path(__file__).parents[2] / exercise.chapter).is_file()


def test_a_learner_goes_through_exercise_03(here, capsys):
    """Start, check, hint, solution; then paste the solution, check again."""
    assert main(["exercises", "list"]) == 0
    assert [line[:2] for line in capsys.readouterr().out.splitlines()] == NUMBERS

    assert main(["exercises", "start", "3"]) == 0
    assert main(["exercises", "start", "03"]) == 2
    assert "exists already" in capsys.readouterr().err

    assert main(["exercises", "check", "03"]) == 1
    assert "exercise 03: not yet\ncan_append_slots is missing" in capsys.readouterr().out

    assert main(["exercises", "hint", "03"]) == 0
    assert "(More: minivllm exercises hint 03 2)" in capsys.readouterr().out
    assert main(["exercises", "hint", "03", "9"]) == 2
    assert "has hints 1 to 3, not 9" in capsys.readouterr().err

    assert main(["exercises", "solution", "03"]) == 1
    assert "--force" in capsys.readouterr().out
    assert main(["exercises", "solution", "03", "--force"]) == 0
    answer = capsys.readouterr().out

    (here / "03_can_append_slots" / "exercise.py").write_text(answer, encoding="utf-8")
    assert main(["exercises", "check", "03"]) == 0
    assert main(["exercises", "solution", "03"]) == 0
    assert capsys.readouterr().out.endswith(answer)


def test_what_a_learner_may_get_wrong_with_files(here, capsys):
    assert main(["exercises", "check", "03"]) == 2
    assert "minivllm exercises start 03 makes it" in capsys.readouterr().err
    assert main(["exercises", "check", "77"]) == 2
    assert "there are: 01, 02, 03" in capsys.readouterr().err
    (here / "exercise.py").write_text("def (", encoding="utf-8")
    assert main(["exercises", "check", "03", "."]) == 2
    assert "line 1 of exercise.py" in capsys.readouterr().err
    (here / "exercise.py").write_text("x = 1", encoding="utf-8")
    assert main(["exercises", "check", "03", "."]) == 2
    assert "has no class MyManager" in capsys.readouterr().err


def test_check_in_a_notebook_prints(capsys):
    number, answer, _ = next(entry for entry in WRONG if entry[0] == "03")
    check(number, answer)
    printed = capsys.readouterr().out
    assert printed.startswith("exercise 03: not yet\nstep 2, r2: expected preempted")
    assert "GPU block pool" in printed


def test_the_picture_of_exercise_02_shows_slots_by_glyph():
    wrong = next(answer for number, answer, message in WRONG if "slot 6" in message)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(runner.grade(runner.find("02"), wrong).picture)
    picture = console.export_text()
    assert re.search(r"block 1 +0 +0 +! +!", picture)
    assert re.search(r"block 3 +0 +0 +0 +0", picture)


class TestRecordingArray:
    """Slicing reads nothing; calculating reads what is left of the array."""

    def cache(self):
        return RecordingArray.of_cache(np.arange(48, dtype=np.float32).reshape(2, 3, 1, 4, 2))

    def test_slicing_reads_nothing(self):
        cache = self.cache()
        part = cache[0][1].reshape(4, 2).T
        assert cache.touched == set() and part.shape == (2, 4)

    def test_arithmetic_reads_the_part(self):
        cache = self.cache()
        result = cache[0, 1, 0, 2] * 2 + np.ones(2)
        assert cache.touched == {6} and result.tolist() == [25.0, 27.0]

    def test_functions_and_matmul_read_the_part(self):
        cache = self.cache()
        np.einsum("pd,d->p", cache[0, 2, 0], np.ones(2))
        assert cache.touched == {8, 9, 10, 11}
        cache[1, 0, 0, :2] @ np.ones(2)
        assert cache.touched == {0, 1, 8, 9, 10, 11}
        np.concatenate([cache[0, 1, 0, :1], np.ones((1, 2))])
        assert 4 in cache.touched

    def test_a_gather_by_table_reads_those_blocks(self):
        cache = self.cache()
        keys = cache[0, np.array([2, 0])].swapaxes(0, 1).reshape(8, 2)
        assert cache.touched == set()
        assert np.asarray(keys).shape == (8, 2)
        assert cache.touched == {0, 1, 2, 3, 8, 9, 10, 11}

    def test_numbers_are_read_one_by_one(self):
        cache = self.cache()
        assert cache[0, 1, 0, 3, 0] == 14.0 and cache.touched == {7}

    def test_methods_that_calculate_read(self):
        cache = self.cache()
        assert cache[0, 0, 0, 0].sum() == 1.0 and cache.touched == {0}

    def test_writing_is_refused(self):
        with pytest.raises(ValueError, match="only reads"):
            self.cache()[0, 0] = 1


def test_stubs_are_subclasses_of_the_real_classes():
    for exercise in EXERCISES:
        stub = runner.load_class(exercise, exercise.folder / runner.STUB)
        assert stub.__mro__[1].__module__.startswith("minivllm.")
        assert inspect.getdoc(stub)


def test_a_folder_of_the_learners_choice_is_in_the_next_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["exercises", "start", "1", "mine"]) == 0
    assert capsys.readouterr().out.endswith("minivllm exercises check 01 mine\n")
    assert main(["exercises", "check", "1"]) == 2
    assert "name its folder: minivllm exercises check 01 DIR" in capsys.readouterr().err
    assert main(["exercises", "check", "1", "mine"]) == 1
