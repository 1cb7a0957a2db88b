"""The figures of the docs are what their script draws, and every picture is shown somewhere."""

import re

import pytest

from tests.docs.harness import Page, is_page
from tests.docs.house import ROOMS, house
from tests.docs.pictures import check_picture
from tests.docs.quoting import ROOT
from tests.docs.speeds import peers_figure, stages_figure
from tests.test_imports import FLOORS

PAGES = sorted(path for folder in ("docs", "tutorials") for path in (ROOT / folder).rglob("*.md")
               if is_page(path))


def test_the_house_is_what_the_import_table_says(tmp_path):
    made = tmp_path / "house.svg"
    made.write_text(house(), encoding="utf-8")
    assert check_picture(made, ROOT / "docs" / "img" / "house.svg", Page.update_docs) is None


def test_the_house_shows_every_room_of_the_upper_floors():
    hidden = [room for floor in FLOORS[1:] for room in floor
              if room not in ROOMS and room != "__main__"]
    assert hidden == []


@pytest.mark.parametrize("draw", [peers_figure, stages_figure])
def test_the_figures_of_speed_are_what_has_been_measured(tmp_path, draw):
    made = tmp_path / f"{draw.__name__}.svg"
    made.write_text(draw(), encoding="utf-8")
    assert check_picture(made, ROOT / "docs" / "img" / made.name, Page.update_docs) is None


def test_every_picture_is_shown_and_every_shown_picture_is_there():
    shown = {(page.parent / name).resolve() for page in [ROOT / "README.md", *PAGES]
             if page.is_file()
             for name in re.findall(r"!\[[^\]]*\]\(([^)]+\.svg)\)", page.read_text("utf-8"))}
    there = {path.resolve() for folder in ("docs", "tutorials")
             for path in (ROOT / folder).rglob("*.svg") if "_build" not in path.parts}
    assert shown == there
