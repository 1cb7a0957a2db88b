"""What a recorder writes down is what the engine is like."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from minivllm.engine.llm_engine import LLMEngine
from minivllm.sequence import SequenceStatus
from minivllm.tracing.compare import first_difference
from minivllm.tracing.record import Recorder, record
from minivllm.tracing.recording import Trace, load
from minivllm.tracing.run import WorkloadRun
from minivllm.tracing.snapshot import Snapshot
from minivllm.tracing.trace import finish_trace
from minivllm.utils import Device
from minivllm.workloads import DEFAULT_ENGINE, Workload, poisson
from tests.schedule import golden
from tests.tracing.workload_strategies import workloads


def recorded(workload: Workload) -> Trace:
    run = WorkloadRun(workload)
    with record(run.engine) as trace:
        for _ in run:
            pass
    return trace


class TruthChecker:
    """An observer that compares the newest snapshot with the live engine after each step."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.seen: Counter[str] = Counter()

    def on_schedule(self, *_: Any) -> None:
        pass

    def on_step(self, engine: LLMEngine, *_: Any) -> None:
        snapshot = self.trace[-1]
        scheduler = engine.scheduler
        assert snapshot.waiting == tuple(group.request_id for group in scheduler.waiting)
        assert snapshot.running == tuple(group.request_id for group in scheduler.running)
        assert snapshot.swapped == tuple(group.request_id for group in scheduler.swapped)
        for group in (*scheduler.waiting, *scheduler.running, *scheduler.swapped):
            for seq in group.get_seqs():
                state = snapshot.sequences[seq.seq_id]
                assert state.token_ids == tuple(seq.get_token_ids())
                assert state.num_computed_tokens == seq.data.get_num_computed_tokens()
                assert state.status == seq.status.name
        self._check_blocks(engine, snapshot)
        self._count(snapshot)

    def _check_blocks(self, engine: LLMEngine, snapshot: Snapshot) -> None:
        manager: Any = engine.scheduler.block_manager
        assert snapshot.gpu.num_free == manager.get_num_free_gpu_blocks()
        assert snapshot.cpu.num_free == manager.get_num_free_cpu_blocks()
        tables, counts = live_tables(engine)
        assert {seq.seq_id: (seq.device, seq.block_table)
                for seq in snapshot.sequences.values() if seq.block_table} == tables
        in_use = {(pool.device, block.number): block.ref_count
                  for pool in (snapshot.gpu, snapshot.cpu) for block in pool.blocks.values()
                  if block.ref_count}
        assert in_use == counts
        # Counts are those of the tables, and what is neither used nor cached is free.
        holders = Counter((seq.device, number) for seq in snapshot.sequences.values()
                          for number in seq.block_table)
        assert in_use == holders
        for pool in (snapshot.gpu, snapshot.cpu):
            assert pool.num_used == sum(block.ref_count > 0 for block in pool.blocks.values())

    def _count(self, snapshot: Snapshot) -> None:
        self.seen["shared"] += any(b.ref_count > 1 for b in snapshot.gpu.blocks.values())
        self.seen["cached"] += snapshot.gpu.num_cached > 0
        self.seen["swapped"] += bool(snapshot.swapped)
        self.seen["preempted"] += bool(snapshot.preempted)
        self.seen["copied"] += bool(snapshot.blocks_to_copy)


def live_tables(engine: LLMEngine) -> tuple[dict[int, Any], dict[tuple[str, int], int]]:
    """Return the block tables and reference counts of an engine, from its inner parts."""
    manager: Any = engine.scheduler.block_manager
    is_v2 = engine.scheduler_config.use_v2_block_manager
    tables: dict[int, Any] = {}
    counts: dict[tuple[str, int], int] = {}
    for seq_id, table in manager.block_tables.items():
        numbers = []
        for block in table.blocks if is_v2 else table:
            if is_v2:
                allocator = manager.block_allocator
                in_gpu = block.block_id in allocator.get_allocator(Device.GPU).all_block_ids
                device = Device.GPU if in_gpu else Device.CPU
                number = allocator.get_physical_block_id(device, block.block_id)
                count = allocator.get_refcount(block)
            else:
                device, number, count = block.device, block.block_number, block.ref_count
            numbers.append(number)
            counts[device.name.lower(), number] = count
        if numbers:
            tables[seq_id] = (device.name.lower(), tuple(numbers))
    return tables, counts


@pytest.mark.slow
def test_snapshots_are_true():
    seen: Counter[str] = Counter()

    @settings(max_examples=150, deadline=None, derandomize=True,
              suppress_health_check=[HealthCheck.too_slow])
    @given(workloads())
    def check(workload: Workload) -> None:
        run = WorkloadRun(workload)
        recorder = Recorder(run.engine)
        checker = TruthChecker(recorder.trace)
        run.engine.observers += [recorder, checker]
        for _ in run:
            pass
        seen.update(checker.seen)

    check()
    assert all(seen[what] > 0 for what in ("shared", "cached", "swapped", "preempted", "copied"))


