"""minivllm: a NumPy reference of vLLM's V0 engine, to read, step through, and run.

Dimension letters used in shape comments everywhere:

=================  ==================================================================
``num_tokens``     tokens of a step, all sequences in one row, prefills first
``num_seqs``       sequences of a step
``hidden_size``    width of the hidden states
``num_heads``      query heads
``num_kv_heads``   key and value heads; each serves ``num_heads // num_kv_heads`` query heads
``head_size``      width of one head
``block_size``     slots of a block
``num_blocks``     blocks of a pool
``vocab_size``     token ids
=================  ==================================================================
"""

import sys
from typing import TYPE_CHECKING, Any

from minivllm.threads import limit_blas_threads
from minivllm.version import __version__

if "numpy" not in sys.modules:
    # Now it takes no more than environment variables.
    limit_blas_threads()

if TYPE_CHECKING:
    from minivllm.engine.arg_utils import EngineArgs
    from minivllm.engine.llm_engine import LLMEngine
    from minivllm.entrypoints.llm import LLM
    from minivllm.outputs import CompletionOutput, EmbeddingRequestOutput, RequestOutput
    from minivllm.pooling_params import PoolingParams
    from minivllm.sampling_params import SamplingParams
    from minivllm.stepper import Stepper
    from minivllm.tracing.record import record

__all__ = [
    "LLM",
    "CompletionOutput",
    "EmbeddingRequestOutput",
    "EngineArgs",
    "LLMEngine",
    "PoolingParams",
    "RequestOutput",
    "SamplingParams",
    "Stepper",
    "__version__",
    "record",
]

# Loaded when first asked for, so that `import minivllm` stays quick.
_HOME = {
    "LLM": "minivllm.entrypoints.llm",
    "CompletionOutput": "minivllm.outputs",
    "EmbeddingRequestOutput": "minivllm.outputs",
    "EngineArgs": "minivllm.engine.arg_utils",
    "LLMEngine": "minivllm.engine.llm_engine",
    "PoolingParams": "minivllm.pooling_params",
    "RequestOutput": "minivllm.outputs",
    "SamplingParams": "minivllm.sampling_params",
    "Stepper": "minivllm.stepper",
    "record": "minivllm.tracing.record",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'minivllm' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
