"""Walking through an engine: forwards, back, until something happens."""

import contextlib
import io
from pathlib import Path

import pytest

import minivllm
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.sampling_params import SamplingParams
from minivllm.stepper import Stepper
from minivllm.tracing.source import CLASSIC_TOKEN_IDS
from tests.schedule import golden


@pytest.fixture
def s() -> Stepper:
    """The classic three requests, with the stand-in model."""
    return classic()


def classic(**engine_args: object) -> Stepper:
    defaults = {"block_size": 4, "num_gpu_blocks": 5, "num_cpu_blocks": 4, "max_num_seqs": 8,
                "max_num_batched_tokens": 12, "max_model_len": 12}
    return Stepper([list(prompt) for prompt in CLASSIC_TOKEN_IDS], **defaults | engine_args)


def test_it_is_on_the_front_page():
    assert minivllm.Stepper is Stepper


def test_the_session_of_the_readme(s: Stepper, tmp_path: Path):
    assert str(s.step()) == "step 0  prefill r0 r1 | r2 waits: token budget, needs 3, has 2"
    assert str(s.until("preempt")).split("\n")[-1] == (
        "step 2  decode r0 r1 | r2 preempted by recompute: r0 wants 1 free block, has 0")
    assert "num_gpu_blocks=6" in str(s.why("r2"))
    s[1].blocks().svg(tmp_path / "step1.svg")
    assert (tmp_path / "step1.svg").read_text(encoding="utf-8").startswith("<svg")
    assert str(s.back()) == "step 1  prefill r2 | r0 r1 pause: prompts go first"
    assert "r2: waiting → running" in str(s.diff())


@pytest.mark.parametrize(("num_gpu_blocks", "first_preemption"), [(5, 2), (6, 4), (7, 5)])
def test_fewer_blocks_preempt_earlier(num_gpu_blocks: int, first_preemption: int):
    s = classic(num_gpu_blocks=num_gpu_blocks)
    s.until("preempt")
    assert s.view.step == first_preemption


def test_no_arguments_are_the_classic_three():
    s = Stepper()
    s.step(3)
    assert [view.line().data.split("  ")[1].split(" |")[0] for view in s.trace] == [
        "prefill r0 r1", "prefill r2", "decode r0 r1"]


def test_back_moves_the_view_and_not_the_engine(s: Stepper):
    s.step(4)
    s.back(3)
    assert s.view.step == 0
    assert len(s) == 4
    s.step()
    assert s.view.step == 1
    assert len(s) == 4
    s.back(100)
    assert s.view.step == 0
    s.run_to_now()
    assert s.view.step == 3
    s.step()
    assert len(s) == 5


def test_changes_belong_to_the_present(s: Stepper):
    s.step(2)
    s.back()
    with pytest.raises(ValueError, match=r"at step 0, but the engine is at step 1: s\.run_to_now"):
        s.add([1, 2, 3])
    with pytest.raises(ValueError, match="run_to_now"):
        s.abort("r0")
    s.run_to_now()
    assert s.add([1, 2, 3], max_tokens=2) == "r3"
    s.abort("r0")
    s.step()
    assert s.view.aborted == ["r0"]
    assert "r3" in s.view.request_ids
    assert "r0 has been aborted" in str(s.diff())


def test_until_knows_four_events_and_takes_functions(s: Stepper):
    s.until("finish")
    assert s.view.finished == ["r0"]
    s.until(lambda view: not view.running)
    assert not s.view.running
    with pytest.raises(ValueError, match="preempt, swap, copy, finish"):
        s.until("crash")


def test_at_the_end_it_says_so(s: Stepper):
    assert str(s.run()).split("\n")[-1] == "the end: every request is finished"
    length = len(s)
    assert str(s.step()) == "the end: every request is finished"
    assert str(s.until("swap")) == "no 'swap' happened; the end: every request is finished"
    assert str(s.until(lambda view: False)).startswith("no such step happened; the end")
    assert len(s) == length
    assert s.view.gpu.num_free == 5


def test_requests_can_be_added_after_the_end(s: Stepper):
    s.run()
    length = len(s)
    s.add([7, 8, 9], max_tokens=2)
    s.run()
    assert len(s) == length + 2
    assert s.view.finished == ["r3"]


def test_two_samples_of_one_prompt_diverge():
    s = Stepper([[5, 6, 7, 8, 9]])
    s.abort("r0")
    s.add([5, 6, 7, 8, 9], n=2, temperature=1.0, max_tokens=4)
    s.until("copy")
    (source, destination), = s.view.blocks_to_copy
    assert str(s.diff()).replace("\n        ", " ").split("moved   ")[1] == (
        f"copy on write: block {source} → {destination}; r1.0 is about to write into a block "
        "that r1.1 still needs")


def test_sampling_parameters_go_to_requests():
    s = Stepper([], model="tiny", block_size=4, num_gpu_blocks=8)
    with pytest.raises(ValueError, match=r"there are no requests: s\.add\(prompt\)"):
        s.step()
    assert "There are no requests yet" in str(s)
    assert s.add("Hello, my name is", SamplingParams(n=2, seed=1, max_tokens=3)) == "r0"
    assert s.add("The life is", max_tokens=1) == "r1"
    assert "To come: r0, r1" in " ".join(str(s).split())
    s.step()
    assert [seq.name for seq in s.view.sequences.values()] == ["r0.0", "r0.1", "r1"]
    with pytest.raises(TypeError, match="params, or n and others by name"):
        s.add("The life is", SamplingParams(), n=2)


