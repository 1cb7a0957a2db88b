"""The arrays of the two block pools (mirrors ``vllm/worker/cache_engine.py``)."""

import numpy as np
from numpy.typing import NDArray

from minivllm.attention.backends.abstract import AttentionBackend
from minivllm.config import CacheConfig, ModelConfig
from minivllm.model_executor.module import zeros_aligned

_FLOAT32_BYTES = 4


class CacheEngine:
    """Holds keys and values, and moves blocks.

    vLLM's words are kept, though all of it is memory of a CPU here: the **GPU block pool** is
    the array that attention reads, the **CPU block pool** is the swap area.

    Attributes
    ----------
    gpu_cache, cpu_cache : list of (2, num_blocks, num_kv_heads, block_size, head_size) float32
        One array for each layer: keys at [0], values at [1].
    """

    def __init__(self, cache_config: CacheConfig, model_config: ModelConfig,
                 attn_backend: type[AttentionBackend], num_gpu_blocks: int,
                 num_cpu_blocks: int) -> None:
        self.attn_backend = attn_backend
        self.block_size = cache_config.block_size
        self.num_layers = model_config.get_num_layers()
        self.num_kv_heads = model_config.get_num_kv_heads()
        self.head_size = model_config.get_head_size()
        self.gpu_cache = self._allocate_kv_cache(num_gpu_blocks)
        self.cpu_cache = self._allocate_kv_cache(num_cpu_blocks)

    def _allocate_kv_cache(self, num_blocks: int) -> list[NDArray[np.float32]]:
        shape = self.attn_backend.get_kv_cache_shape(num_blocks, self.block_size,
                                                     self.num_kv_heads, self.head_size)
        # The operating system provides zeroed pages when they are first touched, so a large pool
        # costs memory only as it fills.
        return [zeros_aligned(*shape) for _ in range(self.num_layers)]

    def swap_in(self, source_to_destination: list[tuple[int, int]]) -> None:
        """Copy blocks from the CPU pool to the GPU pool."""
        for cpu_cache, gpu_cache in zip(self.cpu_cache, self.gpu_cache, strict=True):
            self.attn_backend.swap_blocks(cpu_cache, gpu_cache, source_to_destination)

    def swap_out(self, source_to_destination: list[tuple[int, int]]) -> None:
        """Copy blocks from the GPU pool to the CPU pool."""
        for gpu_cache, cpu_cache in zip(self.gpu_cache, self.cpu_cache, strict=True):
            self.attn_backend.swap_blocks(gpu_cache, cpu_cache, source_to_destination)

    def copy(self, source_to_destination: list[tuple[int, int]]) -> None:
        """Copy blocks within the GPU pool (copy-on-write)."""
        self.attn_backend.copy_blocks(self.gpu_cache, source_to_destination)

    @staticmethod
    def get_cache_block_size(block_size: int, model_config: ModelConfig) -> int:
        """Return the bytes of one block over all layers, keys and values."""
        per_token = 2 * model_config.get_num_kv_heads() * model_config.get_head_size()
        return _FLOAT32_BYTES * block_size * per_token * model_config.get_num_layers()
