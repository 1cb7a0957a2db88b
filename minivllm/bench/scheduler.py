"""How long `Scheduler.schedule` takes."""

import time
from typing import Any

from minivllm.tracing.run import WorkloadRun
from minivllm.workloads import Workload


def time_schedule_calls(workload: Workload) -> list[float]:
    """Run `workload` and return the seconds of every call of `Scheduler.schedule`.

    From call to return: the building of all SequenceGroupMetadata and the decisions are included,
    nothing else of the engine is.
    """
    run = WorkloadRun(workload)
    schedule = run.engine.scheduler.schedule
    seconds: list[float] = []

    def timed_schedule() -> Any:
        start = time.perf_counter()
        result = schedule()
        seconds.append(time.perf_counter() - start)
        return result

    run.engine.scheduler.schedule = timed_schedule  # type: ignore[method-assign]
    for _ in run:
        pass
    return seconds
