"""One sequence: a prompt and one continuation of it."""

import enum

from minivllm.block import LogicalTokenBlock
from minivllm.inputs import LLMInputs
from minivllm.sequence.data import Logprob, SampleLogprobs, SequenceData
from minivllm.utils import cdiv


class SequenceStatus(enum.Enum):
    """Where a sequence is in its life."""

    WAITING = enum.auto()
    RUNNING = enum.auto()
    SWAPPED = enum.auto()
    FINISHED_STOPPED = enum.auto()
    FINISHED_LENGTH_CAPPED = enum.auto()
    FINISHED_ABORTED = enum.auto()
    FINISHED_IGNORED = enum.auto()

    @staticmethod
    def is_finished(status: "SequenceStatus") -> bool:
        """Return True for the four last ones."""
        return status not in UNFINISHED

    @staticmethod
    def get_finished_reason(status: "SequenceStatus") -> str | None:
        """Return what the user is told, None while unfinished."""
        return None if status in UNFINISHED else _FINISH_REASONS[status]


# A tuple, asked for every token: a look at identities, while hashing an enum is slow.
UNFINISHED = (SequenceStatus.RUNNING, SequenceStatus.WAITING, SequenceStatus.SWAPPED)

_FINISH_REASONS = {
    SequenceStatus.FINISHED_STOPPED: "stop",
    SequenceStatus.FINISHED_LENGTH_CAPPED: "length",
    SequenceStatus.FINISHED_ABORTED: "abort",
    # An ignored request is one that is too long.
    SequenceStatus.FINISHED_IGNORED: "length",
}


class Sequence:
    """One line of tokens: a prompt and one continuation of it.

    Parameters
    ----------
    seq_id : int
        Unique in the engine.
    inputs : LLMInputs
        The prompt.
    block_size : int
        Tokens per block.
    eos_token_id : int, optional
        The end-of-sequence token.
    """

    def __init__(self, seq_id: int, inputs: LLMInputs, block_size: int,
                 eos_token_id: int | None = None) -> None:
        self.seq_id = seq_id
        self.inputs = inputs
        self.block_size = block_size
        self.eos_token_id = eos_token_id
        self.data = SequenceData(inputs["prompt_token_ids"])
        self.status = SequenceStatus.WAITING
        self.stop_reason: int | str | None = None
        self.output_logprobs: SampleLogprobs = []
        self.output_text = ""
        # Incremental detokenization: see transformers_utils/detokenizer.py.
        self.prefix_offset = 0
        self.read_offset = 0
        self.tokens: list[str] | None = None

    @property
    def prompt(self) -> str | None:
        """The prompt's text, if it came as text."""
        return self.inputs.get("prompt")

    @property
    def prompt_token_ids(self) -> list[int]:
        """The prompt's tokens."""
        return self.data.prompt_token_ids

    @property
    def n_blocks(self) -> int:
        """How many logical blocks the tokens fill, the last one perhaps in part."""
        return cdiv(self.data.get_len(), self.block_size)

    @property
    def logical_token_blocks(self) -> list[LogicalTokenBlock]:
        """The tokens cut into logical blocks (built anew on each look)."""
        token_ids = self.get_token_ids()
        starts = range(0, len(token_ids), self.block_size)
        return [LogicalTokenBlock(i, self.block_size, tuple(token_ids[s:s + self.block_size]))
                for i, s in enumerate(starts)]

    def get_output_text_to_return(self, buffer_length: int) -> str:
        """Return the text that a streaming caller may see.

        The last `buffer_length` characters stay back until the sequence is finished: they may be
        the beginning of a stop string.
        """
        if buffer_length and not self.is_finished():
            return self.output_text[:-buffer_length]
        return self.output_text

    def hash_of_block(self, logical_idx: int) -> int:
        """Return the prefix cache's key of logical block `logical_idx`: all tokens up to its end.

        Prompt and output count apart, as in vLLM: the same tokens split elsewhere do not match.
        """
        return hash(self.data.get_prefix_token_ids(self.num_hashed_tokens_of_block(logical_idx)))

    def num_hashed_tokens_of_block(self, logical_idx: int) -> int:
        """Return how many tokens `hash_of_block` looks at."""
        return (logical_idx + 1) * self.block_size

    def reset_state_for_recompute(self) -> None:
        """Forget what was computed: the blocks are gone."""
        self.data.reset_state_for_recompute()

    def append_token_id(self, token_id: int, logprobs: dict[int, Logprob]) -> None:
        """Add an output token; `logprobs` must have an entry for it."""
        self.output_logprobs.append(logprobs)
        self.data.append_token_id(token_id, logprobs[token_id].logprob)

    def get_len(self) -> int:
        """Return the number of prompt and output tokens."""
        return len(self.data.prompt_token_ids) + len(self.data.output_token_ids)

    def get_prompt_len(self) -> int:
        """Return the number of prompt tokens."""
        return self.data.get_prompt_len()

    def get_output_len(self) -> int:
        """Return the number of output tokens."""
        return self.data.get_output_len()

    def get_token_ids(self) -> list[int]:
        """Return prompt and output tokens."""
        return self.data.get_token_ids()

    def get_prompt_token_ids(self) -> list[int]:
        """Return the prompt tokens."""
        return self.data.prompt_token_ids

    def get_last_token_id(self) -> int:
        """Return the newest token."""
        return self.data.get_last_token_id()

    def get_output_token_ids(self) -> list[int]:
        """Return the output tokens."""
        return self.data.output_token_ids

    def get_cumulative_logprob(self) -> float:
        """Return the sum of the output tokens' log-probabilities."""
        return self.data.cumulative_logprob

    def get_beam_search_score(self, length_penalty: float = 1.0, seq_len: int | None = None,
                              eos_token_id: int | None = None) -> float:
        """Return ``cumulative_logprob / seq_len ** length_penalty``.

        `seq_len` is prompt + output length by default; a last token equal to `eos_token_id` does
        not count (as in transformers' beam search).
        """
        if seq_len is None:
            seq_len = self.get_len()
            if eos_token_id is not None and self.get_last_token_id() == eos_token_id:
                seq_len -= 1
        return float(self.get_cumulative_logprob() / seq_len**length_penalty)

    def is_finished(self) -> bool:
        """Return True once nothing more comes."""
        return self.status not in UNFINISHED

    def is_prefill(self) -> bool:
        """Return True while tokens other than the newest are still to be computed."""
        return self.data.is_prefill

    def get_num_new_tokens(self) -> int:
        """Return how many tokens the next step has to compute: 1 in decode, the rest in prefill."""
        return self.data.get_num_uncomputed_tokens() if self.data.is_prefill else 1

    def fork(self, new_seq_id: int) -> "Sequence":
        """Return a copy with an id of its own; the block manager forks its block table apart."""
        child = Sequence.__new__(Sequence)
        child.__dict__.update(self.__dict__)
        child.seq_id = new_seq_id
        child.data = self.data.fork()
        child.output_logprobs = self.output_logprobs.copy()
        child.tokens = None if self.tokens is None else self.tokens.copy()
        return child

    def __repr__(self) -> str:
        return (f"Sequence(seq_id={self.seq_id}, status={self.status.name}, "
                f"num_blocks={self.n_blocks})")
