"""Making batches for the sampler by hand."""

import numpy as np

from minivllm.model_executor.layers.sampler import Sampler
from minivllm.model_executor.sampling_metadata import SamplingMetadata
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import (
    SamplerOutput,
    SequenceData,
    SequenceGroupMetadata,
    SequenceGroupState,
)


def metadata_of(request_id: str, prompt: list[int], outputs: list[list[int]] | None = None, *,
                params: SamplingParams | None = None, is_prompt: bool | None = None,
                computed: int = 0, chunk: int | None = None, do_sample: bool = True,
                generator: np.random.Generator | None = None) -> SequenceGroupMetadata:
    """Describe a group: a prompt, or with `outputs` the sequences that have grown out of it."""
    seq_data = {}
    for seq_id, output in enumerate(outputs or [[]]):
        seq_data[seq_id] = SequenceData(prompt, output)
        seq_data[seq_id].update_num_computed_tokens(computed)
    is_prompt = outputs is None if is_prompt is None else is_prompt
    if chunk is None:
        chunk = len(prompt) - computed if is_prompt else 1
    return SequenceGroupMetadata(
        request_id, is_prompt, seq_data, params or SamplingParams(temperature=0.0),
        block_tables={}, do_sample=do_sample, token_chunk_size=chunk,
        state=SequenceGroupState(generator))


def sample_decodes(logits: np.ndarray, params: list[SamplingParams],
                   generators: list[np.random.Generator] | None = None) -> SamplerOutput:
    """Sample a decode step of one sequence for each row of `logits`."""
    groups = [metadata_of(f"r{i}", [1, 2], [[3]], params=params[i],
                          generator=(generators or [np.random.default_rng(i)] * (i + 1))[i])
              for i in range(len(params))]
    return Sampler()(logits, SamplingMetadata.prepare(groups, [1] * len(groups)))


def tokens(output: SamplerOutput) -> list[list[int]]:
    """Return the sampled tokens of each group."""
    return [[sample.output_token for sample in group.samples] for group in output.outputs]
