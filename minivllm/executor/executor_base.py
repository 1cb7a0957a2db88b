"""What an executor is (mirrors ``vllm/executor/executor_base.py``)."""

from abc import ABC, abstractmethod
from typing import Any

from minivllm.config import CacheConfig, ModelConfig, SchedulerConfig
from minivllm.sequence import ExecuteModelRequest, SequenceGroupOutput


class ExecutorBase(ABC):
    """Runs a step's batch, for real or with a stand-in model.

    Parameters
    ----------
    model_config, cache_config, scheduler_config
        The engine's settings.
    attention_backend : str or type of AttentionBackend, optional
        How attention reads the paged cache.
    """

    def __init__(self, model_config: ModelConfig, cache_config: CacheConfig,
                 scheduler_config: SchedulerConfig, attention_backend: Any = None) -> None:
        self.model_config = model_config
        self.cache_config = cache_config
        self.scheduler_config = scheduler_config
        self.attention_backend = attention_backend

    @abstractmethod
    def determine_num_available_blocks(self) -> tuple[int, int]:
        """Return how many GPU and CPU blocks there is room for."""

    @abstractmethod
    def initialize_cache(self, num_gpu_blocks: int, num_cpu_blocks: int) -> None:
        """Make the two block pools."""

    @abstractmethod
    def execute_model(self, execute_model_req: ExecuteModelRequest) -> list[SequenceGroupOutput]:
        """Move blocks, run the batch, and return one output for each group, in batch order."""
