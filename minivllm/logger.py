"""Logging (mirrors ``vllm/logger.py``): one format, warnings and above on stderr.

``MINIVLLM_LOGGING_LEVEL`` (DEBUG, INFO, WARNING, ...) says how much is shown.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_FORMAT = "%(levelname)s %(asctime)s %(filename)s:%(lineno)d] %(message)s"


def init_logger(name: str) -> logging.Logger:
    """Return the logger called `name`; the first call gives the package its handler."""
    root = logging.getLogger("minivllm")
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(_FORMAT, datefmt="%m-%d %H:%M:%S"))
        root.addHandler(handler)
        level = os.environ.get("MINIVLLM_LOGGING_LEVEL", "WARNING").upper()
        try:
            root.setLevel(level)
        except ValueError:
            root.warning("MINIVLLM_LOGGING_LEVEL must be DEBUG, INFO, WARNING, ERROR or CRITICAL, "
                         "got %r.", level)
    return logging.getLogger(name)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep the engine's warnings back, where a picture or a summary says the same."""
    logger = init_logger("minivllm")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
