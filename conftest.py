"""The pages (README, docs, tutorials, exercises) are tests too; see ``tests/docs/harness.py``."""

from pathlib import Path

import pytest

from tests.docs.harness import Page, is_page, page_sybil

_collect_page = page_sybil().pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-docs``."""
    parser.addoption("--update-docs", action="store_true",
                     help="rewrite outputs, quotations and pictures in the pages")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the pages whether to rewrite themselves."""
    Page.update_docs = config.getoption("--update-docs")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the blocks of a page."""
    return _collect_page(file_path, parent) if is_page(file_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is part of the full product is slow as well, so `-m "not slow"` leaves it out."""
    for item in items:
        if item.get_closest_marker("slow_full"):
            item.add_marker("slow")
