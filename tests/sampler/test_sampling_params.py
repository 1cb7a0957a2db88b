"""The golden table of SamplingParams: what is legal, and what comes of it."""

from typing import Any

import numpy as np
import pytest

from minivllm.sampling_params import SamplingParams, SamplingType
from tests.sampler.golden import read_golden

CASES = read_golden("sampling_params")["cases"]


def test_the_table_has_both_kinds() -> None:
    assert {case["ok"] for case in CASES} == {True, False}


@pytest.mark.parametrize("case", CASES, ids=[str(case["kwargs"]) for case in CASES])
def test_row(case: dict[str, Any]) -> None:
    if not case["ok"]:
        with pytest.raises(ValueError) as caught:
            SamplingParams(**case["kwargs"])
        assert caught.type.__name__ == case["error_type"]
        for parameter in case["message_mentions"]:
            assert parameter in str(caught.value)
        return
    params = SamplingParams(**case["kwargs"])
    expected = case["attributes"]
    sampling_type = SamplingType[expected.pop("sampling_type").upper()]
    assert params.sampling_type is sampling_type
    assert params.all_stop_token_ids == set(expected.pop("all_stop_token_ids"))
    for name, value in expected.items():
        assert getattr(params, name) == value, name


def test_unknown_parameter() -> None:
    with pytest.raises(TypeError, match="temprature"):
        SamplingParams(temprature=1.0)  # type: ignore[call-arg]


NAN = float("nan")
BEAMS = {"use_beam_search": True, "best_of": 2, "temperature": 0.0}


@pytest.mark.parametrize("kwargs, says", [
    ({"n": None}, "n must be a whole number, got None"),
    ({"n": True}, "n must be a whole number, got True"),
    ({"best_of": "2"}, "best_of must be a whole number, got '2'"),
    ({"max_tokens": 1.5}, "max_tokens must be a whole number, got 1.5"),
    ({"logprobs": True}, "logprobs must be a whole number, got True"),
    ({"seed": 1.0}, "seed must be a whole number, got 1.0"),
    ({"temperature": "hot"}, "temperature must be a number, got 'hot'"),
    ({"temperature": NAN}, "temperature must be a number, got nan"),
    ({"top_p": np.array([0.5, 0.5])}, "top_p must be a number"),
    ({"presence_penalty": NAN}, "presence_penalty must be a number, got nan"),
    ({"temperature": 10 ** 400}, "temperature must be a number"),
    ({"ignore_eos": "false"}, "ignore_eos must be True or False, got 'false'"),
    ({"stop": 5}, "stop must be a list, got 5"),
    ({"stop": ["a", None]}, "each stop must be a str, got None"),
    ({"stop_token_ids": "12"}, "stop_token_ids must be a list, got '12'"),
    ({"stop_token_ids": [1.5]}, "each of stop_token_ids must be a whole number, got 1.5"),
    ({"logits_processors": [3]}, "each of logits_processors must be callable, got 3"),
    (BEAMS | {"length_penalty": NAN}, "length_penalty must be a number, got nan"),
    (BEAMS | {"length_penalty": 1000}, r"length_penalty must be in \[-50, 50\], got 1000"),
])
def test_wrong_kinds_are_one_clear_error(kwargs: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SamplingParams(**kwargs)


def test_numbers_of_numpy_become_pythons() -> None:
    params = SamplingParams(n=np.int64(2), seed=np.int32(-1), temperature=np.float32(0.5),
                            stop_token_ids=np.array([3, 4]))
    assert (params.n, params.best_of, params.seed, params.temperature) == (2, 2, None, 0.5)
    assert type(params.n) is int and type(params.temperature) is float
    assert params.stop_token_ids == [3, 4] and type(params.stop_token_ids[0]) is int
