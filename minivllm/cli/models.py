"""``minivllm models``: which models have a name, and where they are."""

import argparse
import json
from collections.abc import Sequence

from minivllm.transformers_utils.download import (
    DEFAULT_MODEL,
    KnownModel,
    list_models,
    models_dir,
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm models",
        description="List the models that have a name: built in, downloaded, or to be downloaded.")
    result.add_argument("--json", action="store_true", help="print one JSON object per line")
    return result


def main(argv: Sequence[str]) -> int:
    """Run the sub-command."""
    args = parser().parse_args(argv)
    models = list_models()
    if args.json:
        for model in models:
            print(json.dumps(as_json(model)))
        return 0
    width = max(len(model.name) for model in models)
    for model in models:
        print(f"{model.name:{width}}  {describe(model)}")
    print(f"\nThe default is {DEFAULT_MODEL}. Downloads are kept in {models_dir()} "
          "(MINIVLLM_CACHE changes that).")
    return 0


def describe(model: KnownModel) -> str:
    """Return what stands behind a model's name."""
    if model.status == "not downloaded":
        return f"not downloaded: minivllm download {model.name}"
    return f"{model.status}, {model.num_bytes / 1e6:,.0f} MB: {model.path}"


def as_json(model: KnownModel) -> dict[str, str | int | bool]:
    """Return a model as a program would want it."""
    return {"name": model.name, "status": model.status, "path": str(model.path),
            "num_bytes": model.num_bytes, "default": model.name == DEFAULT_MODEL}
