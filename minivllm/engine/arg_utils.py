"""All settings of an engine in one flat list (mirrors ``vllm/engine/arg_utils.py``)."""

import os
from dataclasses import dataclass, fields
from typing import Any

from minivllm.config import CacheConfig, ModelConfig, SchedulerConfig
from minivllm.transformers_utils.config import get_config, get_generation_config
from minivllm.transformers_utils.download import resolve_model
from minivllm.utils import of_kind


@dataclass
class EngineConfig:
    """The settings, sorted by who needs them."""

    model_config: ModelConfig
    cache_config: CacheConfig
    scheduler_config: SchedulerConfig


@dataclass
class EngineArgs:
    """Settings as `LLM` and the command line take them.

    Attributes
    ----------
    model : str
        A directory in Hugging Face layout, a ``.gguf`` file, a name that ``minivllm models``
        lists, or a hub id.
    tokenizer : str or None
        Directory of the tokenizer, if not the model's own.
    skip_tokenizer_init : bool
        Token ids in, token ids out.
    dtype : str
        ``"auto"`` or ``"float32"``: computation is always in float32.
    seed : int
        Requests without a seed draw from generators derived from it.
    max_model_len : int or None
        Longest prompt + output; None: the model's own limit.
    block_size : int
        Tokens per KV block.
    enable_prefix_caching : bool
        Share and keep blocks of equal content.
    use_v2_block_manager : bool
        `BlockSpaceManagerV2` instead of V1.
    swap_space : float
        GiB for the CPU block pool, the swap area.
    kv_cache_space : float
        GiB for the GPU block pool, which attention reads.
    max_num_batched_tokens : int or None
        Most tokens in a step.
    max_num_seqs : int
        Most sequences in a step.
    max_logprobs : int
        Most log-probabilities that a request may ask for.
    num_gpu_blocks_override : int or None
        Blocks of the GPU block pool, whatever `kv_cache_space` is.
    num_cpu_blocks_override : int or None
        Blocks of the CPU block pool, whatever `swap_space` is.
    preemption_mode : str or None
        ``"swap"``, ``"recompute"``, or None: recompute groups of one sequence, swap others.
    scheduler_delay_factor : float
        Let prompts gather for this many times the last prompt step's duration.
    enable_chunked_prefill : bool
        Split prompts over steps and run them beside decodes.
    disable_log_stats : bool
        No line of statistics every few seconds.
    """

    model: str
    tokenizer: str | None = None
    skip_tokenizer_init: bool = False
    dtype: str = "auto"
    seed: int = 0
    max_model_len: int | None = None
    block_size: int = 16
    enable_prefix_caching: bool = False
    use_v2_block_manager: bool = False
    swap_space: float = 1.0
    kv_cache_space: float = 1.0
    max_num_batched_tokens: int | None = None
    max_num_seqs: int = 256
    max_logprobs: int = 20
    num_gpu_blocks_override: int | None = None
    num_cpu_blocks_override: int | None = None
    preemption_mode: str | None = None
    scheduler_delay_factor: float = 0.0
    enable_chunked_prefill: bool = False
    disable_log_stats: bool = False

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, os.PathLike):
                value = os.fspath(value)
            setattr(self, setting.name, of_kind(setting.name, value, setting.type))

    @classmethod
    def from_kwargs(cls, **kwargs: Any) -> "EngineArgs":
        """Build from keywords; an unknown one is a TypeError that lists what there is."""
        known = [setting.name for setting in fields(cls)]
        for name in kwargs:
            if name not in known:
                raise TypeError(f"unknown engine argument {name!r}; there are: {', '.join(known)}")
        return cls(**kwargs)

    def create_engine_config(self) -> EngineConfig:
        """Find the model, read its ``config.json``, and check all limits against it."""
        path = resolve_model(self.model)
        model_config = ModelConfig(
            model=self.model,
            hf_config=get_config(path),
            path=path,
            tokenizer=self.tokenizer,
            dtype=self.dtype,
            seed=self.seed,
            max_model_len=self.max_model_len,
            max_logprobs=self.max_logprobs,
            skip_tokenizer_init=self.skip_tokenizer_init,
            generation_config=get_generation_config(path))
        cache_config = CacheConfig(
            block_size=self.block_size,
            kv_cache_space=self.kv_cache_space,
            swap_space=self.swap_space,
            num_gpu_blocks_override=self.num_gpu_blocks_override,
            num_cpu_blocks_override=self.num_cpu_blocks_override,
            sliding_window=model_config.get_sliding_window(),
            enable_prefix_caching=self.enable_prefix_caching)
        scheduler_config = SchedulerConfig(
            max_num_batched_tokens=self.max_num_batched_tokens,
            max_num_seqs=self.max_num_seqs,
            max_model_len=model_config.max_model_len or model_config.hf_config.max_model_len,
            use_v2_block_manager=self.use_v2_block_manager,
            delay_factor=self.scheduler_delay_factor,
            enable_chunked_prefill=self.enable_chunked_prefill,
            preemption_mode=self.preemption_mode)
        return EngineConfig(model_config, cache_config, scheduler_config)
