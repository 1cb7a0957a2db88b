"""A real model, end to end, against Hugging Face transformers.

Twelve prompts, whatever the company, the attention backend, the block size and the pressure on
the block pools: the same tokens, the same text, the same log-probabilities.
"""

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from minivllm import LLM, SamplingParams
from minivllm.outputs import RequestOutput
from minivllm.utils import cdiv

GOLDEN = [json.loads(path.read_text(encoding="utf-8"))
          for path in sorted((Path(__file__).parents[1] / "golden" / "smollm2").glob("*.json"))]
LOGPROB_TOLERANCE = 1e-3

# How the prompts are run: one by one, as one batch, or as one batch in a pool that holds all
# prompts but not all outputs.
SITUATIONS = ["alone", "together", "recompute", "swap"]
BACKENDS = ["numpy", "numba"]
BLOCK_SIZES = [8, 16, 32]
PRODUCT = list(itertools.product(SITUATIONS, BACKENDS, BLOCK_SIZES))
# Each pair of values occurs together at least once.
PAIRWISE = [
    ("alone", "numba", 16), ("alone", "numpy", 8), ("alone", "numba", 32),
    ("together", "numba", 8), ("together", "numpy", 16), ("together", "numpy", 32),
    ("recompute", "numba", 8), ("recompute", "numpy", 16), ("recompute", "numba", 32),
    ("swap", "numpy", 8), ("swap", "numba", 16), ("swap", "numpy", 32),
]


class Mechanisms:
    """Counts what happens in the scheduler."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def on_schedule(self, engine, seq_group_metadata_list, scheduler_outputs) -> None:
        self.count["preempted"] += scheduler_outputs.preempted
        self.count["swapped_out"] += bool(scheduler_outputs.blocks_to_swap_out)
        self.count["swapped_in"] += bool(scheduler_outputs.blocks_to_swap_in)

    def on_step(self, engine, scheduler_outputs, request_outputs) -> None:
        pass


def sampling_params(case: dict) -> SamplingParams:
    return SamplingParams(temperature=0, max_tokens=case["max_tokens"], logprobs=5,
                          ignore_eos=case["ignore_eos"])


def make_llm(model: Path, situation: str, backend: str, block_size: int) -> LLM:
    pools = {}
    if situation in ("recompute", "swap"):
        num_prompt_blocks = sum(cdiv(case["num_prompt_tokens"], block_size) for case in GOLDEN)
        pools = {"num_gpu_blocks_override": num_prompt_blocks + 2,
                 "num_cpu_blocks_override": num_prompt_blocks if situation == "swap" else 0,
                 "preemption_mode": situation}
    return LLM(str(model), attention_backend=backend, block_size=block_size, **pools)


def run(llm: LLM, situation: str) -> list[RequestOutput]:
    batches = [[case] for case in GOLDEN] if situation == "alone" else [GOLDEN]
    outputs = []
    for cases in batches:
        outputs += llm.generate([case["prompt"] for case in cases],
                                [sampling_params(case) for case in cases], use_tqdm=False)
    return outputs


def check(case: dict, output: RequestOutput) -> None:
    assert output.prompt_token_ids == case["prompt_token_ids"], case["name"]
    [completion] = output.outputs
    # From a near tie on, either of the two best tokens is right, and the rest depends on it.
    decided = case["near_tie_steps"][0] if case["near_tie_steps"] else None
    assert completion.token_ids[:decided] == case["output_token_ids"][:decided], case["name"]
    if decided is None:
        assert completion.text == case["output_text"], case["name"]
        assert completion.finish_reason == case["finish_reason"], case["name"]
    else:
        best_two = [token_id for token_id, _ in case["steps"][decided]["top5"][:2]]
        assert completion.token_ids[decided] in best_two, case["name"]
    for step, logprobs in zip(case["steps"][:decided], completion.logprobs, strict=False):
        for token_id, logprob in step["top5"]:
            # A token whose rank is a near tie may have fallen out of the best five.
            if token_id in logprobs:
                assert logprobs[token_id].logprob == pytest.approx(logprob, abs=LOGPROB_TOLERANCE)
        assert logprobs[step["token_id"]].logprob == pytest.approx(step["logprob"],
                                                                   abs=LOGPROB_TOLERANCE)


def check_all(model: Path, situation: str, backend: str, block_size: int) -> None:
    llm = make_llm(model, situation, backend, block_size)
    mechanisms = Mechanisms()
    llm.llm_engine.observers.append(mechanisms)
    outputs = run(llm, situation)
    for case, output in zip(GOLDEN, outputs, strict=True):
        check(case, output)
    count = mechanisms.count
    assert (count["preempted"] > 0) == (situation in ("recompute", "swap")), count
    assert (count["swapped_out"] > 0) == (situation == "swap"), count
    assert (count["swapped_in"] > 0) == (situation == "swap"), count
    manager = llm.llm_engine.scheduler.block_manager
    assert manager.get_num_free_gpu_blocks() == llm.llm_engine.cache_config.num_gpu_blocks
    assert manager.get_num_free_cpu_blocks() == llm.llm_engine.cache_config.num_cpu_blocks


def test_the_pairs_are_complete() -> None:
    for i, j in itertools.combinations(range(3), 2):
        assert ({(row[i], row[j]) for row in PAIRWISE} == {(row[i], row[j]) for row in PRODUCT})


@pytest.mark.slow
@pytest.mark.parametrize("situation, backend, block_size", PAIRWISE)
def test_smollm2_agrees_with_transformers(smollm2_dir, situation, backend, block_size) -> None:
    check_all(smollm2_dir, situation, backend, block_size)


@pytest.mark.slow
@pytest.mark.slow_full
@pytest.mark.parametrize("situation, backend, block_size", PRODUCT)
def test_smollm2_agrees_in_every_combination(smollm2_dir, situation, backend, block_size) -> None:
    check_all(smollm2_dir, situation, backend, block_size)


@pytest.mark.slow
def test_prompt_logprobs_of_smollm2(smollm2_dir) -> None:
    llm = make_llm(smollm2_dir, "together", "numba", 16)
    params = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=5)
    outputs = llm.generate([case["prompt"] for case in GOLDEN], params, use_tqdm=False)
    for case, output in zip(GOLDEN, outputs, strict=True):
        assert len(output.prompt_logprobs) == case["num_prompt_tokens"]
        assert output.prompt_logprobs[0] is None
        for expected in case["prompt_logprobs"]:
            entry = output.prompt_logprobs[expected["position"]][expected["token_id"]]
            assert entry.logprob == pytest.approx(expected["logprob"], abs=LOGPROB_TOLERANCE)
            assert entry.rank == expected["rank"]
