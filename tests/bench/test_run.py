"""``minivllm bench run``: what it counts and adds up, on the built-in model."""

import json
from pathlib import Path
from random import Random

import pytest

from minivllm.attention.layer import Attention
from minivllm.bench.cases import CASES, TimedRequest
from minivllm.bench.machine import Limits, describe_machine, measure_limits
from minivllm.bench.memory import MemoryWatch
from minivllm.bench.run import run_case
from minivllm.bench.serving import TokenTimes, serve
from minivllm.bench.stages import StageClock, watch_stages
from minivllm.cli.bench import main
from minivllm.engine.arg_utils import EngineArgs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.model_executor.layers.activation import SiluAndMul, gelu_new

LIMITS = Limits(read_bandwidth=1e9, sgemm=1e9)
STAGES = {"scheduler", "inputs", "linear", "attention", "norm, rope, act", "logits", "sampler",
          "outputs", "detokenizer", "rest"}


def make_engine(model: str = "tiny", **settings: object) -> LLMEngine:
    return LLMEngine.from_engine_args(
        EngineArgs(model, num_gpu_blocks_override=100, num_cpu_blocks_override=0,
                   disable_log_stats=True, **settings))


class TestServe:
    def test_each_token_has_its_time(self) -> None:
        seconds, times = serve(make_engine(), [TimedRequest([5, 6, 7], 4), TimedRequest([8], 2)])
        assert [len(request.tokens) for request in times] == [4, 2]
        assert all(gap > 0 for request in times for gap in request.gaps)
        assert sum(times[0].gaps) + times[0].to_first_token <= seconds

    def test_a_request_arrives_at_its_step(self) -> None:
        _, times = serve(make_engine(), [TimedRequest([5], 5), TimedRequest([6], 1, 3)])
        # Step 3 is the second request's prompt; the first goes on after it.
        assert times[0].tokens[2] < times[1].arrival < times[1].tokens[0] < times[0].tokens[3]

    def test_an_engine_with_nothing_to_do_waits_for_the_next_arrival(self) -> None:
        _, times = serve(make_engine(), [TimedRequest([5], 1), TimedRequest([6], 1, 4)])
        assert [len(request.tokens) for request in times] == [1, 1]

    def test_gaps(self) -> None:
        times = TokenTimes(arrival=1.0, tokens=[1.5, 1.75, 2.75])
        assert (times.to_first_token, times.gaps) == (0.5, [0.25, 1.0])


class TestStages:
    def test_an_inner_stage_is_not_counted_for_the_outer_one(
            self, monkeypatch: pytest.MonkeyPatch) -> None:
        seconds = iter([0, 0, 1, 3, 7])  # start, step begins, inner begins, inner ends, step ends
        monkeypatch.setattr("minivllm.bench.stages.time.perf_counter", lambda: next(seconds))
        clock = StageClock(LIMITS)
        inner = clock.timed("inner", lambda: None, work=lambda: (2e9, 1e9))
        clock.step(inner, is_prefill=lambda: False)()
        assert clock.decode.num_steps == 1
        assert clock.decode.seconds == {"inner": 2, "rest": 1 + 4}
        assert clock.decode.least_seconds == {"inner": 2.0}
        assert clock.prefill.num_steps == 0

    def test_all_stages_of_both_kinds_of_steps(self) -> None:
        engine = make_engine()
        with watch_stages(engine, LIMITS) as clock:
            serve(engine, [TimedRequest([5, 6, 7], 4)])
        assert (clock.prefill.num_steps, clock.decode.num_steps) == (1, 3)
        for times in (clock.prefill, clock.decode):
            assert set(times.seconds) == STAGES
            assert all(seconds > 0 for seconds in times.seconds.values())

    def test_the_least_work(self) -> None:
        engine = make_engine()
        model = engine.model_executor.driver_worker.model_runner.model  # type: ignore[attr-defined]
        with watch_stages(engine, LIMITS) as clock:
            serve(engine, [TimedRequest([5, 6, 7], 2)])
        # One token: each weight is read once, 4 bytes for 2 operations.
        layers = [module for _, module in model.named_modules() if hasattr(module, "output_sizes")]
        weights = sum(layer.weight.nbytes for layer in layers)
        least = clock.decode.least_seconds
        assert least["linear"] == pytest.approx(weights / LIMITS.read_bandwidth)
        assert least["logits"] == pytest.approx(model.lm_head.weight.nbytes
                                                / LIMITS.read_bandwidth)
        # Three tokens: as many operations as pairs of a token and one it sees, 1 + 2 + 3.
        attention = model.model.layers[0].self_attn.attn
        operations = 4 * 6 * attention.num_heads * attention.head_size * len(model.model.layers)
        assert clock.prefill.least_seconds["attention"] == pytest.approx(
            operations / LIMITS.sgemm)

    def test_the_engine_is_as_before(self) -> None:
        engine = make_engine()
        attend, attributes = Attention.__call__, dict(vars(engine))
        with watch_stages(engine, LIMITS):
            assert Attention.__call__ is not attend
        assert Attention.__call__ is attend
        assert vars(engine) == attributes
        assert "schedule" not in vars(engine.scheduler)

    def test_any_gate_beside_those_of_ours_is_timed(self) -> None:
        class Gate(SiluAndMul):
            __module__ = SiluAndMul.__module__

        engine = make_engine()
        model = engine.model_executor.driver_worker.model_runner.model  # type: ignore[attr-defined]
        model.model.layers[0].mlp.act_fn = Gate()
        with watch_stages(engine, LIMITS):
            assert "__call__" in vars(Gate)
        assert "__call__" not in vars(Gate)

    def test_an_activation_that_is_a_function_is_timed(self, tiny_dir: Path) -> None:
        engine = make_engine(str(tiny_dir / "gpt2"))
        model = engine.model_executor.driver_worker.model_runner.model  # type: ignore[attr-defined]
        mlps = [block.mlp for block in model.transformer.h]
        with watch_stages(engine, LIMITS):
            assert all(mlp.act is not gelu_new for mlp in mlps)
        assert all(mlp.act is gelu_new for mlp in mlps)


