"""What requests do to their logits before sampling: logit_bias and logits_processors."""

from typing import Any

import numpy as np
import pytest

from minivllm.model_executor.layers.logits_processor import LogitsProcessor, check_logit_bias
from minivllm.model_executor.sampling_metadata import SamplingMetadata
from minivllm.sampling_params import SamplingParams
from tests.sampler.harness import metadata_of

EMBEDDING = np.arange(12, dtype=np.float32).reshape(4, 3)  # (vocab_size, hidden_size)
HIDDEN = np.eye(3, dtype=np.float32)  # (num_tokens, hidden_size)


def logits_of(*groups: Any, query_lens: list[int] | None = None, scale: float = 1.0,
              embedding_bias: np.ndarray | None = None) -> np.ndarray:
    metadata = SamplingMetadata.prepare(list(groups), query_lens or [1] * len(groups))
    return LogitsProcessor(4, scale)(EMBEDDING, HIDDEN, metadata, embedding_bias)


def test_logits_of_the_chosen_rows_only() -> None:
    """Of a prompt of 3 tokens the last row is needed."""
    assert logits_of(metadata_of("p", [1, 2, 3]), query_lens=[3]).tolist() == [[2, 5, 8, 11]]


def test_scale() -> None:
    assert logits_of(metadata_of("p", [1]), scale=0.5).tolist() == [[0, 1.5, 3, 4.5]]


def test_the_bias_of_the_head_is_added_once_to_all_rows_before_the_scale() -> None:
    bias = np.array([1, 2, 3, 4], np.float32)
    logits = logits_of(metadata_of("p", [1]), metadata_of("q", [1]), scale=0.5,
                       embedding_bias=bias)
    assert logits.tolist() == [[0.5, 2.5, 4.5, 6.5], [1, 3, 5, 7]]
    assert bias.tolist() == [1, 2, 3, 4]


def test_requests_see_logits_with_the_bias_of_the_head() -> None:
    """It is scaled, so it comes before `logit_bias`, which is not; processors see both."""
    seen = []

    def keep(output_ids: list[int], logits: np.ndarray) -> np.ndarray:
        seen.append(logits.tolist())
        return logits

    params = SamplingParams(logit_bias={2: 10.0}, logits_processors=[keep])
    logits_of(metadata_of("p", [1], params=params), scale=0.5,
              embedding_bias=np.ones(4, np.float32))
    assert seen == [[0.5, 2, 13.5, 5]]


def test_bias_touches_its_own_rows() -> None:
    biased = metadata_of("b", [1], params=SamplingParams(logit_bias={3: -1000, 0: 2.5}))
    assert logits_of(metadata_of("a", [1]), biased).tolist() == [[0, 3, 6, 9], [3.5, 4, 7, -90]]


def test_bias_leaves_prompt_rows() -> None:
    params = SamplingParams(logit_bias={0: 1.0}, prompt_logprobs=0)
    logits = logits_of(metadata_of("p", [1, 2, 3], params=params), query_lens=[3])
    assert logits[:, 0].tolist() == [0, 1, 3]


def test_processors_run_in_order_and_see_the_tokens() -> None:
    """With two arguments one gets the output, with three also the prompt."""
    seen = []

    def two(output_ids: list[int], logits: np.ndarray) -> np.ndarray:
        seen.append((list(output_ids), logits.tolist()))
        return logits + 1

    def three(prompt_ids: list[int], output_ids: list[int], logits: np.ndarray) -> np.ndarray:
        seen.append((list(prompt_ids), list(output_ids), logits.tolist()))
        logits[0] = -np.inf
        return logits

    params = SamplingParams(logits_processors=[two, three], logit_bias={1: 0.5})
    group = metadata_of("p", [1, 2], [[7], [8]], params=params)
    logits = logits_of(group, metadata_of("q", [1]))
    assert seen == [([7], [0, 3.5, 6, 9]), ([1, 2], [7], [1, 4.5, 7, 10]),
                    ([8], [1, 4.5, 7, 10]), ([1, 2], [8], [2, 5.5, 8, 11])]
    assert logits.tolist() == [[-np.inf, 4.5, 7, 10], [-np.inf, 5.5, 8, 11], [2, 5, 8, 11]]


@pytest.mark.parametrize("result", [None, 0.0, np.zeros(3), np.zeros((1, 4))])
def test_a_processor_must_return_a_row(result: Any) -> None:
    params = SamplingParams(logits_processors=[lambda output_ids, logits: result])
    with pytest.raises(ValueError, match=r"request p must return logits of shape \(4,\)"):
        logits_of(metadata_of("p", [1], params=params))


@pytest.mark.parametrize("bias", [None, {}, {0: 1}, {3: -2.5}, {np.int64(2): np.float32(1.0)},
                                  {1: float("-inf")}])
def test_legal_biases(bias: Any) -> None:
    check_logit_bias(bias, vocab_size=4)


@pytest.mark.parametrize(("bias", "message"), [
    ([1, 2], "must be a dict .* got list"),
    ({"3": 1.0}, "token ids must be int, got '3'"),
    ({1.0: 1.0}, "token ids must be int, got 1.0"),
    ({True: 1.0}, "token ids must be int, got True"),
    ({4: 1.0}, "token id 4 is outside the vocabulary: ids are 0 to 3"),
    ({-1: 1.0}, "token id -1 is outside the vocabulary"),
    ({0: "1"}, "bias of token 0 must be a number, got '1'"),
    ({0: None}, "bias of token 0 must be a number, got None"),
    ({0: True}, "bias of token 0 must be a number, got True"),
    ({0: float("nan")}, "bias of token 0 must be a number, got nan"),
    ({0: 10 ** 400}, "bias of token 0 must be a number, got 1000"),
])
def test_illegal_biases(bias: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_logit_bias(bias, vocab_size=4)
