"""A recorded run: snapshots by step, with their pictures, kept in a trace file.

Beside the fields of ``minivllm-trace/1`` and the decisions such a file has, under ``recording``,
the engine's limits and the tokens of every sequence, and under ``state`` of each step the
sequences and blocks after it.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, NamedTuple, overload

from minivllm.decisions import Check, Decision, Verdict
from minivllm.tracing.batch import (
    AttentionState,
    CompletionState,
    RequestResult,
    ScheduledRequest,
    ScheduledSequence,
)
from minivllm.tracing.compare import check_trace
from minivllm.tracing.files import read_json, write_json
from minivllm.tracing.snapshot import (
    BlockState,
    Limits,
    PoolState,
    SequenceState,
    TokenLog,
    holders_of,
)
from minivllm.tracing.trace import FORMAT
from minivllm.viz.animation import animated_svg
from minivllm.viz.view import View


class SequenceRow(NamedTuple):
    """A sequence after a step, as a trace file has it; see `SequenceState`."""

    seq_id: int
    name: str
    status: str
    num_tokens: int
    num_computed_tokens: int
    device: str | None
    block_table: list[int]
    cumulative_logprob: float
    finish_reason: str | None


class Trace:
    """What a recorder has seen; ``trace[k]`` is the k-th recorded step.

    Parameters
    ----------
    limits : Limits
        The engine's.
    steps : list of dict
        The steps as a trace file has them; a recorder adds to it.

    Attributes
    ----------
    logs : dict of int to TokenLog
        seq_id -> its tokens so far.
    """

    def __init__(self, limits: Limits, steps: list[dict[str, Any]]) -> None:
        self.limits = limits
        self.steps = steps
        self.logs: dict[int, TokenLog] = {}
        self._views: list[View] = []

    def __len__(self) -> int:
        # A step that the model has not come back from is not complete.
        return len(self.steps) - bool(self.steps and "state" not in self.steps[-1])

    @overload
    def __getitem__(self, index: int) -> View: ...
    @overload
    def __getitem__(self, index: slice) -> list[View]: ...
    def __getitem__(self, index: int | slice) -> View | list[View]:
        """Return the snapshot of a recorded step, or of several."""
        for step in self.steps[len(self._views):len(self)]:
            self._views.append(_view(step, self.limits, self.logs, self._last_view()))
        if isinstance(index, int) and not -len(self) <= index < len(self):
            raise IndexError(f"trace[{index}] is not there: {len(self)} steps have been recorded.")
        return self._views[index]

    def _last_view(self) -> View | None:
        return self._views[-1] if self._views else None

    def __iter__(self) -> Iterator[View]:
        return iter(self[:])

    def __repr__(self) -> str:
        return f"Trace({len(self)} steps, {len({log.request_id for log in self.logs.values()})} " \
               "requests)"

    def svg(self, path: str | os.PathLike[str] | None = None, animate: bool = False) -> str:
        """Return the last step as SVG, or with `animate` one that plays all steps."""
        if not len(self):
            raise ValueError("nothing has been recorded: there is no step to draw.")
        if not animate:
            return self[-1].picture().svg(path)
        svg = animated_svg(self[:])
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(svg)
        return svg

    def save(self, path: str | os.PathLike[str], workload: str = "recording",
             final: dict[str, Any] | None = None) -> None:
        """Write a trace file, gzipped if its name ends in ``.gz``.

        Parameters
        ----------
        path : path
            The file.
        workload : str
            What was run.
        final : dict, optional
            ``final`` of the trace; by default made from the steps, without requests that have
            not ended by themselves.
        """
        steps = self.steps[:len(self)]
        write_json(str(path), {
            "format": FORMAT, "workload": workload, "stalled": False, "error": None,
            "recording": {"limits": asdict(self.limits),
                          "sequences": {seq_id: asdict(log) for seq_id, log in self.logs.items()}},
            "steps": steps, "final": final or _final(steps)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Trace":
        """Read a trace file that `save` has written.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If it is no trace, or one without what pictures need.
        """
        data = check_trace(read_json(str(path)), str(path))
        if "recording" not in data or any("state" not in step for step in data["steps"]):
            raise ValueError(
                f"{path}: this trace has no recording, so there is nothing to draw. Record its "
                "workload anew: minivllm simulate WORKLOAD.json --trace FILE.")
        try:
            trace = cls(Limits(**data["recording"]["limits"]), data["steps"])
            trace.logs = {int(seq_id): TokenLog(**log)
                          for seq_id, log in data["recording"]["sequences"].items()}
            trace[:]
        except _BROKEN as error:
            raise ValueError(f"{path}: its recording is broken: {error!r}.") from error
        return trace


load = Trace.load

# What comes of a file that lacks something, or has something else in its place.
_BROKEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def _final(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "requests": [{"request_id": output["request_id"], "finished": True,
                      "outputs": output["outputs"]}
                     for step in steps for output in step["outputs"] if output["finished"]],
        "total_steps": len(steps),
        "total_preemptions": sum(step["preempted"] for step in steps),
        "free_gpu_blocks": steps[-1]["free_gpu_blocks"] if steps else None,
        "free_cpu_blocks": steps[-1]["free_cpu_blocks"] if steps else None,
    }


def _view(step: dict[str, Any], limits: Limits, logs: dict[int, TokenLog],
          previous: View | None) -> View:
    """Return the snapshot that a step of a trace file describes."""
    state = step["state"]
    rows = [SequenceRow(*row) for row in state["sequences"]]
    sequences = {row.seq_id: _sequence(row, logs[row.seq_id]) for row in rows}
    return View(
        step=step["step"], limits=limits,
        waiting=tuple(step["waiting"]), running=tuple(step["running"]),
        swapped=tuple(step["swapped"]), sequences=sequences,
        gpu=_pool("gpu", limits.num_gpu_blocks, step["free_gpu_blocks"], state["gpu_blocks"],
                  sequences, limits.block_size),
        cpu=_pool("cpu", limits.num_cpu_blocks, step["free_cpu_blocks"], state["cpu_blocks"],
                  sequences, limits.block_size),
        scheduled=tuple(_scheduled(entry) for entry in step["scheduled"]),
        num_prefill_groups=step["num_prefill_groups"],
        num_batched_tokens=step["num_batched_tokens"],
        running_queue_size=step["running_queue_size"],
        blocks_to_swap_in=_pairs(step["blocks_to_swap_in"]),
        blocks_to_swap_out=_pairs(step["blocks_to_swap_out"]),
        blocks_to_copy=_pairs(step["blocks_to_copy"]),
        ignored=tuple(step["ignored"]), preempted=tuple(state["preempted"]),
        decisions=tuple(_decision(decision) for decision in step["decisions"]),
        outputs=tuple(_result(output) for output in step["outputs"]),
        attention_weights=_attention(state["attention"]) if "attention" in state else None,
        previous=previous)


def _sequence(row: SequenceRow, log: TokenLog) -> SequenceState:
    return SequenceState(**row._asdict() | {"block_table": tuple(row.block_table)}, log=log)


def _pool(device: str, num_blocks: int, num_free: int, rows: list[list[Any]],
          sequences: dict[int, SequenceState], block_size: int) -> PoolState:
    holders: dict[int, list[tuple[int, int]]] = {}
    num_filled: dict[int, int] = {}
    for number, seq, logical_idx in holders_of(sequences, device):
        holders.setdefault(number, []).append((seq.seq_id, logical_idx))
        filled = seq.num_filled(logical_idx, block_size)
        num_filled[number] = max(num_filled.get(number, 0), filled)
    blocks = {number: BlockState(number, ref_count, content_hash,
                                 num_filled.get(number, 0), tuple(holders.get(number, ())))
              for number, ref_count, content_hash in rows}
    return PoolState(device, num_blocks, num_free, blocks)


def _decision(fields: dict[str, Any]) -> Decision:
    return Decision(**fields | {"verdict": Verdict(fields["verdict"]),
                                "check": Check(fields["check"])})


def _scheduled(entry: dict[str, Any]) -> ScheduledRequest:
    return ScheduledRequest(
        entry["request_id"], entry["is_prompt"], entry["token_chunk_size"], entry["do_sample"],
        tuple(ScheduledSequence(seq["seq_id"], seq["len"], seq["num_computed_tokens"],
                                tuple(seq["block_table"])) for seq in entry["seqs"]),
        tuple(entry["computed_block_nums"]))


def _result(output: dict[str, Any]) -> RequestResult:
    return RequestResult(output["request_id"], output["finished"], tuple(
        CompletionState(
            completion["index"],
            completion.get("num_output_tokens", len(completion.get("token_ids", ()))),
            tuple(completion["token_ids"]) if "token_ids" in completion else None,
            completion["cumulative_logprob"], completion["finish_reason"],
            completion["stop_reason"])
        for completion in output["outputs"]))


def _attention(fields: dict[str, Any]) -> AttentionState:
    return AttentionState(fields["layer"], fields["head"],
                          {int(seq_id): tuple(weights)
                           for seq_id, weights in fields["weights"].items()})


def _pairs(pairs: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((source, destination) for source, destination in pairs)
