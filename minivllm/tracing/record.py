"""Recording an engine: an observer that writes down every step (vLLM has nothing like it).

For example::

    with record(llm) as trace:
        llm.generate(prompts)
    trace[2].waiting

What is written down is what a trace file holds: the format's fields, the decisions, and under
``state`` what pictures need beside them.  An engine that nobody records pays nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from minivllm.core.scheduler import SchedulerOutputs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput
from minivllm.sequence import (
    Sequence,
    SequenceGroup,
    SequenceGroupMetadata,
    SequenceStatus,
)
from minivllm.tracing.attention import RecordingBackend
from minivllm.tracing.block_states import block_rows, block_table
from minivllm.tracing.recording import SequenceRow, Trace
from minivllm.tracing.run import StepClock
from minivllm.tracing.snapshot import Limits, TokenLog
from minivllm.tracing.token_text import token_text
from minivllm.tracing.trace import TraceRecorder
from minivllm.utils import Device

_DEVICES = {SequenceStatus.RUNNING: Device.GPU, SequenceStatus.SWAPPED: Device.CPU}
_NAMES = {Device.GPU: "gpu", Device.CPU: "cpu"}


class HasEngine(Protocol):
    """What `minivllm.LLM` is to the recorder."""

    llm_engine: LLMEngine


@contextmanager
def record(llm: HasEngine | LLMEngine) -> Iterator[Trace]:
    """Record every step that `llm` or an engine makes inside the ``with`` block.

    Yields
    ------
    Trace
        Grows by a snapshot with each step.
    """
    engine = llm if isinstance(llm, LLMEngine) else llm.llm_engine
    recorder = Recorder(engine)
    engine.observers.append(recorder)
    try:
        yield recorder.trace
    finally:
        engine.observers.remove(recorder)


class Recorder:
    """The observer behind `record`.

    Parameters
    ----------
    engine : LLMEngine
        Which engine it will watch.

    Attributes
    ----------
    trace : Trace
        What has been recorded.
    format_recorder : TraceRecorder
        Writes the fields of the trace format.
    """

    def __init__(self, engine: LLMEngine) -> None:
        if (backend := _recording_backend(engine)) is not None:
            backend.check(engine.model_config)
        # A simulation's clock knows the number of the step; else steps are counted here.
        self._is_simulation = isinstance(engine.clock, StepClock)
        self._clock = engine.clock if isinstance(engine.clock, StepClock) else StepClock()
        self.format_recorder = TraceRecorder(self._clock)
        self.trace = Trace(limits_of(engine), self.format_recorder.steps)
        self._running = [group.request_id for group in engine.scheduler.running]
        # request_id -> its group, and seq_ids in order of joining.
        self._joined: dict[str, tuple[SequenceGroup, list[int]]] = {}

    def on_schedule(self, engine: LLMEngine,
                    seq_group_metadata_list: list[SequenceGroupMetadata],
                    scheduler_outputs: SchedulerOutputs) -> None:
        """Write down what has been decided."""
        steps = self.format_recorder.steps
        if steps and "state" not in steps[-1]:
            # The model raised an error in the step before: it never was.
            steps.pop()
        if (backend := _recording_backend(engine)) is not None:
            backend.take_weights()  # of a step that nobody recorded
        self.format_recorder.on_schedule(engine, seq_group_metadata_list, scheduler_outputs)

    def on_step(self, engine: LLMEngine, scheduler_outputs: SchedulerOutputs,
                request_outputs: list[RequestOutput | EmbeddingRequestOutput]) -> None:
        """Write down what has come of it."""
        self.format_recorder.on_step(engine, scheduler_outputs, request_outputs)
        scheduler = engine.scheduler
        stopped = {group.request_id for group in (*scheduler.waiting, *scheduler.swapped)}
        rows = [self._sequence(engine, group, seq)
                for group in self._groups(engine, scheduler_outputs) for seq in group.get_seqs()]
        self.format_recorder.steps[-1]["state"] = {
            "preempted": [name for name in self._running if name in stopped],
            "sequences": [list(row) for row in rows],
            **{f"{name}_blocks": [list(block) for block in block_rows(
                scheduler.block_manager, device,
                [row.block_table for row in rows if row.device == name])]
               for device, name in _NAMES.items()},
            **self._attention(engine),
        }
        self._running = [group.request_id for group in scheduler.running]
        if not self._is_simulation:
            self._clock.step += 1

    def _attention(self, engine: LLMEngine) -> dict[str, Any]:
        """Return what a recording attention backend has seen of the step's decodes."""
        backend = _recording_backend(engine)
        weights = [] if backend is None else backend.take_weights()
        if backend is None or not weights:
            return {}
        decodes = [seq["seq_id"] for request in self.format_recorder.steps[-1]["scheduled"]
                   if not request["is_prompt"] for seq in request["seqs"]]
        return {"attention": {
            "layer": backend.layer, "head": backend.head,
            "weights": {seq_id: [round(float(weight), 6) for weight in row]
                        for seq_id, row in zip(decodes, weights, strict=True)}}}

    def _groups(self, engine: LLMEngine,
                scheduler_outputs: SchedulerOutputs) -> list[SequenceGroup]:
        """Return the queued groups and those that ended in this step, in order of arrival."""
        scheduler = engine.scheduler
        ended = [scheduled.seq_group for scheduled in scheduler_outputs.scheduled_seq_groups
                 if scheduled.seq_group.is_finished()]
        groups = [*scheduler.waiting, *scheduler.running, *scheduler.swapped, *ended,
                  *scheduler_outputs.ignored_seq_groups]
        for group in groups:
            self._join(group)
        return sorted(groups, key=lambda group: self._joined[group.request_id][1][0])

    def _join(self, group: SequenceGroup) -> None:
        """Note which sequences a group has, and has had."""
        known, seq_ids = self._joined.get(group.request_id, (None, []))
        if known is not group:
            # A name may be used again once its first bearer has ended.
            seq_ids = []
            self._joined[group.request_id] = (group, seq_ids)
        seq_ids += [seq.seq_id for seq in group.get_seqs() if seq.seq_id not in seq_ids]

    def _sequence(self, engine: LLMEngine, group: SequenceGroup, seq: Sequence) -> SequenceRow:
        """Describe a sequence and write its new tokens down."""
        log = self.trace.logs.setdefault(seq.seq_id, TokenLog(group.request_id,
                                                              seq.get_prompt_len()))
        new_ids = seq.get_token_ids()[len(log.token_ids):]
        log.token_ids += new_ids
        log.texts += [token_text(engine.tokenizer, token_id) for token_id in new_ids]
        seq_ids = self._joined[group.request_id][1]
        name = group.request_id
        if len(seq_ids) > 1:
            name += f".{seq_ids.index(seq.seq_id)}"
        device = _DEVICES.get(seq.status)
        table = block_table(engine.scheduler.block_manager, seq, device) if device else []
        return SequenceRow(
            seq.seq_id, name, seq.status.name, seq.get_len(), seq.data.get_num_computed_tokens(),
            _NAMES[device] if device else None, table, seq.get_cumulative_logprob(),
            SequenceStatus.get_finished_reason(seq.status))


def _recording_backend(engine: LLMEngine) -> type[RecordingBackend] | None:
    backend = engine.model_executor.attention_backend
    if isinstance(backend, type) and issubclass(backend, RecordingBackend):
        return backend
    return None


def limits_of(engine: LLMEngine) -> Limits:
    """Return the limits of an engine."""
    cache, scheduler = engine.cache_config, engine.scheduler_config
    return Limits(
        block_size=cache.block_size, num_gpu_blocks=cache.num_gpu_blocks or 0,
        num_cpu_blocks=cache.num_cpu_blocks or 0, max_num_seqs=scheduler.max_num_seqs,
        max_num_batched_tokens=scheduler.max_num_batched_tokens,
        max_model_len=scheduler.max_model_len,
        enable_chunked_prefill=scheduler.chunked_prefill_enabled,
        enable_prefix_caching=cache.enable_prefix_caching,
        use_v2_block_manager=scheduler.use_v2_block_manager,
        preemption_mode=scheduler.preemption_mode)
