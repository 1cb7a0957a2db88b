"""Whole beam searches on real (tiny) models, through the engine and its paged blocks."""

from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import pytest

from minivllm.engine.arg_utils import EngineArgs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.executor.cpu_executor import CPUExecutor
from minivllm.outputs import RequestOutput
from minivllm.sampling_params import SamplingParams
from tests.sampler.golden import GOLDEN, named_cases

CASES = named_cases("beam_search")
BLOCK_SIZE = 2


@cache
def loaded_model(checkpoint: str) -> Any:
    return make_engine(checkpoint, None, 256, 8, model=None).model_executor.driver_worker \
        .model_runner.model


def make_engine(checkpoint: str, eos_token_id: int | None, max_model_len: int, num_blocks: int,
                model: Any) -> LLMEngine:
    config = EngineArgs(model=str(GOLDEN.parent / checkpoint), skip_tokenizer_init=True,
                        max_model_len=max_model_len, block_size=BLOCK_SIZE,
                        num_gpu_blocks_override=num_blocks, num_cpu_blocks_override=400,
                        ).create_engine_config()
    config.model_config.hf_config.eos_token_id = eos_token_id
    config.model_config.generation_config = {}
    return LLMEngine(config.model_config, config.cache_config, config.scheduler_config,
                     partial(CPUExecutor, model=model), attention_backend="numpy")


@dataclass
class Search:
    """What was seen of a beam search, step by step."""

    engine: LLMEngine
    case: dict[str, Any]
    steps: list[list[tuple[list[int], float, bool]]] = field(default_factory=list)
    blocks_in_use: list[int] = field(default_factory=list)
    num_swapped_out: int = 0
    num_swapped_in: int = 0
    output: RequestOutput | None = None

    def run(self) -> None:
        """Add the search to the engine and step until nothing is left to do."""
        self.engine.observers.append(self)
        params = SamplingParams(use_beam_search=True, temperature=0.0, **self.case["params"])
        self.engine.add_request("beams", {"prompt_token_ids": self.case["prompt_token_ids"]},
                                params)
        self.group = self.engine.scheduler.waiting[-1]
        while self.engine.has_unfinished_requests():
            for output in self.engine.step():
                if output.request_id == "beams":
                    self.output = output

    def on_schedule(self, engine: LLMEngine, metadata: list, outputs: Any) -> None:
        self.blocks_in_use.append(self.engine.cache_config.num_gpu_blocks
                                  - engine.scheduler.block_manager.get_num_free_gpu_blocks())
        self.runs = any(group.request_id == "beams" for group in metadata)
        if len(self.group.get_seqs()) > 1:
            self.num_swapped_out += len(outputs.blocks_to_swap_out)
            self.num_swapped_in += len(outputs.blocks_to_swap_in)

    def on_step(self, engine: LLMEngine, outputs: Any, request_outputs: list) -> None:
        if self.runs:
            self.steps.append([(list(seq.get_output_token_ids()), seq.get_cumulative_logprob(),
                                seq.is_finished()) for seq in self.group.get_seqs()])

    def check(self) -> None:
        """Compare all beams after each step, and the outputs."""
        assert len(self.steps) == len(self.case["steps"])
        for got, expected in zip(self.steps, self.case["steps"], strict=True):
            check_beams([(tuple(ids), finished, value) for ids, value, finished in got],
                        [(tuple(ids), finished, value) for ids, value, finished in expected])
        assert self.output is not None and self.output.finished
        for got, expected in zip(self.output.outputs, self.case["outputs"], strict=True):
            assert (got.token_ids, got.finish_reason, got.stop_reason) == \
                (expected["token_ids"], expected["finish_reason"], expected["stop_reason"])
            assert got.cumulative_logprob == pytest.approx(expected["cumulative_logprob"],
                                                           abs=2e-4)


def check_beams(got: list[tuple], expected: list[tuple]) -> None:
    """Two lists of (tokens, finished, cumulative log-probability) hold the same beams."""
    assert sorted(beam[:2] for beam in got) == sorted(beam[:2] for beam in expected)
    for one, other in zip(sorted(got), sorted(expected), strict=True):
        assert one[2] == pytest.approx(other[2], abs=2e-4)


@cache
def search_alone(name: str) -> Search:
    case = CASES[name]
    engine = make_engine(case["checkpoint"], case["eos_token_id"], case["max_model_len"], 400,
                         loaded_model(case["checkpoint"]))
    search = Search(engine, case)
    search.run()
    return search


def test_there_are_all_cases() -> None:
    assert len(CASES) == 50


@pytest.mark.parametrize("name", CASES)
def test_search(name: str) -> None:
    search_alone(name).check()
    assert search_alone(name).num_swapped_out == 0


@pytest.mark.parametrize("name", CASES)
def test_search_whose_beams_are_swapped(name: str) -> None:
    """An earlier request takes what the pool holds beyond the first beams, until it ends."""
    case = CASES[name]
    peak = max(search_alone(name).blocks_in_use)
    beam_width = case["params"]["best_of"]
    num_blocks = peak + 2 * beam_width + 2
    engine = make_engine(case["checkpoint"], case["eos_token_id"], case["max_model_len"],
                         num_blocks, loaded_model(case["checkpoint"]))
    prompt_blocks = -(-len(case["prompt_token_ids"]) // BLOCK_SIZE)
    neighbour = [7] * (BLOCK_SIZE * (num_blocks - prompt_blocks - beam_width))
    engine.add_request("neighbour", {"prompt_token_ids": neighbour},
                       SamplingParams(temperature=0.0, ignore_eos=True, max_tokens=4))
    search = Search(engine, case)
    search.run()
    assert search.num_swapped_out > 0 and search.num_swapped_in > 0
    search.check()
    assert engine.scheduler.block_manager.get_num_free_gpu_blocks() == num_blocks
    assert engine.scheduler.block_manager.get_num_free_cpu_blocks() == 400
