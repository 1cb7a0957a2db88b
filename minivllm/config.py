"""Configuration of an engine (mirrors ``vllm/config.py``).

Left out: parallelism, devices, LoRA, quantisation, speculative decoding: they do not exist here.
Computation is always in float32.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minivllm.logger import init_logger
from minivllm.transformers_utils.config import PretrainedConfig

logger = init_logger(__name__)

GiB = 1 << 30


@dataclass
class ModelConfig:
    """Which model, and its limits.

    Attributes
    ----------
    model : str
        As the user named it.
    hf_config : PretrainedConfig
        The contents of ``config.json``, with the defaults of its architecture filled in.
    path : Path or None
        The directory or GGUF file; None for the simulated model, which has none.
    tokenizer : str or None
        Directory of the tokenizer; None: the model's own.
    dtype : str
        ``"auto"`` or ``"float32"``: both compute in float32.
    seed : int
        Requests without a seed draw from generators derived from it.
    max_model_len : int or None
        Longest prompt + output; None becomes the model's own limit.
    max_logprobs : int
        Most log-probabilities that a request may ask for.
    skip_tokenizer_init : bool
        Token ids in, token ids out.
    generation_config : dict
        The contents of ``generation_config.json``.
    """

    model: str
    hf_config: PretrainedConfig
    path: Path | None = None
    tokenizer: str | None = None
    dtype: str = "auto"
    seed: int = 0
    max_model_len: int | None = None
    max_logprobs: int = 5
    skip_tokenizer_init: bool = False
    generation_config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.dtype not in ("auto", "float32", "float"):
            raise ValueError(f"dtype must be 'auto' or 'float32', got {self.dtype!r}: weights of "
                             "any float type are read, but computation is in float32.")
        limit = self.hf_config.max_model_len
        if self.max_model_len is None:
            self.max_model_len = limit
        if not 1 <= self.max_model_len <= limit:
            raise ValueError(f"max_model_len must be from 1 to the model's own limit of {limit} "
                             f"tokens, got {self.max_model_len}.")

    def get_vocab_size(self) -> int:
        """Return the number of token ids."""
        return int(self.hf_config.vocab_size)

    def get_hidden_size(self) -> int:
        """Return the width of the hidden states."""
        return int(self.hf_config.hidden_size)

    def get_head_size(self) -> int:
        """Return the width of one attention head."""
        return int(self.hf_config.head_dim)

    def get_num_attention_heads(self) -> int:
        """Return the number of query heads."""
        return int(self.hf_config.num_attention_heads)

    def get_num_kv_heads(self) -> int:
        """Return the number of key and value heads."""
        return int(self.hf_config.num_key_value_heads)

    def get_num_layers(self) -> int:
        """Return the number of transformer layers."""
        return int(self.hf_config.num_hidden_layers)

    def get_sliding_window(self) -> int | None:
        """Return how many tokens a token sees, itself included; None: all before it."""
        window: int | None = self.hf_config.get("sliding_window")
        return window


class CacheConfig:
    """The KV cache: its blocks and how many there are.

    Parameters
    ----------
    block_size : int
        Tokens per block.
    kv_cache_space : float
        GiB for the GPU block pool, the array that attention reads.
    swap_space : float
        GiB for the CPU block pool, the swap area.
    cache_dtype : str
        ``"auto"``: float32.
    num_gpu_blocks_override, num_cpu_blocks_override : int, optional
        Numbers of blocks instead of spaces.
    sliding_window : int, optional
        For attention only: blocks outside the window are kept.
    enable_prefix_caching : bool
        Share and keep blocks of equal content.
    """

    def __init__(self, block_size: int, kv_cache_space: float = 1.0, swap_space: float = 1.0,
                 cache_dtype: str = "auto", num_gpu_blocks_override: int | None = None,
                 sliding_window: int | None = None, enable_prefix_caching: bool = False,
                 num_cpu_blocks_override: int | None = None) -> None:
        if block_size < 1:
            raise ValueError(f"block_size must be at least 1, got {block_size}.")
        if not 0 < kv_cache_space < math.inf:
            raise ValueError(f"kv_cache_space must be above 0 GiB, got {kv_cache_space}.")
        if not 0 <= swap_space < math.inf:
            raise ValueError(f"swap_space must be at least 0 GiB, got {swap_space}.")
        if cache_dtype != "auto":
            raise ValueError(f"cache_dtype must be 'auto' (float32), got {cache_dtype!r}.")
        if num_gpu_blocks_override is not None and num_gpu_blocks_override < 1:
            raise ValueError("num_gpu_blocks_override must be at least 1, got "
                             f"{num_gpu_blocks_override}.")
        if num_cpu_blocks_override is not None and num_cpu_blocks_override < 0:
            raise ValueError("num_cpu_blocks_override must not be negative, got "
                             f"{num_cpu_blocks_override}.")
        self.block_size = block_size
        self.kv_cache_space_bytes = int(kv_cache_space * GiB)
        self.swap_space_bytes = int(swap_space * GiB)
        self.cache_dtype = cache_dtype
        self.num_gpu_blocks_override = num_gpu_blocks_override
        self.num_cpu_blocks_override = num_cpu_blocks_override
        self.sliding_window = sliding_window
        self.enable_prefix_caching = enable_prefix_caching
        # Known once the executor has counted what fits.
        self.num_gpu_blocks: int | None = None
        self.num_cpu_blocks: int | None = None


class SchedulerConfig:
    """The limits of a step.

    Parameters
    ----------
    max_num_batched_tokens : int or None
        Most tokens in a step; None: 512 with chunked prefill, else 2048 or `max_model_len`.
    max_num_seqs : int
        Most sequences in a step.
    max_model_len : int
        Longest prompt + output.
    use_v2_block_manager : bool
        `BlockSpaceManagerV2` instead of V1.
    num_lookahead_slots : int
        Always 0: there is no speculative decoding here.
    delay_factor : float
        Let prompts wait for this many times the last prompt step's duration, to gather more.
    enable_chunked_prefill : bool
        Split prompts over steps and run them beside decodes.
    embedding_mode : bool
        The model pools instead of generating.
    preemption_mode : str, optional
        ``"swap"`` or ``"recompute"``; None recomputes groups of one sequence, swaps others.

    Raises
    ------
    ValueError
        If two limits contradict each other.
    """

    def __init__(self, max_num_batched_tokens: int | None, max_num_seqs: int, max_model_len: int,
                 use_v2_block_manager: bool = False, num_lookahead_slots: int = 0,
                 delay_factor: float = 0.0, enable_chunked_prefill: bool = False,
                 embedding_mode: bool = False, preemption_mode: str | None = None) -> None:
        if max_num_batched_tokens is None:
            max_num_batched_tokens = 512 if enable_chunked_prefill else max(max_model_len, 2048)
            # With a default nobody chose, many seats are no contradiction.
            max_num_batched_tokens = max(max_num_batched_tokens, max_num_seqs)
        self.max_num_batched_tokens = max_num_batched_tokens
        self.max_num_seqs = max_num_seqs
        self.max_model_len = max_model_len
        self.use_v2_block_manager = use_v2_block_manager
        self.num_lookahead_slots = num_lookahead_slots
        self.delay_factor = delay_factor
        self.chunked_prefill_enabled = enable_chunked_prefill
        self.embedding_mode = embedding_mode
        self.preemption_mode = preemption_mode
        self._verify()

    def _verify(self) -> None:
        if self.max_num_seqs < 1:
            raise ValueError(f"max_num_seqs must be at least 1, got {self.max_num_seqs}.")
        tokens = self.max_num_batched_tokens
        if tokens < self.max_model_len and not self.chunked_prefill_enabled:
            raise ValueError(
                f"max_num_batched_tokens ({tokens}) is smaller than max_model_len "
                f"({self.max_model_len}): longer prompts could never run. Raise "
                "max_num_batched_tokens, lower max_model_len, or set enable_chunked_prefill=True.")
        if tokens < self.max_num_seqs:
            raise ValueError(f"max_num_batched_tokens ({tokens}) must be at least max_num_seqs "
                             f"({self.max_num_seqs}).")
        if self.delay_factor < 0:
            raise ValueError(f"delay_factor must not be negative, got {self.delay_factor}.")
        if self.num_lookahead_slots != 0:
            raise ValueError("num_lookahead_slots must be 0: there is no speculative decoding.")
        if self.preemption_mode not in (None, "swap", "recompute"):
            raise ValueError("preemption_mode must be None, 'swap' or 'recompute', got "
                             f"{self.preemption_mode!r}.")
