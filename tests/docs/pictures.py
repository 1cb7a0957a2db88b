"""Comparing SVG pictures by what a reader sees: their texts and colours.

Coordinates and ids are left out, so that another version of the drawing library does not matter.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgba?\([^)]*\)")


def texts_of(svg: str) -> list[str]:
    """Return the texts of a picture, in the order in which they stand in the file."""
    root = ElementTree.fromstring(svg)
    return [" ".join("".join(element.itertext()).split()) for element in root.iter()
            if element.tag.endswith("}text") or element.tag == "text"]


def colours_of(svg: str) -> list[str]:
    """Return the colours of a picture in order, each as often as it is used."""
    return [colour.lower() for colour in _COLOUR.findall(svg)]


def difference(made: str, committed: str) -> str | None:
    """Return the first way in which two pictures differ for a reader, None if they do not."""
    for what, extract in (("text", texts_of), ("colour", colours_of)):
        ours, theirs = extract(made), extract(committed)
        for i, (new, old) in enumerate(zip(ours, theirs, strict=False)):
            if new != old:
                return f"{what} {i}: made {new!r}, committed {old!r}"
        if len(ours) != len(theirs):
            return f"{what}s: made {len(ours)}, committed {len(theirs)}"
    return None


def check_picture(made: Path, committed: Path, update: bool) -> str | None:
    """Compare a picture with the committed one, or replace that; return what is wrong."""
    new = made.read_text(encoding="utf-8")
    if update:
        if not committed.is_file() or difference(new, committed.read_text(encoding="utf-8")):
            committed.parent.mkdir(parents=True, exist_ok=True)
            committed.write_text(new, encoding="utf-8", newline="\n")
        return None
    if not committed.is_file():
        return f"{committed.name} is not committed; run pytest with --update-docs."
    what = difference(new, committed.read_text(encoding="utf-8"))
    return f"{committed.name}: {what}" if what else None
