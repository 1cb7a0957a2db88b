"""What the pages say of files: they exist, and the numbers are those of today."""

import codeop
import re
from pathlib import Path

import pytest

from tests.docs.code_lines import code_lines
from tests.docs.fences import find_fences
from tests.docs.harness import is_page
from tests.docs.quoting import ROOT
from tests.docs.sections import READING_ORDER, VLLM_LINES, read_json

PAGES = sorted(path for path in ROOT.rglob("*.md")
               if is_page(path) and not {"_build", "api"} & set(path.parts))
IDS = [str(path.relative_to(ROOT)) for path in PAGES]


def table_rows(page: Path) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]]
            for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]


def test_the_mapping_names_files_that_exist():
    ours, theirs = [], []
    for row in table_rows(ROOT / "docs" / "mapping.md"):
        ours += re.findall(r"`([\w/]+\.py)`", row[1])
        theirs += re.findall(r"`([\w/]+\.py)`", row[2]) if len(row) == 3 else []
    assert [path for path in ours if not (ROOT / "minivllm" / path).is_file()] == []
    assert [path for path in theirs if path not in read_json(VLLM_LINES)] == []
    assert len(ours) > 40 and len(theirs) > 30


def test_the_reading_order_has_twelve_stops():
    stops = read_json(READING_ORDER)
    assert len(stops) == 12
    assert all(stop["files"] and stop["vllm"] and stop["answers"] for stop in stops)


def test_code_lines_leave_out_blanks_comments_and_docstrings():
    assert code_lines('"""A module."""\n\n# A comment.\nx = 1\n') == 1
    assert code_lines('def f():\n    """Doc\n    string.\n    """\n    return """a\nb"""\n') == 3


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for fence in reversed(find_fences(text)):
        text = text[:fence.start] + text[fence.end:]
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    broken = [link for link in links if not re.match(r"https?:|#", link)
              and not (page.parent / link.split("#")[0]).exists()]
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "docs"],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_can_be_pasted_into_a_repl(page):
    """Python's plain one, which ends a loop at an empty line, and a function too."""
    for fence in find_fences(page.read_text(encoding="utf-8")):
        quotes = fence.body.startswith("# minivllm/")
        if fence.language == "python" and not quotes and not fence.body.startswith(">>>"):
            paste(fence.body)


def paste(source):
    """Give the lines to a REPL's compiler, one by one, as a REPL does."""
    lines: list[str] = []
    for line in [*source.splitlines(), ""]:
        lines.append(line)
        if codeop.compile_command("\n".join(lines)) is not None:
            lines = []
    assert lines == []


@pytest.mark.parametrize("source", ["for i in range(3):\n    print(i)\nprint()\n",
                                    "def f():\n    a = 1\n\n    return a\n"])
def test_what_a_repl_does_not_take(source):
    with pytest.raises(SyntaxError):
        paste(source)


def test_the_chinese_page_has_the_blocks_of_the_readme():
    english, chinese = ([(fence.language, fence.body)
                         for fence in find_fences(page.read_text(encoding="utf-8"))]
                        for page in (ROOT / "README.md", ROOT / "docs" / "zh" / "index.md"))
    assert chinese == english
