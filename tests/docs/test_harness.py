"""The harness itself: what is true passes, and each kind of untruth fails."""

import inspect
import textwrap
from pathlib import Path

import pytest

from minivllm.block import LogicalTokenBlock
from tests.docs.fences import find_fences, find_sections
from tests.docs.harness import Page, check_page
from tests.docs.pictures import colours_of, difference, texts_of
from tests.docs.quoting import quotation, source_of
from tests.docs.running import check_test_paths, run_session

SVG = ('<svg xmlns="http://www.w3.org/2000/svg"><rect fill="#AABBCC"/>'
       '<text x="{x}">{text}</text></svg>')


@pytest.fixture
def page(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "page.md"
        path.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")
        return path
    return write


@pytest.fixture(autouse=True)
def no_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare, also in a run that rewrites the real pages."""
    monkeypatch.setattr(Page, "update_docs", False)


@pytest.fixture
def update(no_update: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Page, "update_docs", True)


def test_a_right_output_passes(page):
    assert check_page(page("""
        ```python
        print(6 * 7)
        ```

        ```text
        42
        ```
        """)) == []


def test_a_wrong_output_fails_and_shows_both(page):
    [failure] = check_page(page("""
        ```python
        print(6 * 7)
        ```

        ```text
        41
        ```
        """))
    assert "-41" in failure and "+42" in failure


def test_an_output_that_is_not_shown_fails(page):
    [failure] = check_page(page("""
        ```python
        print("hello")
        ```
        """))
    assert "+hello" in failure


def test_an_error_fails(page):
    [failure] = check_page(page("""
        ```python
        1 / 0
        ```
        """))
    assert "division by zero" in failure


def test_an_output_that_nothing_prints_fails(page):
    [failure] = check_page(page("""
        Some words.

        ```text
        42
        ```
        """))
    assert "must follow" in failure


@pytest.mark.parametrize("language", ["", "json", "sh", "Python"])
def test_a_block_that_nobody_executes_fails(page, language):
    [failure] = check_page(page(f"""
        ```{language}
        whatever
        ```
        """))
    assert "nobody executes" in failure


def test_blocks_share_their_variables_and_files(page):
    assert check_page(page("""
        ```python
        x = 6
        open("six.txt", "w").write("six")
        ```

        ```text
        3
        ```

        ```python
        print(x, open("six.txt").read())
        ```

        ```text
        6 six
        ```
        """)) == []


def test_the_value_of_a_last_expression_is_shown(page):
    assert check_page(page("""
        ```python
        2 + 2
        [1, 2]
        ```

        ```text
        [1, 2]
        ```
        """)) == []


def test_a_traceback_names_the_line_in_the_page(page):
    path = page("""
        A line.

        ```python
        def f():
            raise ValueError("here")
        ```

        ```python
        import traceback
        try:
            f()
        except ValueError as error:
            print(traceback.extract_tb(error.__traceback__)[-1].lineno)
        ```

        ```text
        5
        ```
        """)
    assert check_page(path) == []


def test_a_session_is_compared_answer_by_answer(page):
    assert check_page(page("""
        ```pycon
        >>> x = 2
        >>> x + x
        4
        >>> for i in range(2):
        ...     print(i)
        0
        1
        >>> [].pop()
        Traceback (most recent call last):
          ...
        IndexError: pop from empty list
        ```
        """)) == []
    [failure] = check_page(page("""
        ```pycon
        >>> 2 + 2
        5
        ```
        """))
    assert "-5" in failure and "+4" in failure


def test_commands_are_run(page):
    path = page("""
        ```console
        $ minivllm --version
        minivllm 9.9.9
        ```

        ```bash
        pip install minivllm
        python -m minivllm --version
        ```

        ```text
        minivllm 9.9.9
        ```
        """)
    assert len(check_page(path)) == 2
    from minivllm import __version__
    path.write_text(path.read_text(encoding="utf-8").replace("9.9.9", __version__),
                    encoding="utf-8")
    assert check_page(path) == []


def test_commands_joined_by_and_are_run_one_by_one(page):
    [failure] = check_page(page("""
        ```bash
        pip install . && minivllm --version
        ```
        """))
    assert "+minivllm " in failure


def test_commands_find_files_of_the_repository(page):
    [failure] = check_page(page("""
        ```bash
        minivllm simulate docs/reading-order.json
        minivllm simulate docs/nowhere.json
        ```
        """))
    assert failure.count("there is no such file") == 1  # the first one is there, but no workload
    assert "docs/nowhere.json: there is no such file" in failure


def test_a_failing_command_shows_its_error(page):
    assert check_page(page("""
        ```console
        $ minivllm fly
        ```
        """))[0].count("invalid choice: 'fly'") == 1


def test_commands_that_nobody_runs_fail(page):
    [failure] = check_page(page("""
        ```bash
        rm -rf everything
        ```
        """))
    assert "nobody runs" in failure


def test_pytest_commands_name_tests_that_exist(page):
    check_test_paths(["-k", "x", "tests/docs/test_harness.py::test_a_right_output_passes"])
    with pytest.raises(ValueError, match="no test_nothing"):
        check_test_paths(["tests/docs/test_harness.py::test_nothing"])
    with pytest.raises(ValueError, match="there is no tests/gone.py"):
        check_test_paths(["tests/gone.py"])


def test_a_block_can_be_left_alone_with_a_reason(page):
    assert check_page(page("""
        <!-- not run: it downloads a model -->
        ```bash
        minivllm download smollm2
        ```
        """)) == []


def test_quotations_are_the_source(page):
    path = page(f"```python\n{quotation('minivllm/block.py', 'LogicalTokenBlock.is_full')}```\n")
    assert check_page(path) == []
    path.write_text(path.read_text(encoding="utf-8").replace("==", "!="), encoding="utf-8")
    [failure] = check_page(path)
    assert "-    return self.num_tokens != self.block_size" in failure


@pytest.mark.parametrize("name", ["LogicalTokenBlock", "LogicalTokenBlock.num_tokens"])
def test_source_by_name_is_what_inspect_finds(name):
    there = LogicalTokenBlock
    if "." in name:
        there = LogicalTokenBlock.num_tokens.fget
    assert source_of("minivllm/block.py", name) == textwrap.dedent(inspect.getsource(there))


def test_source_of_a_name_that_does_not_exist():
    with pytest.raises(ValueError, match="there is no fly"):
        source_of("minivllm/block.py", "LogicalTokenBlock.fly")


def test_an_unknown_section_fails(page):
    [failure] = check_page(page("""
        <!-- begin nothing -->
        <!-- end nothing -->
        """))
    assert "no section is called" in failure


def test_sections_inside_a_fence_are_text():
    assert find_sections("```markdown\n<!-- begin x -->\n<!-- end x -->\n```\n") == []
    assert len(find_fences("````markdown\n```python\n1\n```\n````\n")) == 1


def test_update_rewrites_outputs_quotations_and_sessions(page, update):
    path = page("""
        ```python
        print(1)
        ```

        ```text
        2
        ```

        ```python
        print("new")
        ```

        ```pycon
        >>> 1 + 1
        3
        ```

        ```python
        # tests/docs/quoting.py: ROOT
        ROOT = None
        ```
        """)
    assert check_page(path) == []
    assert path.read_text(encoding="utf-8") == textwrap.dedent("""
        ```python
        print(1)
        ```

        ```text
        1
        ```

        ```python
        print("new")
        ```

        ```text
        new
        ```

        ```pycon
        >>> 1 + 1
        2
        ```

        ```python
        # tests/docs/quoting.py: ROOT
        ROOT = Path(__file__).parents[2]
        ```
        """).lstrip()


def test_pictures_are_compared_by_text_and_colour():
    svg = SVG.format(x=1, text="r0")
    assert texts_of(svg) == ["r0"] and colours_of(svg) == ["#aabbcc"]
    assert difference(svg, SVG.format(x=99, text="r0")) is None
    assert "r1" in difference(svg, SVG.format(x=1, text="r1"))
    assert "#aabbcc" in difference(svg, svg.replace("#AABBCC", "#000"))
    assert "texts" in difference(svg, svg.replace("</svg>", "<text>more</text></svg>"))


PICTURE_PAGE = """
    ```python
    from pathlib import Path
    _ = Path("img/a.svg").write_text('''{svg}''')
    ```
    """


def test_a_picture_that_differs_or_is_missing_fails(page):
    path = page(PICTURE_PAGE.format(svg=SVG.format(x=1, text="r0")))
    assert "not committed" in check_page(path)[0]
    committed = path.parent / "img" / "a.svg"
    committed.parent.mkdir()
    committed.write_text(SVG.format(x=2, text="r0"), encoding="utf-8")
    assert check_page(path) == []
    committed.write_text(SVG.format(x=2, text="r1"), encoding="utf-8")
    assert "a.svg: text 0" in check_page(path)[0]


def test_update_writes_pictures(page, update):
    path = page(PICTURE_PAGE.format(svg=SVG.format(x=1, text="r0")))
    assert check_page(path) == []
    assert texts_of((path.parent / "img" / "a.svg").read_text(encoding="utf-8")) == ["r0"]


def test_sessions_keep_their_prompts(tmp_path):
    session = ">>> def f():\n...     return 1\n>>> f()\n1\n"
    assert run_session(session, {}, tmp_path) == session
