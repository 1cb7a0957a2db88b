"""The numbers of a run: what a workload did to an engine."""

from dataclasses import dataclass, field

from minivllm.core.scheduler import SchedulerOutputs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput
from minivllm.sequence import SequenceGroupMetadata


@dataclass(slots=True)
class RequestSummary:
    """What became of one request.

    Attributes
    ----------
    request_id : str
        Whose.
    first_step, last_step : int or None
        In which step it first ran and in which it ended; None if it never did.
    num_prompt_tokens, num_output_tokens : int
        Output tokens of all returned sequences together.
    finish_reason : str
        That of the best sequence.
    """

    request_id: str
    first_step: int | None
    last_step: int | None
    num_prompt_tokens: int
    num_output_tokens: int
    finish_reason: str

    @classmethod
    def of(cls, output: RequestOutput) -> "RequestSummary":
        """Sum up a request that has ended."""
        metrics = output.metrics
        return cls(
            output.request_id,
            None if metrics is None else _step(metrics.first_scheduled_time),
            None if metrics is None else _step(metrics.finished_time),
            len(output.prompt_token_ids),
            sum(len(completion.token_ids) for completion in output.outputs),
            output.outputs[0].finish_reason or "")


def _step(time: float | None) -> int | None:
    """Return a time of the engine's clock, which counts steps."""
    return None if time is None else int(time)


@dataclass
class RunSummary:
    """An observer that counts.

    Attributes
    ----------
    num_steps : int
        Steps of the engine.
    num_batched_tokens : int
        Tokens that went through the model, those computed a second time included.
    num_preemptions : int
        Groups that had to give way.
    num_blocks_swapped_in, num_blocks_swapped_out, num_blocks_copied : int
        Moves of blocks.
    num_prefix_hits, num_hit_blocks : int
        Prompts that found their first blocks computed already, and how many blocks.
    peak_gpu_blocks : int
        Most blocks in use at a time, without those that are cached but unused.
    num_ignored : int
        Requests given up.
    requests : list of RequestSummary
        In the order in which they ended.
    """

    num_steps: int = 0
    num_batched_tokens: int = 0
    num_preemptions: int = 0
    num_blocks_swapped_in: int = 0
    num_blocks_swapped_out: int = 0
    num_blocks_copied: int = 0
    num_prefix_hits: int = 0
    num_hit_blocks: int = 0
    peak_gpu_blocks: int = 0
    num_ignored: int = 0
    requests: list[RequestSummary] = field(default_factory=list)

    def on_schedule(self, engine: LLMEngine,
                    seq_group_metadata_list: list[SequenceGroupMetadata],
                    scheduler_outputs: SchedulerOutputs) -> None:
        """Count what has been decided."""
        decided = scheduler_outputs
        self.num_steps += 1
        self.num_batched_tokens += decided.num_batched_tokens
        self.num_preemptions += decided.preempted
        self.num_blocks_swapped_in += len(decided.blocks_to_swap_in)
        self.num_blocks_swapped_out += len(decided.blocks_to_swap_out)
        self.num_blocks_copied += len(decided.blocks_to_copy)
        self.num_ignored += len(decided.ignored_seq_groups)
        num_free = engine.scheduler.block_manager.get_num_free_gpu_blocks()
        num_used = (engine.cache_config.num_gpu_blocks or 0) - num_free
        self.peak_gpu_blocks = max(self.peak_gpu_blocks, num_used)
        for metadata in seq_group_metadata_list:
            if metadata.is_prompt and metadata.computed_block_nums:
                self.num_prefix_hits += 1
                self.num_hit_blocks += len(metadata.computed_block_nums)

    def on_step(self, engine: LLMEngine, scheduler_outputs: SchedulerOutputs,
                request_outputs: list[RequestOutput | EmbeddingRequestOutput]) -> None:
        """Take down the requests that have ended."""
        self.requests += [RequestSummary.of(output) for output in request_outputs
                          if output.finished and isinstance(output, RequestOutput)]
