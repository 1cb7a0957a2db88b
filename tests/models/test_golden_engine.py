"""Every golden model through the engine: chunked prefill, prefix caching, both block managers."""

import numpy as np
import pytest

from minivllm import LLM, PoolingParams, SamplingParams
from tests.models.harness import CHECKPOINTS, golden

# A quarter of a minute: the quick tests have `test_golden.py`.
pytestmark = pytest.mark.slow

PARAMS = SamplingParams(temperature=0, max_tokens=32, ignore_eos=True, prompt_logprobs=0)
# Every pair of values of two settings is in some row.
ROWS = [
    # backend, block_size, chunked prefill, prefix caching, v2
    ("numpy", 8, False, False, False),
    ("numba", 16, True, True, False),
    ("numpy", 16, True, False, True),
    *[pytest.param(row, marks=pytest.mark.slow) for row in (
        ("numba", 8, False, True, True),
        ("numba", 8, True, False, False),
        ("numpy", 16, False, True, False))],
]


class Counter:
    """Counts prompt chunks and blocks that a cached prefix saves."""

    def __init__(self):
        self.chunks = self.cached_blocks = 0

    def on_schedule(self, engine, seq_group_metadata_list, scheduler_outputs):
        for metadata in seq_group_metadata_list:
            self.chunks += not metadata.do_sample
            self.cached_blocks += len(metadata.computed_block_nums)

    def on_step(self, engine, scheduler_outputs, request_outputs):
        pass


def check(outputs, prompts):
    for output, prompt in zip(outputs, prompts, strict=True):
        assert list(output.outputs[0].token_ids) == prompt["output_token_ids"]
        ids = prompt["prompt_token_ids"]
        logprobs = [entry[token].logprob
                    for entry, token in zip(output.prompt_logprobs[1:], ids[1:], strict=True)]
        np.testing.assert_allclose(logprobs, prompt["prompt_logprobs"], atol=2e-4)


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_golden_outputs(name, row):
    backend, block_size, chunked, caching, use_v2 = row
    prompts = golden(name)["prompts"]
    llm = LLM(str(CHECKPOINTS[name]), attention_backend=backend, block_size=block_size,
              enable_chunked_prefill=chunked, enable_prefix_caching=caching,
              use_v2_block_manager=use_v2, skip_tokenizer_init=True, max_model_len=160,
              max_num_batched_tokens=24 if chunked else 160, max_num_seqs=8,
              num_gpu_blocks_override=128)
    counter = Counter()
    llm.llm_engine.observers.append(counter)
    for _ in range(2):  # the second time, prefixes are found if they are cached
        outputs = llm.generate(prompt_token_ids=[prompt["prompt_token_ids"] for prompt in prompts],
                               sampling_params=PARAMS, use_tqdm=False)
        check(outputs, prompts)
    assert (counter.chunks > 0) == chunked
    assert (counter.cached_blocks > 0) == caching


@pytest.mark.parametrize("name", ["llama-mha", "qwen2-tied"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_golden_embeddings(name, backend):
    items = golden(name, "pooling.json")["items"]
    llm = LLM(str(CHECKPOINTS[name]), attention_backend=backend)
    for field, params in [("last_normalized", PoolingParams("last")),
                          ("mean_normalized", PoolingParams("mean"))]:
        outputs = llm.encode(prompt_token_ids=[item["prompt_token_ids"] for item in items],
                             pooling_params=params, use_tqdm=False)
        for output, item in zip(outputs, items, strict=True):
            np.testing.assert_allclose(output.outputs.embedding, item[field], atol=1e-5)
