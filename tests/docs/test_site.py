"""The site: built with warnings as errors, every link leads somewhere, nothing is fetched."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.quoting import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Return the folder of the built site (needs the ``docs`` extra)."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-c", "docs", ".",
               str(out)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return out


class Links(HTMLParser):
    """Collects what a page links to, loads, and can be linked at."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.ids |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and "stylesheet" in attributes.get("rel", ""):
            self.loads.append(attributes["href"])
        elif tag in ("img", "script", "iframe", "source") and "src" in attributes:
            self.loads.append(attributes["src"])


def pages(site: Path) -> dict[Path, Links]:
    return {page.resolve(): Links(page) for page in site.rglob("*.html")}


def test_every_link_leads_somewhere(site):
    all_pages = pages(site)
    assert len(all_pages) > 25
    broken = []
    for page, links in all_pages.items():
        for link in links.links + links.loads:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            missing = not target.exists() or (
                parts.fragment and target in all_pages
                and unquote(parts.fragment) not in all_pages[target].ids)
            if missing:
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_fetched_when_a_page_is_opened(site):
    fetched = [f"{page.name}: {load}" for page, links in pages(site).items()
               for load in links.loads if urlsplit(load).scheme not in ("", "data")]
    for css in site.rglob("*.css"):
        fetched += re.findall(r"(?:url\(|@import)\s*['\"]?https?:[^)'\"]*",
                              css.read_text(encoding="utf-8"))
    assert fetched == []


def test_the_top_leads_to_the_first_page(site):
    assert "docs/index.html" in (site / "index.html").read_text(encoding="utf-8")


def test_the_api_has_every_room_with_its_docstrings(site):
    scheduler = (site / "docs" / "api" / "core.html").read_text(encoding="utf-8")
    assert "minivllm.core.scheduler.Scheduler.schedule" in scheduler
    rooms = {page.stem for page in (site / "docs" / "api").glob("*.html")}
    assert {"attention", "engine", "entrypoints", "model_executor", "viz", "worker"} <= rooms
