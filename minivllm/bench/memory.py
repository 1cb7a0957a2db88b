"""What blocks save: slots of the KV cache beside contiguous rows, and prompts found in it."""

from dataclasses import dataclass, field
from statistics import mean

from minivllm.core.scheduler import SchedulerOutputs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput
from minivllm.sequence import SequenceGroupMetadata, SequenceStatus
from minivllm.utils import InternalError


@dataclass
class MemoryWatch:
    """An observer of an engine that notes, before each step, what memory its sequences take.

    Attributes
    ----------
    tokens : list of int
        Tokens of all running sequences: slots that are needed, if nothing is shared.
    paged_slots : list of int
        Slots of the blocks in use.
    known_length_slots : list of int
        What contiguous rows would take, if the final length of each sequence were known.
    longest_slots : list of int
        What contiguous rows of `max_model_len` would take.
    prompt_tokens, cached_tokens : dict of str to int
        Length of each request's prompt, and how much of it was found in the cache.
    """

    tokens: list[int] = field(default_factory=list)
    paged_slots: list[int] = field(default_factory=list)
    known_length_slots: list[int] = field(default_factory=list)
    longest_slots: list[int] = field(default_factory=list)
    prompt_tokens: dict[str, int] = field(default_factory=dict)
    cached_tokens: dict[str, int] = field(default_factory=dict)

    def on_schedule(self, engine: LLMEngine,
                    seq_group_metadata_list: list[SequenceGroupMetadata],
                    scheduler_outputs: SchedulerOutputs) -> None:
        """Count, once the step's blocks are there."""
        self._count_slots(engine)
        for metadata in seq_group_metadata_list:
            if metadata.request_id not in self.prompt_tokens:
                prompt = next(iter(metadata.seq_data.values())).prompt_token_ids
                self.prompt_tokens[metadata.request_id] = len(prompt)
                self.cached_tokens[metadata.request_id] = (
                    len(metadata.computed_block_nums) * engine.cache_config.block_size)

    def on_step(self, engine: LLMEngine, scheduler_outputs: SchedulerOutputs,
                request_outputs: list[RequestOutput | EmbeddingRequestOutput]) -> None:
        """Do nothing: the step has been counted."""

    def _count_slots(self, engine: LLMEngine) -> None:
        scheduler, cache = engine.scheduler, engine.cache_config
        if cache.num_gpu_blocks is None:
            raise InternalError("an engine that runs has no number of GPU blocks.")
        lengths = [(seq.get_len(), seq.get_prompt_len() + (group.sampling_params.max_tokens or 0))
                   for group in scheduler.running if group.sampling_params is not None
                   for seq in group.get_seqs(SequenceStatus.RUNNING)]
        self.tokens.append(sum(now for now, _ in lengths))
        num_blocks = cache.num_gpu_blocks - scheduler.block_manager.get_num_free_gpu_blocks()
        self.paged_slots.append(num_blocks * cache.block_size)
        self.known_length_slots.append(sum(final for _, final in lengths))
        self.longest_slots.append(len(lengths) * engine.scheduler_config.max_model_len)

    @property
    def hit_rate(self) -> float:
        """Part of all prompt tokens that was found in the cache."""
        return sum(self.cached_tokens.values()) / sum(self.prompt_tokens.values())

    def mean_slots(self) -> dict[str, float]:
        """Return the mean over all steps of each number of slots."""
        return {"tokens": mean(self.tokens), "paged": mean(self.paged_slots),
                "rows of known length": mean(self.known_length_slots),
                "rows of max_model_len": mean(self.longest_slots)}
