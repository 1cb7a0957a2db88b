"""Numbers of a running engine, under vLLM's names (mirrors ``vllm/engine/metrics.py``).

`StatsObserver` makes a `Stats` of every step, `StatLogger` also prints a line every few seconds.
Both are observers: an engine without them pays nothing.  Left out: Prometheus.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minivllm.core.outputs import SchedulerOutputs
from minivllm.logger import init_logger
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput
from minivllm.sequence import SequenceGroup, SequenceGroupMetadata, SequenceStatus

if TYPE_CHECKING:
    from minivllm.engine.llm_engine import LLMEngine

logger = init_logger(__name__)


@dataclass(frozen=True)
class Stats:
    """One step in numbers.

    Attributes
    ----------
    now : float
        When, in seconds of the engine's clock.
    num_running_sys, num_waiting_sys, num_swapped_sys : int
        Requests in each queue after the step.
    gpu_cache_usage_sys, cpu_cache_usage_sys : float
        Share of each block pool that is in use, from 0 to 1.
    num_prompt_tokens_iter, num_generation_tokens_iter : int
        Tokens of prefills computed, and tokens sampled, in this step.
    time_to_first_tokens_iter : list of float
        Arrival to first token, of each request whose first token came in this step.
    time_per_output_tokens_iter : list of float
        Since the token before, of each request that decoded in this step.
    num_preemption_iter : int
        Requests that lost their blocks in this step.
    time_e2e_requests : list of float
        Arrival to end, of each request that ended in this step.
    num_prompt_tokens_requests, num_generation_tokens_requests : list of int
        Lengths: of each prompt, and of each output, that ended in this step.
    best_of_requests, n_requests : list of int
        Their sampling parameters.
    finished_reason_requests : list of str
        Why each of their sequences ended.
    """

    now: float
    num_running_sys: int
    num_waiting_sys: int
    num_swapped_sys: int
    gpu_cache_usage_sys: float
    cpu_cache_usage_sys: float
    num_prompt_tokens_iter: int
    num_generation_tokens_iter: int
    time_to_first_tokens_iter: list[float]
    time_per_output_tokens_iter: list[float]
    num_preemption_iter: int
    time_e2e_requests: list[float]
    num_prompt_tokens_requests: list[int]
    num_generation_tokens_requests: list[int]
    best_of_requests: list[int]
    n_requests: list[int]
    finished_reason_requests: list[str]


class StatsObserver:
    """Makes a `Stats` of every step.

    Attributes
    ----------
    stats : Stats or None
        Of the newest step.
    num_preemptions, prompt_tokens, generation_tokens : int
        Totals (vLLM's counters ``num_preemptions_total`` and so on).
    """

    def __init__(self) -> None:
        self.stats: Stats | None = None
        self.num_preemptions = 0
        self.prompt_tokens = 0
        self.generation_tokens = 0
        # What the groups of the batch looked like before their outputs were processed.
        self._batch: list[_Before] = []

    def on_schedule(self, engine: "LLMEngine",
                    seq_group_metadata_list: list[SequenceGroupMetadata],
                    scheduler_outputs: SchedulerOutputs) -> None:
        """Note when each group got its last token."""
        self._batch = [
            _Before(scheduled.seq_group, metadata.is_prompt,
                    metadata.token_chunk_size * len(metadata.seq_data), metadata.do_sample,
                    len(metadata.seq_data), scheduled.seq_group.metrics.last_token_time,
                    scheduled.seq_group.metrics.first_token_time is None)
            for scheduled, metadata in zip(scheduler_outputs.scheduled_seq_groups,
                                           seq_group_metadata_list, strict=True)]

    def on_step(self, engine: "LLMEngine", scheduler_outputs: SchedulerOutputs,
                request_outputs: list[RequestOutput | EmbeddingRequestOutput]) -> None:
        """Count the step."""
        now = engine.clock()
        ended = [before.seq_group for before in self._batch if before.seq_group.is_finished()]
        self.stats = Stats(
            now=now, num_preemption_iter=scheduler_outputs.preempted, **_system_stats(engine),
            **_iteration_stats(self._batch, now),
            **_request_stats([*ended, *scheduler_outputs.ignored_seq_groups], now))
        self.num_preemptions += self.stats.num_preemption_iter
        self.prompt_tokens += self.stats.num_prompt_tokens_iter
        self.generation_tokens += self.stats.num_generation_tokens_iter


@dataclass(frozen=True)
class _Before:
    """A group of the batch before its outputs were processed."""

    seq_group: SequenceGroup
    is_prompt: bool
    num_tokens: int
    do_sample: bool
    num_seqs: int
    last_token_time: float
    is_first_token: bool


def _system_stats(engine: "LLMEngine") -> dict[str, Any]:
    """Return how full queues and pools are."""
    scheduler, cache = engine.scheduler, engine.cache_config
    manager = scheduler.block_manager
    return {
        "num_running_sys": len(scheduler.running),
        "num_waiting_sys": len(scheduler.waiting),
        "num_swapped_sys": len(scheduler.swapped),
        "gpu_cache_usage_sys": _usage(manager.get_num_free_gpu_blocks(), cache.num_gpu_blocks),
        "cpu_cache_usage_sys": _usage(manager.get_num_free_cpu_blocks(), cache.num_cpu_blocks),
    }


def _iteration_stats(batch: "list[_Before]", now: float) -> dict[str, Any]:
    """Return what the step computed, and how long tokens took."""
    prefills = [before for before in batch if before.is_prompt]
    sampled = [before for before in prefills if before.do_sample]
    decodes = [before for before in batch if not before.is_prompt]
    return {
        "num_prompt_tokens_iter": sum(before.num_tokens for before in prefills),
        "num_generation_tokens_iter": (sum(before.num_seqs for before in decodes)
                                       + sum(before.seq_group.num_seqs() for before in sampled)),
        "time_to_first_tokens_iter": [now - before.seq_group.metrics.arrival_time
                                      for before in sampled if before.is_first_token],
        "time_per_output_tokens_iter": [now - before.last_token_time for before in decodes],
    }


def _request_stats(ended: list[SequenceGroup], now: float) -> dict[str, Any]:
    """Return what there is to say of requests that have ended."""
    seqs = [seq for group in ended for seq in group.get_finished_seqs()]
    params = [group.sampling_params for group in ended if group.sampling_params is not None]
    return {
        "time_e2e_requests": [now - group.metrics.arrival_time for group in ended],
        "num_prompt_tokens_requests": [len(group.prompt_token_ids) for group in ended],
        "num_generation_tokens_requests": [seq.get_output_len() for seq in seqs],
        "best_of_requests": [param.best_of for param in params],
        "n_requests": [param.n for param in params],
        "finished_reason_requests": [str(SequenceStatus.get_finished_reason(seq.status))
                                     for seq in seqs],
    }


def _usage(num_free: int, num_blocks: int | None) -> float:
    return 1 - num_free / num_blocks if num_blocks else 0.0


class StatLogger(StatsObserver):
    """Logs a line every few seconds, as vLLM's does.

    The level is INFO: ``MINIVLLM_LOGGING_LEVEL=INFO`` shows it.

    Parameters
    ----------
    local_interval : float
        Seconds of the engine's clock between two lines.
    """

    def __init__(self, local_interval: float = 5.0) -> None:
        super().__init__()
        self.local_interval = local_interval
        self.last_local_log: float | None = None
        # Totals when the last line was printed.
        self._prompt_tokens = 0
        self._generation_tokens = 0

    def on_schedule(self, engine: "LLMEngine",
                    seq_group_metadata_list: list[SequenceGroupMetadata],
                    scheduler_outputs: SchedulerOutputs) -> None:
        """Let the first interval begin with the first step."""
        if self.last_local_log is None:
            self.last_local_log = engine.clock()
        super().on_schedule(engine, seq_group_metadata_list, scheduler_outputs)

    def on_step(self, engine: "LLMEngine", scheduler_outputs: SchedulerOutputs,
                request_outputs: list[RequestOutput | EmbeddingRequestOutput]) -> None:
        """Count the step, and print if it is time."""
        super().on_step(engine, scheduler_outputs, request_outputs)
        if self.stats is not None and self.last_local_log is not None:
            elapsed = self.stats.now - self.last_local_log
            if elapsed > self.local_interval:
                logger.info("%s", self._line(self.stats, elapsed))
                self.last_local_log = self.stats.now
                self._prompt_tokens = self.prompt_tokens
                self._generation_tokens = self.generation_tokens

    def _line(self, stats: Stats, elapsed: float) -> str:
        prompt_throughput = (self.prompt_tokens - self._prompt_tokens) / elapsed
        generation_throughput = (self.generation_tokens - self._generation_tokens) / elapsed
        return (f"Avg prompt throughput: {prompt_throughput:.1f} tokens/s, "
                f"Avg generation throughput: {generation_throughput:.1f} tokens/s, "
                f"Running: {stats.num_running_sys} reqs, Swapped: {stats.num_swapped_sys} reqs, "
                f"Pending: {stats.num_waiting_sys} reqs, "
                f"GPU KV cache usage: {stats.gpu_cache_usage_sys * 100:.1f}%, "
                f"CPU KV cache usage: {stats.cpu_cache_usage_sys * 100:.1f}%.")