@pytest.mark.slow
def test_recording_changes_no_decision():
    """With a recorder attached every golden trace is still vLLM's."""
    names = [(folder, name) for folder in ("named", "random") for name in golden.names(folder)]
    for folder, name in names:
        run = WorkloadRun(golden.workload(folder, name))
        recorder = Recorder(run.engine)
        run.engine.observers.append(recorder)
        for _ in run:
            pass
        trace = finish_trace(run, recorder.format_recorder)
        assert first_difference(trace, golden.expected_trace(folder, name)) is None
    print(f"{len(names)}/{len(names)} traces equal while recorded")


def test_a_snapshot_does_not_change_with_later_steps():
    run = WorkloadRun(golden.workload("named", "preempt_swap_v1"))
    with record(run.engine) as trace:
        steps = iter(run)
        next(steps)
        first = trace[0]
        before = (first.running, [seq.token_ids for seq in first.sequences.values()],
                  first.blocks().text())
        for _ in steps:
            pass
    assert len(trace) > 1
    assert trace[0] is first
    assert before == (first.running, [seq.token_ids for seq in first.sequences.values()],
                      first.blocks().text())
    with pytest.raises(AttributeError):
        first.step = 3  # type: ignore[misc]


def test_the_engine_is_left_as_it_was():
    run = WorkloadRun(poisson(3, 1.0, 10, 10, seed=0))
    with record(run.engine) as trace:
        next(iter(run))
    assert run.engine.observers == []
    run.engine.step()
    assert len(trace) == 1


def test_a_step_that_raises_is_not_recorded(monkeypatch: pytest.MonkeyPatch):
    run = WorkloadRun(poisson(2, 1.0, 10, 10, seed=0))
    with record(run.engine) as trace:
        steps = iter(run)
        next(steps)
        execute = run.engine.model_executor.execute_model
        monkeypatch.setattr(run.engine.model_executor, "execute_model",
                            lambda request: 1 / 0)  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError):
            next(steps)
        assert len(trace) == 1
        monkeypatch.setattr(run.engine.model_executor, "execute_model", execute)
        run.engine.step()
    assert len(trace) == 2
    assert trace[1].previous is trace[0]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_saved_and_loaded_it_is_the_same(tmp_path: Path, name: str):
    trace = recorded(golden.workload("named", "sampling_best_of4_n2_v1"))
    trace.save(tmp_path / name)
    again = load(tmp_path / name)
    assert again.limits == trace.limits
    assert again[:] == trace[:]
    assert [view.texts for view in again[-1].sequences.values()] == \
           [view.texts for view in trace[-1].sequences.values()]
    assert again[3].picture().text() == trace[3].picture().text()


def test_a_saved_trace_has_the_fields_of_the_format(tmp_path: Path):
    workload = golden.workload("named", "preempt_swap_v1")
    recorded(workload).save(tmp_path / "t.json", workload["name"])
    ours = golden.read_json(tmp_path / "t.json")
    assert first_difference(ours, golden.expected_trace("named", "preempt_swap_v1"),
                            ignore=("requests",)) is None
    assert all("decisions" in step for step in ours["steps"])


def test_a_trace_without_a_recording_says_what_to_do(tmp_path: Path):
    path = golden.GOLDEN / "named" / "preempt_swap_v1.trace.json.gz"
    with pytest.raises(ValueError, match="no recording.*minivllm simulate"):
        load(path)


def test_an_idle_engine_leaves_step_numbers_out():
    workload = poisson(2, 1.0, 4, 3, seed=1, **{**DEFAULT_ENGINE, "num_gpu_blocks": 50})
    workload["requests"][1]["arrival_step"] = 40
    trace = recorded(workload)
    numbers = [view.step for view in trace]
    assert numbers[0] == 0
    assert 40 in numbers
    assert len(numbers) < 40


def test_names_of_sequences():
    """A request of one sequence lends it its name; several are counted in order of joining."""
    trace = recorded(golden.workload("named", "sampling_best_of4_n2_v1"))
    request_id = trace[0].request_ids[0]
    names = [seq.name for seq in trace[0].seqs_of(request_id)]
    assert names == [f"{request_id}.{i}" for i in range(4)]
    waiting = [seq for view in trace for seq in view.sequences.values()
               if seq.status == SequenceStatus.WAITING.name and seq.num_tokens
               == seq.num_prompt_tokens]
    assert all(seq.name == seq.request_id for seq in waiting)


def test_what_is_not_there_is_an_error_that_lists_what_is():
    trace = recorded(golden.workload("named", "preempt_swap_v1"))
    with pytest.raises(ValueError, match="no request or sequence 'r99' in step 0; there are: "):
        trace[0].find("r99")
