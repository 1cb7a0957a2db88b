"""What SamplingParams promises, kept by the whole engine on a tiny real model.

Prompt log-probabilities, seeds and streams do not depend on how a request is run.
"""

import json
from functools import cache, partial
from typing import Any

import pytest

from minivllm.engine.arg_utils import EngineArgs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.executor.cpu_executor import CPUExecutor
from minivllm.outputs import RequestOutput
from minivllm.sampling_params import SamplingParams
from tests.sampler.golden import GOLDEN

# Twenty seconds together: the quick tests would take too long.
pytestmark = pytest.mark.slow

CHECKPOINT = GOLDEN.parent / "tiny" / "llama-mha"
PROMPT = [1, 354, 299, 328, 335, 464, 271, 408, 372, 335, 327, 260, 354]
OTHER = [1, 300, 343, 266, 342, 358, 377, 355, 328]


@cache
def loaded_model() -> Any:
    config = EngineArgs(model=str(CHECKPOINT), num_gpu_blocks_override=1).create_engine_config()
    return CPUExecutor(config.model_config, config.cache_config,
                       config.scheduler_config).driver_worker.model_runner.model


class Events:
    """Counts what happens to requests on their way."""

    def __init__(self) -> None:
        self.num_recomputed = self.num_chunks = self.num_cached_blocks = self.num_swapped = 0

    def on_schedule(self, engine: LLMEngine, metadata: list, outputs: Any) -> None:
        self.num_swapped += len(outputs.blocks_to_swap_out)
        for group in metadata:
            data = next(iter(group.seq_data.values()))
            if group.is_prompt:
                self.num_recomputed += data.get_output_len() > 0
                self.num_chunks += not group.do_sample
                self.num_cached_blocks += len(group.computed_block_nums)

    def on_step(self, engine: LLMEngine, outputs: Any, request_outputs: list) -> None:
        pass


def run(requests: list[tuple[list[int], SamplingParams]], backend: str = "numpy",
        one_by_one: bool = False, **settings: Any) -> tuple[list[RequestOutput], Events]:
    """Run requests on an engine of their own and return their last outputs."""
    settings = {"block_size": 4, "num_gpu_blocks_override": 100, **settings}
    config = EngineArgs(model=str(CHECKPOINT), **settings).create_engine_config()
    engine = LLMEngine(config.model_config, config.cache_config, config.scheduler_config,
                       partial(CPUExecutor, model=loaded_model()), attention_backend=backend)
    counts = Events()
    engine.observers.append(counts)
    outputs: dict[str, RequestOutput] = {}
    for i, (prompt, params) in enumerate(requests):
        engine.add_request(f"r{i}", {"prompt_token_ids": prompt}, params)
        while one_by_one and engine.has_unfinished_requests():
            outputs |= {output.request_id: output for output in engine.step()}
    while engine.has_unfinished_requests():
        outputs |= {output.request_id: output for output in engine.step()}
    return [outputs[f"r{i}"] for i in range(len(requests))], counts


