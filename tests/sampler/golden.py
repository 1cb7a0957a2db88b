"""Golden sampling steps: what vLLM's sampler made of a batch of logits."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from minivllm.model_executor.layers.logits_processor import apply_logit_biases
from minivllm.model_executor.layers.sampler import (
    apply_filters,
    apply_min_tokens,
    apply_penalties,
)
from minivllm.model_executor.layers.sampling.draws import softmax
from minivllm.model_executor.sampling_metadata import SamplingMetadata, SamplingTensors
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import SequenceData, SequenceGroupMetadata, SequenceGroupState

GOLDEN = Path(__file__).parents[1] / "golden" / "sampler"


def read_golden(name: str) -> Any:
    with gzip.open(GOLDEN / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


def named_cases(name: str) -> dict[str, Any]:
    return {case["name"]: case for case in read_golden(name)["cases"]}


def group_metadata(group: dict[str, Any], request_id: str, eos_token_id: int, seed: int = 0
                   ) -> SequenceGroupMetadata:
    """Describe a golden group as the scheduler would."""
    kwargs = dict(group["params"])
    if group.get("logit_bias"):
        kwargs["logit_bias"] = {int(i): bias for i, bias in group["logit_bias"].items()}
    params = SamplingParams(**kwargs)
    params.all_stop_token_ids.add(eos_token_id)
    seq_data = {}
    for seq in group["seqs"]:
        data = SequenceData(seq["prompt_token_ids"], list(seq["output_token_ids"]))
        data.cumulative_logprob = seq["cumulative_logprob"]
        data.update_num_computed_tokens(group["num_computed_tokens"])
        seq_data[seq["seq_id"]] = data
    return SequenceGroupMetadata(
        request_id, group["is_prompt"], seq_data, params, block_tables={},
        do_sample=group["do_sample"], token_chunk_size=group["query_len"],
        state=SequenceGroupState(np.random.default_rng(seed)))


def prepare_batch(groups: list[dict[str, Any]], eos_token_id: int
                  ) -> tuple[np.ndarray, SamplingMetadata]:
    """Return the logits of the groups, one below the other, and whose they are."""
    metadata = SamplingMetadata.prepare(
        [group_metadata(group, f"r{i}", eos_token_id) for i, group in enumerate(groups)],
        [group["query_len"] for group in groups])
    logits = np.concatenate([np.array(group["logits"], np.float32) for group in groups])
    assert len(logits) == len(metadata.selected_token_indices)
    return logits, metadata


def run_stages(logits: np.ndarray, metadata: SamplingMetadata) -> dict[str, np.ndarray]:
    """Return the rows after each part of the sampler, in the sampler's order."""
    stages = {"logits_processors_and_min_tokens":
              apply_min_tokens(apply_logit_biases(logits, metadata), metadata)}
    stages["penalties"] = apply_penalties(stages["logits_processors_and_min_tokens"], metadata)
    tensors = SamplingTensors.from_sampling_metadata(metadata, logits.shape[1])
    stages["probs"], stages["logprobs"] = softmax(apply_filters(stages["penalties"], tensors))
    return stages