def test_where_sampling_parameters_do_not_belong_it_says_where():
    with pytest.raises(TypeError, match=r"s\.add\(prompt, n=2, temperature=1\.0\)"):
        Stepper([[1, 2, 3]], SamplingParams(n=2))
    with pytest.raises(TypeError, match=r"n is a sampling parameter.*s\.add\(prompt, n=2\)"):
        Stepper(["Hello"], n=2)
    with pytest.raises(ValueError, match=r"no words: add token ids \(0 to 96\).*model='tiny'"):
        Stepper([]).add("Hello")


def test_two_requests_can_be_added_before_the_first_step(s: Stepper):
    assert [s.add([1, 2, 3]), s.add([4, 5, 6])] == ["r3", "r4"]
    s.run()
    assert s.view.gpu.num_free == 5


def test_steps_are_found_by_number(s: Stepper):
    s.step(3)
    assert s[2].step == 2
    assert s[-1] is s[2]
    with pytest.raises(IndexError, match=r"step 9 has not been recorded.*s\.go\(9\)"):
        s[9]
    s.go(9)
    assert s.view.step == s[9].step == 9
    s.go(1)
    assert s.view.step == 1


def test_before_the_first_step_it_says_what_is_to_come(s: Stepper):
    assert "To come: r0 (5 tokens, step 0), r1 (5 tokens, step 0)" in " ".join(str(s).split())
    with pytest.raises(ValueError, match=r"s\.step\(\) makes step 0"):
        s.blocks()
    with pytest.raises(ValueError, match=r"s\.step\(\) makes step 0"):
        s.back()


def test_a_bare_name_shows_the_picture_and_the_methods(s: Stepper):
    s.step()
    text = repr(s)
    assert text.startswith("step 0  prefill r0 r1")
    assert 'until("preempt"|"swap"|"copy"|"finish")' in text
    assert s._repr_mimebundle_()["text/html"].startswith("<svg")


def test_saved_and_loaded(s: Stepper, tmp_path: Path):
    s.run()
    s.save(tmp_path / "t.json")
    again = Stepper.load(tmp_path / "t.json")
    assert again.view.step == 0
    assert str(again.step(2)) == str(s.trace[1].line()) + "\n" + str(s.trace[2].line())
    assert str(again.run()).endswith("the record ends here")
    assert str(again.timeline()) == str(s.timeline())
    with pytest.raises(ValueError, match="there is no engine"):
        again.add([1])


def test_workloads_from_a_dict_and_a_file():
    workload = golden.workload("named", "preempt_swap_v1")
    s = Stepper(workload)
    s.until("swap")
    assert s.view.blocks_to_swap_out
    path = golden.GOLDEN / "named" / "preempt_swap_v1.workload.json.gz"
    again = Stepper(path)
    again.until("swap")
    assert again.view.blocks_to_swap_out == s.view.blocks_to_swap_out


def test_limits_of_a_workload_can_be_changed():
    workload = golden.workload("named", "preempt_swap_v1")
    s = Stepper(workload, num_gpu_blocks=1000, num_cpu_blocks_override=7)
    s.run()
    assert s.trace.limits.num_gpu_blocks == 1000
    assert s.trace.limits.num_cpu_blocks == 7
    assert not any(view.preempted for view in s.trace)
    with pytest.raises(TypeError, match="unknown engine argument 'blocks'"):
        Stepper(workload, blocks=3)


def test_a_block_manager_of_ones_own():
    class Stingy(BlockSpaceManagerV1):
        """Lets a group go on only if two blocks are free."""

        def can_append_slots(self, seq_group: object, num_lookahead_slots: int = 0) -> bool:
            return self.get_num_free_gpu_blocks() >= 2

    stingy = classic(num_gpu_blocks=6, block_manager=Stingy)
    stingy.until("preempt")
    assert isinstance(stingy.engine.scheduler.block_manager, Stingy)
    assert stingy.view.step == 2
    assert classic(num_gpu_blocks=6).until("preempt").data["lines"][-1].startswith("step 4")


def test_a_real_model(tiny_dir: Path):
    s = Stepper(["Hello, my name is", "The future of AI is"], model=str(tiny_dir / "llama-mha"),
                block_size=4, num_gpu_blocks=64)
    s.run()
    assert s.view.finished
    texts = [text for seq in s[0].sequences.values() for text in seq.texts]
    assert "Hello" in "".join(texts)
    assert not any(text.isdigit() for text in texts[:4])


def test_the_engines_warnings_are_kept_back(s: Stepper, capfd: pytest.CaptureFixture[str]):
    """The pictures say it: a preemption would otherwise write into the middle of them."""
    s.until("preempt")
    assert "preempted" not in capfd.readouterr().err


def test_pictures_print_plainly_when_piped(s: Stepper):
    out = io.StringIO()
    s.step()
    with contextlib.redirect_stdout(out):
        print(s.picture())
    assert "\x1b" not in out.getvalue()


def test_arrivals_in_later_steps():
    workload = golden.workload("named", "prefix_hit_v1")
    s = Stepper(workload)
    s.run()
    arrivals = {request["request_id"]: request["arrival_step"] for request in workload["requests"]}
    for request_id, step in arrivals.items():
        first = next(view.step for view in s.trace if request_id in view.request_ids)
        assert first == step
    assert s.add([3, 4, 5], **{"max_tokens": 2}) not in arrivals
