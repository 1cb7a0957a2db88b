"""The decision log is complete, its numbers decide, and what it says would have helped helps."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from minivllm.decisions import Check, Decision, Verdict, sentence
from minivllm.tracing.record import record
from minivllm.tracing.recording import Trace
from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.source import CLASSIC_ENGINE, CLASSIC_TOKEN_IDS, stand_in_workload
from minivllm.utils import Device
from minivllm.viz.why import NO_REASON, held_requests, reasons
from minivllm.workloads import Workload
from tests.schedule import golden
from tests.tracing.workload_strategies import workloads

HELD_BACK = {Verdict.WAITS, Verdict.STAYS_SWAPPED, Verdict.PAUSES, Verdict.RECOMPUTED,
             Verdict.SWAPPED_OUT, Verdict.NOT_SWAPPED_OUT, Verdict.IGNORED, Verdict.GIVEN_UP}
LET_IN = {Verdict.ADMITTED, Verdict.SWAPPED_IN}
FOLDERS = ("named", "random", "v2_prefix_bug")


def recorded(workload: Workload) -> Trace:
    run = WorkloadRun(workload)
    with record(run.engine) as trace:
        for _ in run:
            pass
    return trace


@pytest.fixture(scope="module")
def traces() -> dict[tuple[str, str], Trace]:
    return {(folder, name): recorded(golden.workload(folder, name))
            for folder in FOLDERS for name in golden.names(folder)}


@pytest.mark.slow
def test_every_request_that_did_not_run_has_a_reason(traces: dict[tuple[str, str], Trace]):
    num_held = 0
    for trace in traces.values():
        for view in trace:
            for request_id in held_requests(view):
                num_held += 1
                sentences = reasons(view, request_id)
                assert sentences
                assert not any(NO_REASON in sentence for sentence in sentences), (
                    view.step, request_id)
    print(f"{num_held} times a request was held back, each with a reason")
    assert num_held > 5000


@pytest.mark.slow
def test_held_back_exactly_if_the_numbers_say_so(traces: dict[tuple[str, str], Trace]):
    """One line replays every decision: ``need + reserve > have``."""
    seen: Counter[Verdict] = Counter()
    for trace in traces.values():
        for view in trace:
            ran = {request.request_id for request in view.scheduled}
            for decision in view.decisions:
                seen[decision.verdict] += 1
                if decision.check is Check.RULE:
                    assert decision.request_id is None
                    continue
                short = decision.need + decision.reserve > decision.have
                assert short == decision.held_back == (decision.verdict in HELD_BACK)
                assert (decision.verdict in LET_IN) != (decision.verdict in HELD_BACK)
                if decision.verdict is not Verdict.NOT_SWAPPED_OUT:
                    assert (decision.request_id in ran) == (decision.verdict in LET_IN)
    print(dict(seen))
    # NOT_SWAPPED_OUT is what vLLM raises an error for: no golden trace has it.
    assert set(Verdict) - seen.keys() <= {Verdict.NOT_SWAPPED_OUT, Verdict.GIVEN_UP,
                                          Verdict.PROMPTS_DELAYED}


@pytest.mark.slow
def test_the_numbers_of_the_token_budget_are_those_of_the_batch(
        traces: dict[tuple[str, str], Trace]):
    num_checked = 0
    for trace in traces.values():
        for view in trace:
            for decision in view.decisions:
                if decision.check is Check.TOKENS and decision.verdict is Verdict.WAITS:
                    num_checked += 1
                    left = view.limits.max_num_batched_tokens - view.num_batched_tokens
                    assert decision.have == left
                    assert decision.total == view.limits.max_num_batched_tokens
    assert num_checked > 0


@pytest.mark.slow
def test_what_would_have_helped_helps(traces: dict[tuple[str, str], Trace]):
    """Raise the one limit that a decision names, in that step: the request then runs."""
    tried: Counter[tuple[str, str]] = Counter()
    for (folder, name), trace in traces.items():
        workload = golden.workload(folder, name)
        for step, decision in sampled_claims(trace):
            tried[decision.verdict.name, decision.check.name] += 1
            outcome = run_with(workload, step, decision)
            assert outcome, f"{folder}/{name}, step {step}: {decision}"
    print(dict(tried))
    for check in ("TOKENS", "SEATS", "GPU_BLOCKS", "CHUNK"):
        assert tried["WAITS", check] > 0
    assert tried["STAYS_SWAPPED", "GPU_BLOCKS"] > 0


@pytest.mark.slow
def test_what_would_have_helped_helps_in_tighter_places():
    """What vLLM has no answer to: no room in the CPU pool, requests that outgrow the pool."""
    tried: Counter[tuple[str, str]] = Counter()

    @settings(max_examples=400, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(workloads())
    def check(workload: Workload) -> None:
        for step, decision in sampled_claims(recorded(workload)):
            tried[decision.verdict.name, decision.check.name] += 1
            assert run_with(workload, step, decision)

    check()
    print(dict(tried))
    assert tried["NOT_SWAPPED_OUT", "CPU_BLOCKS"] > 0
    assert tried["GIVEN_UP", "POOL_SIZE"] > 0


def sampled_claims(trace: Trace, most: int = 2) -> Iterator[tuple[int, Decision]]:
    """Yield the first and last claims of each kind that a trace makes."""
    claims: dict[tuple[Verdict, Check], list[tuple[int, Decision]]] = {}
    for view in trace:
        for decision in view.decisions:
            if decision.enough is not None:
                claims.setdefault((decision.verdict, decision.check), []).append(
                    (view.step, decision))
    for found in claims.values():
        yield from found[:most]
        yield from found[most:][-most:]


def run_with(workload: Workload, step: int, decision: Decision) -> bool:
    """Return whether the request runs in `step` if the limit is raised just before it."""
    assert decision.enough is not None
    more_blocks = {"num_gpu_blocks": Device.GPU, "num_cpu_blocks": Device.CPU}
    device = more_blocks.get(decision.limit or "")
    if device is not None:
        engine: Any = {**workload["engine"], decision.limit: decision.enough}
        workload = {**workload, "engine": engine}
    run = WorkloadRun(workload)
    scheduler: Any = run.engine.scheduler
    raise_limit: Callable[[], None]
    if device is not None:
        raise_limit = hold_blocks(scheduler.block_manager, device,
                                  decision.enough - decision.total)
    else:
        def raise_limit() -> None:
            setattr(scheduler.scheduler_config, str(decision.limit), decision.enough)
    schedule = scheduler.schedule

    def schedule_with_raised_limit() -> Any:
        if run.clock.step == step:
            raise_limit()
        return schedule()

    scheduler.schedule = schedule_with_raised_limit
    with record(run.engine) as trace:
        for _ in run:
            if run.clock.step == step:
                break
    request = trace[-1].scheduled_request(str(decision.request_id))
    if decision.verdict is Verdict.NOT_SWAPPED_OUT:
        return bool(trace[-1].blocks_to_swap_out)
    return request is not None


def hold_blocks(manager: Any, device: Device, number: int) -> Callable[[], None]:
    """Take blocks out of a pool, and return what gives them back.

    Until then the manager takes the pool for as small as it is without them.
    """
    name = f"num_total_{device.name.lower()}_blocks"
    total, watermark = getattr(manager, name), manager.watermark_blocks
    setattr(manager, name, total - number)
    if device is Device.GPU:
        manager.watermark_blocks = int(manager.watermark * (total - number))
    if hasattr(manager, "block_allocator"):
        allocator = manager.block_allocator
        held = [allocator.allocate_mutable(None, device) for _ in range(number)]
    else:
        allocator = manager.gpu_allocator if device is Device.GPU else manager.cpu_allocator
        held = [allocator.allocate() for _ in range(number)]

    def give_back() -> None:
        for block in held:
            allocator.free(block)
        setattr(manager, name, total)
        manager.watermark_blocks = watermark

    return give_back


def test_the_classic_example_says_what_would_have_helped():
    """r2 waits in step 0, and is preempted in step 2."""
    trace = recorded(classic_workload())
    assert reasons(trace[0], "r2") == [
        "r2 waits (token budget): its prompt is 3 tokens, 2 of the step's 12 are left; r0 and r1 "
        "took 10. It would have run with max_num_batched_tokens=13."]
    assert reasons(trace[2], "r2") == [
        "r2 is preempted by recompute (free blocks): the check wants 1 free block before r0 goes "
        "on (here r0 needs none), 0 of 5 are free. It would have run with num_gpu_blocks=6."]


def test_it_is_said_that_no_block_is_needed_exactly_where_the_other_takes_none():
    num_needed = Counter[bool]()
    for name in golden.names("named"):
        for view in recorded(golden.workload("named", name)):
            for decision in view.decisions:
                ran = view.scheduled_request(decision.other or "")
                if decision.verdict in (Verdict.RECOMPUTED, Verdict.SWAPPED_OUT) and ran:
                    before = view.previous.sequences
                    took = any(tuple(seq.block_table) != before[seq.seq_id].block_table
                               for seq in ran.seqs)
                    num_needed[took] += 1
                    assert ("needs none" in sentence(decision)) == (not took)
    assert num_needed[True] > 0 and num_needed[False] > 0


def classic_workload() -> Workload:
    return stand_in_workload(CLASSIC_TOKEN_IDS, CLASSIC_ENGINE)
