"""Embeddings from the hidden states after the last norm."""

import numpy as np
import pytest

from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.model_executor.pooling_metadata import PoolingMetadata
from minivllm.pooling_params import PoolingParams
from tests.models.harness import Driver, golden, load_tiny

FIELDS = {"last": PoolingParams("last", normalize=False),
          "mean": PoolingParams("mean", normalize=False),
          "last_normalized": PoolingParams("last"),
          "mean_normalized": PoolingParams("mean")}


@pytest.mark.parametrize("name", ["llama-mha", "qwen2-tied"])
@pytest.mark.parametrize("backend", [NumpyAttentionBackend, NumbaAttentionBackend])
def test_golden_embeddings_of_one_batch(name, backend):
    """All prompts in one batch, pooled in each of the four ways."""
    items = golden(name, "pooling.json")["items"]
    model = load_tiny(name)
    driver = Driver(model, backend)
    prompts = [item["prompt_token_ids"] for item in items]
    seqs = [driver.add(len(ids)) for ids in prompts]
    driver.step(list(zip(seqs, prompts, strict=True)))
    hidden = np.concatenate([seq.hidden[0] for seq in seqs])
    for field, params in FIELDS.items():
        metadata = PoolingMetadata([params] * len(items), [len(ids) for ids in prompts])
        outputs = model.pooler(hidden, metadata)
        tolerance = 1e-5 if params.normalize else 2e-4
        for output, item in zip(outputs, items, strict=True):
            np.testing.assert_allclose(output.embeddings, item[field], atol=tolerance)


def test_each_request_is_pooled_its_own_way():
    hidden = np.array([[3, 4], [1, 0], [0, 2]], np.float32)
    metadata = PoolingMetadata([PoolingParams("last"), PoolingParams("mean", normalize=False)],
                               [1, 2])
    outputs = load_tiny("llama-mha").pooler(hidden, metadata)
    assert [output.embeddings for output in outputs] == [[pytest.approx(0.6), pytest.approx(0.8)],
                                                         [0.5, 1.0]]