class TestMemory:
    def watch(self, requests: list[TimedRequest], **settings: object) -> MemoryWatch:
        engine, memory = make_engine(**settings), MemoryWatch()
        engine.observers.append(memory)
        serve(engine, requests)
        return memory

    def test_slots(self) -> None:
        memory = self.watch([TimedRequest([5, 6, 7], 20)], max_model_len=64)
        assert memory.tokens == list(range(3, 23))
        assert memory.paged_slots == [16] * 14 + [32] * 6
        assert set(memory.known_length_slots) == {23}
        assert set(memory.longest_slots) == {64}
        assert memory.mean_slots()["tokens"] == 12.5

    def test_prompt_tokens_found_in_the_cache(self) -> None:
        prompt = list(range(60))
        memory = self.watch([TimedRequest(prompt, 4), TimedRequest(prompt, 4, 2)],
                            enable_prefix_caching=True)
        assert memory.cached_tokens == {"0": 0, "1": 32}
        assert memory.hit_rate == 32 / 120


class TestCases:
    @pytest.mark.parametrize("name", CASES)
    def test_a_case_makes_other_prompts_of_the_same_shape_in_each_run(self, name: str) -> None:
        first, second = (CASES[name].make_requests(Random(seed), 1000) for seed in (1, 2))
        assert [r.num_tokens for r in first] == [r.num_tokens for r in second]
        assert [r.prompt_token_ids for r in first] != [r.prompt_token_ids for r in second]
        assert CASES[name].make_requests(Random(1), 1000) == first

    def test_tokens_that_count(self) -> None:
        for name, num_tokens in (("latency", 64), ("batch8", 512), ("throughput", 4096),
                                 ("prefill", 1024)):
            case = CASES[name]
            assert case.tokens_that_count(case.make_requests(Random(0), 1000)) == num_tokens

    @pytest.mark.slow
    def test_shared_prefix_hits_the_cache(self) -> None:
        report = run_case("shared-prefix", "tiny", runs=1)
        without, with_caching = report.variants.values()
        assert without.hit_rate == 0
        # All but the first request: 512 of 544 tokens are in common.
        assert with_caching.hit_rate == pytest.approx(15 / 16 * 512 / 544)
        assert with_caching.mean_slots["paged"] < without.mean_slots["paged"] / 2

    @pytest.mark.slow
    def test_mixed_splits_the_long_prompts(self) -> None:
        report = run_case("mixed", "tiny", runs=1)
        whole, chunked = report.variants.values()
        assert whole.prefill.num_steps == 3
        assert chunked.prefill.num_steps > 2 * 960 / 128


def test_limits_and_machine() -> None:
    limits = measure_limits(repeat=1)
    assert limits.read_bandwidth > 1e8
    assert limits.sgemm > 1e8
    assert limits.seconds(limits.read_bandwidth * 2, limits.sgemm) == pytest.approx(2)
    assert describe_machine().num_cores >= 1


def test_report_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "latency.json"
    assert main(["run", "--case", "latency", "--model", "tiny", "--runs", "2",
                 "--json", str(file)]) == 0
    output = capsys.readouterr().out
    assert "1 x (32 in, 64 out)" in output
    assert "63 steps with only decodes" in output
    report = json.loads(file.read_text(encoding="utf-8"))
    assert report["format"] == "minivllm-bench/1"
    variant = report["variants"]["default"]
    assert len(variant["seconds"]) == 2
    assert set(variant["decode"]["seconds"]) == STAGES


@pytest.mark.parametrize(("arguments", "problem"), [
    (("warp", "tiny", 1), "no case 'warp'"),
    (("latency", "tiny", 0), "at least 1, got 0"),
])
def test_bad_arguments(arguments: tuple[str, str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        run_case(*arguments)
