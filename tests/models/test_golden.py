"""Every golden model: logits, prompt log-probabilities and greedy tokens.

The sequences lie in shuffled blocks of a cache that is NaN wherever nothing was stored.
"""

import numpy as np
import pytest

from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from tests.models.harness import CHECKPOINTS, Driver, golden, load_tiny

NUMPY, NUMBA = NumpyAttentionBackend, NumbaAttentionBackend
NUM_OUTPUTS = 32


@pytest.fixture(scope="module", params=CHECKPOINTS)
def case(request):
    return load_tiny(request.param), golden(request.param)["prompts"]


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def start(driver, prompts):
    """Give each prompt blocks for itself and its outputs."""
    return [driver.add(len(prompt["prompt_token_ids"]) + NUM_OUTPUTS) for prompt in prompts]


def check_prompt(model, seq, prompt):
    ids = prompt["prompt_token_ids"]
    logits = seq.logits(model)
    np.testing.assert_allclose(logits[-1], prompt["last_logits"], atol=2e-4)
    logprobs = log_softmax(logits)[np.arange(len(ids) - 1), ids[1:]]
    np.testing.assert_allclose(logprobs, prompt["prompt_logprobs"], atol=2e-4)


def check_outputs(model, driver, seqs, prompts):
    """Decode all sequences together, greedily."""
    outputs = [[] for _ in seqs]
    for _ in range(NUM_OUTPUTS):
        for seq, output in zip(seqs, outputs, strict=True):
            output.append(int(seq.last_logits(model).argmax()))
        driver.step([(seq, output[-1:]) for seq, output in zip(seqs, outputs, strict=True)])
    assert outputs == [prompt["output_token_ids"] for prompt in prompts]


@pytest.mark.parametrize(("backend", "block_size"), [(NUMPY, 16), (NUMBA, 8)])
def test_one_by_one(case, backend, block_size):
    model, prompts = case
    for prompt in prompts:
        driver = Driver(model, backend, block_size)
        [seq] = start(driver, [prompt])
        driver.step([(seq, prompt["prompt_token_ids"])])
        check_prompt(model, seq, prompt)
        check_outputs(model, driver, [seq], [prompt])


@pytest.mark.parametrize(("backend", "block_size", "order"), [
    (NUMBA, 16, "as it is"), (NUMPY, 8, "shuffled"),
    pytest.param(NUMPY, 16, "reversed", marks=pytest.mark.slow),
    pytest.param(NUMBA, 8, "shuffled", marks=pytest.mark.slow)])
def test_one_batch_in_any_order(case, backend, block_size, order):
    model, prompts = case
    indices = {"as it is": range(len(prompts)), "reversed": reversed(range(len(prompts))),
               "shuffled": np.random.default_rng(3).permutation(len(prompts))}[order]
    prompts = [prompts[i] for i in indices]
    driver = Driver(model, backend, block_size, num_blocks=128)
    seqs = start(driver, prompts)
    driver.step([(seq, prompt["prompt_token_ids"])
                 for seq, prompt in zip(seqs, prompts, strict=True)])
    for seq, prompt in zip(seqs, prompts, strict=True):
        check_prompt(model, seq, prompt)
    check_outputs(model, driver, seqs, prompts)


@pytest.mark.parametrize(("backend", "block_size", "chunk"), [
    (NUMPY, 16, 7), (NUMBA, 8, 33),
    pytest.param(NUMBA, 16, 7, marks=pytest.mark.slow),
    pytest.param(NUMPY, 8, 1, marks=pytest.mark.slow)])
def test_in_chunks(case, backend, block_size, chunk):
    """Each step computes up to `chunk` tokens of every prompt that is not through yet."""
    model, prompts = case
    driver = Driver(model, backend, block_size, num_blocks=128)
    seqs = start(driver, prompts)
    while any(seq.num_cached < len(prompt["prompt_token_ids"])
              for seq, prompt in zip(seqs, prompts, strict=True)):
        pieces = [(seq, prompt["prompt_token_ids"][seq.num_cached:seq.num_cached + chunk])
                  for seq, prompt in zip(seqs, prompts, strict=True)]
        driver.step([(seq, ids) for seq, ids in pieces if ids])
    for seq, prompt in zip(seqs, prompts, strict=True):
        check_prompt(model, seq, prompt)
    check_outputs(model, driver, seqs, prompts)


@pytest.mark.parametrize("backend", [NUMBA, pytest.param(NUMPY, marks=pytest.mark.slow)])
def test_prompts_start_beside_running_ones(case, backend):
    """Prefills and decodes in the same step: a new prompt joins every fourth step."""
    model, prompts = case
    driver = Driver(model, backend, num_blocks=128)
    seqs = start(driver, prompts)
    outputs = [[] for _ in prompts]
    for step in range(4 * (len(prompts) - 1) + NUM_OUTPUTS + 1):
        batch = []
        for i, (seq, prompt) in enumerate(zip(seqs, prompts, strict=True)):
            if step == 4 * i:
                batch.append((seq, prompt["prompt_token_ids"]))
            elif step > 4 * i and len(outputs[i]) < NUM_OUTPUTS:
                outputs[i].append(int(seq.last_logits(model).argmax()))
                batch.append((seq, outputs[i][-1:]))
        driver.step(batch)
    assert outputs == [prompt["output_token_ids"] for prompt in prompts]


def test_numbers_hardly_depend_on_the_batch(case):
    model, prompts = case
    alone = []
    for prompt in prompts:
        driver = Driver(model, NUMBA)
        [seq] = start(driver, [prompt])
        driver.step([(seq, prompt["prompt_token_ids"])])
        alone.append(seq.logits(model))
    driver = Driver(model, NUMPY, num_blocks=128)
    seqs = start(driver, prompts)
    driver.step([(seq, prompt["prompt_token_ids"])
                 for seq, prompt in zip(seqs, prompts, strict=True)])
    for seq, expected in zip(seqs, alone, strict=True):
        np.testing.assert_allclose(seq.logits(model), expected, atol=1e-4)
