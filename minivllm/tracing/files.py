"""Reading and writing JSON files, gzipped if the name ends in ``.gz``."""

import gzip
import json
import os
from pathlib import Path
from typing import Any


def read_json(path: str | Path) -> Any:
    """Return the contents of a JSON file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no JSON; the message says where.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        data = path.read_bytes()
        return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path}: not a gzip file: {error}") from None
    except ValueError as error:
        # Bad JSON, or bad UTF-8 in it.
        raise ValueError(f"{path}: not JSON: {error}") from None


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as compact JSON; the same value always gives the same bytes."""
    path = Path(path)
    data = to_json(value).encode()
    # No time stamp in it.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def check_can_write(path: str | Path) -> None:
    """Raise an OSError if a file cannot be written there: now, not after the work."""
    file = Path(path).absolute()
    if file.is_dir():
        raise IsADirectoryError(f"{path} is a directory; name a file in it.")
    if not file.exists() and not file.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {file.parent}; make it first.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise PermissionError(f"{path} cannot be written; name a file elsewhere.")


def to_json(value: Any) -> str:
    """Return `value` as one line of JSON with its newline."""
    return json.dumps(value, separators=(",", ":")) + "\n"
