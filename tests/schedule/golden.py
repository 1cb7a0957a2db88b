"""The golden workloads and traces of vLLM 0.5.0.post1, by name."""

from pathlib import Path
from typing import Any

from minivllm.tracing.compare import Difference, first_difference
from minivllm.tracing.files import read_json
from minivllm.tracing.trace import trace_workload
from minivllm.tracing.workload import read_workload
from minivllm.workloads import Workload

GOLDEN = Path(__file__).parent.parent / "golden" / "schedule"


def names(folder: str) -> list[str]:
    return sorted(path.name.removesuffix(".workload.json.gz")
                  for path in (GOLDEN / folder).glob("*.workload.json.gz"))


def workload(folder: str, name: str) -> Workload:
    return read_workload(GOLDEN / folder / f"{name}.workload.json.gz")


def expected_trace(folder: str, name: str) -> dict[str, Any]:
    trace: dict[str, Any] = read_json(GOLDEN / folder / f"{name}.trace.json.gz")
    return trace


def difference(folder: str, name: str, ignore: tuple[str, ...] = ()) -> Difference | None:
    """Run a golden workload and return where it first departs from vLLM."""
    return first_difference(trace_workload(workload(folder, name)), expected_trace(folder, name),
                            ignore)
