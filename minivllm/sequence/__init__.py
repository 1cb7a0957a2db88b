"""Sequences, their groups, and what the floors pass to each other (mirrors ``vllm/sequence.py``).

A request is a `SequenceGroup`: it starts as one `Sequence`, the prompt, and becomes several when
`best_of` > 1 or in a beam search.  The scheduler describes the groups of a step to the worker as
`SequenceGroupMetadata` in an `ExecuteModelRequest`; the sampler answers with a `SamplerOutput`.

Left out: multi-modal data, encoder-decoder models, LoRA, speculative decoding.  Logical blocks
are a view of the tokens, not a second copy of them.
"""

from minivllm.sequence.data import (
    Logprob,
    PromptLogprobs,
    SampleLogprobs,
    SequenceData,
    SequenceStage,
)
from minivllm.sequence.group import RequestMetrics, SequenceGroup, SequenceGroupState
from minivllm.sequence.sequence import Sequence, SequenceStatus
from minivllm.sequence.step import (
    CompletionSequenceGroupOutput,
    EmbeddingSequenceGroupOutput,
    ExecuteModelRequest,
    PoolerOutput,
    SamplerOutput,
    SequenceGroupMetadata,
    SequenceGroupOutput,
    SequenceOutput,
    StepOutput,
)

__all__ = [
    "CompletionSequenceGroupOutput",
    "EmbeddingSequenceGroupOutput",
    "ExecuteModelRequest",
    "Logprob",
    "PoolerOutput",
    "PromptLogprobs",
    "RequestMetrics",
    "SampleLogprobs",
    "SamplerOutput",
    "Sequence",
    "SequenceData",
    "SequenceGroup",
    "SequenceGroupMetadata",
    "SequenceGroupOutput",
    "SequenceGroupState",
    "SequenceOutput",
    "SequenceStage",
    "SequenceStatus",
    "StepOutput",
]