class TestPromptLogprobs:
    params = SamplingParams(temperature=0.0, max_tokens=12, prompt_logprobs=2, ignore_eos=True)

    @cache  # noqa: B019
    def alone(self) -> RequestOutput:
        return run([(PROMPT, self.params)])[0][0]

    def check(self, output: RequestOutput) -> None:
        """One entry for each prompt token, the same ids, ranks, texts and values as alone."""
        expected = self.alone().prompt_logprobs
        assert output.prompt_logprobs is not None and expected is not None
        assert len(output.prompt_logprobs) == len(PROMPT)
        assert output.prompt_logprobs[0] is None
        for token_id, got, other in zip(PROMPT[1:], output.prompt_logprobs[1:], expected[1:],
                                        strict=True):
            assert got is not None and other is not None and token_id in got
            assert [(i, entry.rank, entry.decoded_token) for i, entry in got.items()] == \
                [(i, entry.rank, entry.decoded_token) for i, entry in other.items()]
            assert [entry.logprob for entry in got.values()] == \
                pytest.approx([entry.logprob for entry in other.values()], abs=1e-4)

    def test_alone(self) -> None:
        self.check(self.alone())

    def test_golden_values(self) -> None:
        """Each golden prompt of the checkpoint, all in one batch."""
        golden = json.loads((CHECKPOINT / "golden.json").read_text(encoding="utf-8"))["prompts"]
        params = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0)
        outputs, _ = run([(prompt["prompt_token_ids"], params) for prompt in golden],
                         num_gpu_blocks_override=400)
        for prompt, output in zip(golden, outputs, strict=True):
            first, *entries = output.prompt_logprobs or []
            assert first is None
            values = [entry[token_id].logprob for entry, token_id
                      in zip(entries, prompt["prompt_token_ids"][1:], strict=True) if entry]
            assert values == pytest.approx(prompt["prompt_logprobs"], abs=2e-4)

    @pytest.mark.parametrize("budget", [1, 5, 12])
    def test_chunked(self, budget: int) -> None:
        outputs, counts = run([(PROMPT, self.params)], enable_chunked_prefill=True,
                              max_num_batched_tokens=budget, max_num_seqs=1)
        assert counts.num_chunks > 0
        self.check(outputs[0])

    @pytest.mark.parametrize("v2", [False, True])
    def test_second_identical_request_with_prefix_caching(self, v2: bool) -> None:
        outputs, counts = run([(PROMPT, self.params)] * 2, one_by_one=True,
                              enable_prefix_caching=True, use_v2_block_manager=v2)
        assert counts.num_cached_blocks > 0
        for output in outputs:
            self.check(output)

    @pytest.mark.parametrize("chunked", [False, True])
    def test_recomputed_after_a_preemption(self, chunked: bool) -> None:
        """8 blocks of 4 do not hold two requests of 25 tokens: the later one gives way."""
        outputs, counts = run(
            [(OTHER, SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True)),
             (PROMPT, self.params)], num_gpu_blocks_override=8, enable_chunked_prefill=chunked,
            **({"max_num_batched_tokens": 6, "max_num_seqs": 4} if chunked else {}))
        assert counts.num_recomputed > 0
        self.check(outputs[1])


class TestSeeds:
    params = SamplingParams(temperature=1.5, top_p=0.95, seed=5, max_tokens=12, n=2,
                            ignore_eos=True, repetition_penalty=1.2)
    neighbour = SamplingParams(temperature=1.5, max_tokens=12, ignore_eos=True)

    def tokens(self, output: RequestOutput) -> list[list[int]]:
        return [completion.token_ids for completion in output.outputs]

    @cache  # noqa: B019
    def alone(self) -> list[list[int]]:
        return self.tokens(run([(PROMPT, self.params)])[0][0])

    def test_the_seed_decides(self) -> None:
        other = SamplingParams(temperature=1.5, top_p=0.95, seed=6, max_tokens=12, n=2,
                               ignore_eos=True, repetition_penalty=1.2)
        assert self.tokens(run([(PROMPT, other)])[0][0]) != self.alone()
        assert self.alone()[0] != self.alone()[1]

    @pytest.mark.parametrize("backend", ["numpy", "numba"])
    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_in_a_batch(self, backend: str, place: int) -> None:
        requests = [(OTHER, self.neighbour)] * 2
        requests.insert(place, (PROMPT, self.params))
        assert self.tokens(run(requests, backend)[0][place]) == self.alone()

    @pytest.mark.parametrize("mode", ["swap", "recompute"])
    def test_after_a_preemption(self, mode: str) -> None:
        outputs, counts = run([(OTHER, self.neighbour), (PROMPT, self.params)],
                              num_gpu_blocks_override=15, preemption_mode=mode)
        assert (counts.num_recomputed if mode == "recompute" else counts.num_swapped) > 0
        assert self.tokens(outputs[1]) == self.alone()

    def test_chunked(self) -> None:
        outputs, counts = run([(PROMPT, self.params)], enable_chunked_prefill=True,
                              max_num_batched_tokens=5, max_num_seqs=2)
        assert counts.num_chunks > 0
        assert self.tokens(outputs[0]) == self.alone()
