"""Trace files, ``minivllm-trace/1``: what an engine decided and answered, step by step.

`TraceRecorder` watches an engine and writes down each step; `first_difference` compares two
traces.  Beside the fields of the format a step has ``decisions``, why it was decided so; the
comparison leaves that out.
"""

from dataclasses import asdict
from typing import Any

from minivllm.core.scheduler import SchedulerOutputs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput
from minivllm.sequence import SequenceGroupMetadata
from minivllm.tracing.run import StepClock, WorkloadRun
from minivllm.workloads import Workload

FORMAT = "minivllm-trace/1"

# In the order in which they are decided.
STEP_FIELDS = (
    "step", "scheduled", "num_prefill_groups", "num_batched_tokens", "blocks_to_swap_in",
    "blocks_to_swap_out", "blocks_to_copy", "ignored", "preempted", "running_queue_size",
    "waiting", "running", "swapped", "free_gpu_blocks", "free_cpu_blocks", "outputs")
FINAL_FIELDS = ("requests", "total_steps", "total_preemptions", "free_gpu_blocks",
                "free_cpu_blocks")


class TraceRecorder:
    """An observer of an engine that writes down every step.

    Parameters
    ----------
    clock : StepClock
        The engine's.

    Attributes
    ----------
    steps : list of dict
        ``steps`` of the trace.
    finished : dict of str to RequestOutput
        Requests that have ended by themselves.
    """

    def __init__(self, clock: StepClock) -> None:
        self.clock = clock
        self.steps: list[dict[str, Any]] = []
        self.finished: dict[str, RequestOutput] = {}

    def on_schedule(self, engine: LLMEngine,
                    seq_group_metadata_list: list[SequenceGroupMetadata],
                    scheduler_outputs: SchedulerOutputs) -> None:
        """Write down what has been decided."""
        decided = scheduler_outputs
        self.steps.append({
            "step": self.clock.step,
            "scheduled": [_scheduled(metadata) for metadata in seq_group_metadata_list],
            "num_prefill_groups": decided.num_prefill_groups,
            "num_batched_tokens": decided.num_batched_tokens,
            "blocks_to_swap_in": _pairs(decided.blocks_to_swap_in),
            "blocks_to_swap_out": _pairs(decided.blocks_to_swap_out),
            "blocks_to_copy": _pairs(decided.blocks_to_copy),
            "ignored": [group.request_id for group in decided.ignored_seq_groups],
            "preempted": decided.preempted,
            "running_queue_size": decided.running_queue_size,
            "decisions": [asdict(decision) for decision in decided.decisions],
        })

    def on_step(self, engine: LLMEngine, scheduler_outputs: SchedulerOutputs,
                request_outputs: list[RequestOutput | EmbeddingRequestOutput]) -> None:
        """Write down what has come of it."""
        scheduler = engine.scheduler
        completions = [output for output in request_outputs if isinstance(output, RequestOutput)]
        self.steps[-1].update({
            "waiting": [group.request_id for group in scheduler.waiting],
            "running": [group.request_id for group in scheduler.running],
            "swapped": [group.request_id for group in scheduler.swapped],
            "free_gpu_blocks": scheduler.block_manager.get_num_free_gpu_blocks(),
            "free_cpu_blocks": scheduler.block_manager.get_num_free_cpu_blocks(),
            "outputs": [_request(output, with_tokens=output.finished) for output in completions],
        })
        self.finished |= {output.request_id: output for output in completions if output.finished}


def trace_workload(workload: Workload) -> dict[str, Any]:
    """Run `workload` to its end and return its trace."""
    run = WorkloadRun(workload)
    recorder = TraceRecorder(run.clock)
    run.engine.observers.append(recorder)
    for _ in run:
        pass
    return finish_trace(run, recorder)


def finish_trace(run: WorkloadRun, recorder: TraceRecorder) -> dict[str, Any]:
    """Return the trace of `run`, which has come to its end."""
    ended = recorder.finished | run.aborted
    block_manager = run.engine.scheduler.block_manager
    return {
        "format": FORMAT,
        "workload": run.workload["name"],
        "stalled": False,
        "error": None,
        "steps": recorder.steps,
        "final": {
            "requests": [_request(ended[request["request_id"]], with_tokens=True)
                         for request in run.workload["requests"]],
            "total_steps": len(recorder.steps),
            "total_preemptions": sum(step["preempted"] for step in recorder.steps),
            "free_gpu_blocks": block_manager.get_num_free_gpu_blocks(),
            "free_cpu_blocks": block_manager.get_num_free_cpu_blocks(),
        },
    }


def _scheduled(metadata: SequenceGroupMetadata) -> dict[str, Any]:
    return {
        "request_id": metadata.request_id,
        "is_prompt": metadata.is_prompt,
        "token_chunk_size": metadata.token_chunk_size,
        "do_sample": metadata.do_sample,
        "seqs": [{"seq_id": seq_id, "len": data.get_len(),
                  "num_computed_tokens": data.get_num_computed_tokens(),
                  "block_table": list(metadata.block_tables[seq_id])}
                 for seq_id, data in metadata.seq_data.items()],
        "computed_block_nums": list(metadata.computed_block_nums),
    }


def _pairs(blocks: list[tuple[int, int]]) -> list[list[int]]:
    return [[source, destination] for source, destination in blocks]


def _request(request_output: RequestOutput, with_tokens: bool) -> dict[str, Any]:
    return {"request_id": request_output.request_id, "finished": request_output.finished,
            "outputs": [{
                "index": output.index,
                **({"token_ids": list(output.token_ids)} if with_tokens
                   else {"num_output_tokens": len(output.token_ids)}),
                "cumulative_logprob": round(output.cumulative_logprob, 6),
                "finish_reason": output.finish_reason,
                "stop_reason": output.stop_reason,
            } for output in request_output.outputs]}
