"""The golden table of SamplingParams: what is legal, and what comes of it."""

from typing import Any

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
