"""Golden streams of tokens: what vLLM's detokenizer and stop checker made of them."""

import gzip
import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden"
# In these vLLM goes by the order of the list; here the string completed first wins.
OTHERWISE = {
    ("smollm2", "stop_o_, _include0"): ("One", ", "),
    ("smollm2", "stop_o_, _include1"): ("One, ", ", "),
}


def named_cases(name: str) -> dict[str, Any]:
    with gzip.open(GOLDEN / "detok" / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        return {case["name"]: case for case in json.load(file)["cases"]}
