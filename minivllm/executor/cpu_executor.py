"""Runs steps on this machine, in this process (mirrors ``vllm/executor/cpu_executor.py``)."""

from typing import Any

from minivllm.config import CacheConfig, ModelConfig, SchedulerConfig
from minivllm.executor.executor_base import ExecutorBase
from minivllm.sequence import ExecuteModelRequest, SequenceGroupOutput
from minivllm.worker.worker import Worker


class CPUExecutor(ExecutorBase):
    """One worker that holds the model and the KV cache.

    Parameters
    ----------
    model : optional
        A loaded model to share; default: read the weights that `model_config` names.
    """

    def __init__(self, model_config: ModelConfig, cache_config: CacheConfig,
                 scheduler_config: SchedulerConfig, attention_backend: Any = None,
                 model: Any = None) -> None:
        super().__init__(model_config, cache_config, scheduler_config, attention_backend)
        self.driver_worker = Worker(model_config, cache_config, scheduler_config,
                                    attention_backend)
        self.driver_worker.load_model(model)

    def determine_num_available_blocks(self) -> tuple[int, int]:
        """Return how many blocks the configured spaces hold."""
        return self.driver_worker.determine_num_available_blocks()

    def initialize_cache(self, num_gpu_blocks: int, num_cpu_blocks: int) -> None:
        """Make the two block pools."""
        self.driver_worker.initialize_cache(num_gpu_blocks, num_cpu_blocks)

    def execute_model(self, execute_model_req: ExecuteModelRequest) -> list[SequenceGroupOutput]:
        """Run a step in the worker."""
        return self.driver_worker.execute_model(execute_model_req)
