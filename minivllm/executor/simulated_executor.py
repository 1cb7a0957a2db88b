"""An executor with a stand-in model: steps that cost next to nothing (no vLLM counterpart).

The stand-in, the *hash LM*, makes each token a CRC-32 of the tokens before it.  It needs no
weights and no KV cache, yet a sequence's tokens depend on all that came before, so a scheduling
mistake that mixes sequences up shows in the output.  Scheduler, block managers and output
processor around it are the real ones; blocks are counted, but hold nothing.

``crc(x0, x1, ...)`` is the CRC-32 (``zlib.crc32``) of the integers as consecutive little-endian
unsigned 32-bit words.  For the tokens ``t0 ... tm`` of a sequence and a candidate index ``j``::

    token   = crc(t0, ..., tm, j) mod vocab_size
    logprob = -(1 + crc(t0, ..., tm, j, 0x9E3779B9) mod 9000) / 1000
"""

import struct
from collections.abc import Sequence
from zlib import crc32

from minivllm.executor.executor_base import ExecutorBase
from minivllm.sequence import (
    CompletionSequenceGroupOutput,
    ExecuteModelRequest,
    Logprob,
    SequenceData,
    SequenceGroupMetadata,
    SequenceGroupOutput,
    SequenceOutput,
)
from minivllm.utils import InternalError

_LOGPROB_SALT = struct.pack("<I", 0x9E3779B9)
# More sequences than run at a time; a few dozen bytes each.
_MAX_REMEMBERED = 1 << 14


def crc(words: Sequence[int], start: int = 0) -> int:
    """Return the CRC-32 of `words`, going on from that of earlier ones.

    >>> crc([5, 6, 7, 0])
    1931098810
    >>> crc([7, 0], start=crc([5, 6]))
    1931098810
    """
    return crc32(struct.pack(f"<{len(words)}I", *words), start)


class HashLM:
    """The stand-in model.

    Parameters
    ----------
    vocab_size : int
        Tokens are in ``[0, vocab_size)``.
    """

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def token_and_logprob(self, prefix_crc: int, j: int) -> tuple[int, float]:
        """Return candidate `j` after tokens whose CRC is `prefix_crc`.

        >>> HashLM(97).token_and_logprob(crc([5, 6, 7]), 0)
        (15, -5.65)
        """
        token_crc = crc32(j.to_bytes(4, "little"), prefix_crc)
        logprob = -(1 + crc32(_LOGPROB_SALT, token_crc) % 9000) / 1000.0
        return token_crc % self.vocab_size, logprob

    def distinct_candidates(self, prefix_crc: int, num: int) -> list[tuple[int, float]]:
        """Return candidates 0, 1, ..., `num` - 1; one whose token is taken gets the next free one.

        >>> [token for token, _ in HashLM(5).distinct_candidates(crc([5, 6, 7]), 4)]
        [0, 1, 2, 3]
        """
        if num > self.vocab_size:
            raise InternalError(f"{num} distinct tokens of a vocabulary of {self.vocab_size}.")
        candidates: dict[int, float] = {}
        for j in range(num):
            token, logprob = self.token_and_logprob(prefix_crc, j)
            while token in candidates:
                token = (token + 1) % self.vocab_size
            candidates[token] = logprob
        return list(candidates.items())


class SimulatedExecutor(ExecutorBase):
    """Answers each step with the hash LM's samples.

    The sizes of the two block pools are ``cache_config.num_gpu_blocks_override`` and
    ``num_cpu_blocks_override``.
    """

    def determine_num_available_blocks(self) -> tuple[int, int]:
        """Return the sizes that were asked for: blocks that hold nothing need no space."""
        num_gpu_blocks = self.cache_config.num_gpu_blocks_override
        if num_gpu_blocks is None:
            raise ValueError("a simulation needs num_gpu_blocks_override.")
        return num_gpu_blocks, self.cache_config.num_cpu_blocks_override or 0

    def initialize_cache(self, num_gpu_blocks: int, num_cpu_blocks: int) -> None:
        """Make the model; there is no cache to make."""
        self.model = HashLM(self.model_config.get_vocab_size())
        # seq_id -> (how many output tokens, CRC of prompt and those)
        self._crcs: dict[int, tuple[int, int]] = {}

    def execute_model(self, execute_model_req: ExecuteModelRequest) -> list[SequenceGroupOutput]:
        """Return one output for each group, in batch order."""
        return [CompletionSequenceGroupOutput(self._sample(metadata))
                for metadata in execute_model_req.seq_group_metadata_list]

    def _sample(self, metadata: SequenceGroupMetadata) -> list[SequenceOutput]:
        params = metadata.sampling_params
        if params is None:
            raise ValueError("the stand-in model of a simulation does not pool.")
        if not metadata.do_sample:
            return []
        if params.use_beam_search:
            return self._beams(metadata.seq_data, params.best_of)
        num_samples = params.best_of if _is_first_sampling(metadata) else 1
        samples = []
        for seq_id, data in metadata.seq_data.items():
            prefix_crc = self._crc(seq_id, data)
            samples += [_output(seq_id, *self.model.token_and_logprob(prefix_crc, j))
                        for j in range(num_samples)]
        return samples

    def _beams(self, seq_data: dict[int, SequenceData], width: int) -> list[SequenceOutput]:
        """Return the ``2 * width`` best candidates of all sequences together."""
        scored = [(data.cumulative_logprob + logprob, _output(seq_id, token, logprob))
                  for seq_id, data in seq_data.items()
                  for token, logprob in self.model.distinct_candidates(self._crc(seq_id, data),
                                                                       2 * width)]
        scored.sort(key=lambda pair: pair[0], reverse=True)
        return [output for _, output in scored[:2 * width]]

    def _crc(self, seq_id: int, data: SequenceData) -> int:
        """Return the CRC of all tokens; only those that are new since the last call are read."""
        if seq_id in self._crcs:
            num_known, known_crc = self._crcs[seq_id]
        else:
            num_known, known_crc = 0, crc(data.prompt_token_ids)
            if len(self._crcs) >= _MAX_REMEMBERED:
                # Forget the oldest; if it still runs, it is read from the start again.
                del self._crcs[next(iter(self._crcs))]
        new_crc = crc(data.output_token_ids[num_known:], known_crc)
        self._crcs[seq_id] = len(data.output_token_ids), new_crc
        return new_crc


def _is_first_sampling(metadata: SequenceGroupMetadata) -> bool:
    """Return True if the prompt has just been computed and is yet to become `best_of` sequences."""
    return metadata.is_prompt and all(data.get_output_len() == 0
                                      for data in metadata.seq_data.values())


def _output(seq_id: int, token: int, logprob: float) -> SequenceOutput:
    return SequenceOutput(seq_id, token, {token: Logprob(logprob)})
