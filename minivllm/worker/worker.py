"""The worker: owns the model and the KV cache (mirrors ``vllm/worker/worker.py``)."""

from itertools import groupby
from operator import itemgetter
from typing import Any

from minivllm.attention.selector import get_attn_backend
from minivllm.config import CacheConfig, ModelConfig, SchedulerConfig
from minivllm.sequence import ExecuteModelRequest, SequenceGroupOutput
from minivllm.worker.cache_engine import CacheEngine
from minivllm.worker.embedding_model_runner import EmbeddingModelRunner
from minivllm.worker.model_runner import ModelRunner


class Worker:
    """Runs steps: first blocks move, then the model runs."""

    def __init__(self, model_config: ModelConfig, cache_config: CacheConfig,
                 scheduler_config: SchedulerConfig, attention_backend: Any = None) -> None:
        self.model_config = model_config
        self.cache_config = cache_config
        self.attn_backend = get_attn_backend(attention_backend, model_config)
        runner = EmbeddingModelRunner if scheduler_config.embedding_mode else ModelRunner
        self.model_runner = runner(model_config, cache_config, self.attn_backend)
        self.cache_engine: CacheEngine | None = None

    def load_model(self, model: Any = None) -> None:
        """Read the weights, or share those of a `model` that is loaded already."""
        self.model_runner.load_model(model)

    def determine_num_available_blocks(self) -> tuple[int, int]:
        """Return how many blocks the configured spaces hold, unless numbers are given."""
        config = self.cache_config
        block_bytes = CacheEngine.get_cache_block_size(config.block_size, self.model_config)
        num_gpu_blocks = config.num_gpu_blocks_override
        if num_gpu_blocks is None:
            num_gpu_blocks = config.kv_cache_space_bytes // block_bytes
        num_cpu_blocks = config.num_cpu_blocks_override
        if num_cpu_blocks is None:
            num_cpu_blocks = config.swap_space_bytes // block_bytes
        if num_gpu_blocks < 1:
            raise ValueError(
                f"no GPU blocks: one block of {config.block_size} tokens takes {block_bytes:,} "
                f"bytes, the space is {config.kv_cache_space_bytes:,}. Raise kv_cache_space.")
        return num_gpu_blocks, num_cpu_blocks

    def initialize_cache(self, num_gpu_blocks: int, num_cpu_blocks: int) -> None:
        """Make the two block pools."""
        try:
            self.cache_engine = CacheEngine(self.cache_config, self.model_config,
                                            self.attn_backend, num_gpu_blocks, num_cpu_blocks)
        except (MemoryError, ValueError) as error:
            raise ValueError(
                f"there is no memory for {num_gpu_blocks:,} GPU blocks and {num_cpu_blocks:,} CPU "
                f"blocks of {self.cache_config.block_size:,} tokens: {error}. Lower "
                "kv_cache_space, swap_space, or the numbers of blocks.") from error

    def execute_model(self, execute_model_req: ExecuteModelRequest) -> list[SequenceGroupOutput]:
        """Run one step: first blocks move, then the model runs."""
        cache = self.cache_engine
        kv_caches = []
        if cache is not None:
            self._move_blocks(cache, execute_model_req)
            kv_caches = cache.gpu_cache
        if not execute_model_req.seq_group_metadata_list:
            return []
        return self.model_runner.execute_model(execute_model_req.seq_group_metadata_list,
                                               kv_caches)

    @staticmethod
    def _move_blocks(cache: CacheEngine, request: ExecuteModelRequest) -> None:
        """Move blocks in the order in which the scheduler decided.

        What is swapped out makes room for copies; a block that was copied and given up makes room
        for a swap-in; what was swapped in may be copied at once.
        """
        cache.swap_out(request.blocks_to_swap_out)
        num_copied = 0
        swap_ins = zip(request.blocks_to_swap_in, request.num_copies_before_swap_in, strict=True)
        for num_before, pairs in groupby(swap_ins, key=itemgetter(1)):
            cache.copy(request.blocks_to_copy[num_copied:num_before])
            cache.swap_in([pair for pair, _ in pairs])
            num_copied = num_before
        cache.copy(request.blocks_to_copy[num_copied:])
