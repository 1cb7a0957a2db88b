"""Stages that change the logits of single tokens: bias, bans, penalties.

They touch as many entries of the logits as there are tokens to change, never the whole vocabulary:
`Entries` says where they are, the stages compute their new values, `replace_entries` puts them
back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
Values = NDArray[np.float64]
_LARGEST = float(np.finfo(np.float32).max)


@dataclass
class Entries:
    """Some entries of the logits, ``logits[rows[i], token_ids[i]]``, each at most once.

    Attributes
    ----------
    rows, token_ids : (num_entries,) int64
        Where they are.
    amounts : (num_entries,) float64
        What belongs to each: a bias, or how often the token occurs in the output.
    """

    rows: NDArray[np.int64]
    token_ids: NDArray[np.int64]
    amounts: Values

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int, float]]) -> "Entries":
        """Gather (row, token id, amount)."""
        table = np.array(list(entries), dtype=np.float64).reshape(-1, 3)  # (num_entries, 3)
        return cls(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def count_tokens(rows: Sequence[int], prompts: Sequence[Sequence[int]],
                 outputs: Sequence[Sequence[int]], vocab_size: int) -> Entries:
    """Return an entry for each token behind each row: how often it occurs in the output.

    Tokens that only the prompt has are there with 0.

    Parameters
    ----------
    rows : sequence of int
        Rows of the logits.
    prompts, outputs : sequence of sequences of int
        For each of these rows its tokens.
    vocab_size : int
        All token ids are smaller.

    Examples
    --------
    >>> counts = count_tokens([4], prompts=[[7, 9]], outputs=[[7, 5, 7]], vocab_size=10)
    >>> counts.token_ids.tolist(), counts.amounts.tolist()
    ([5, 7, 9], [1.0, 2.0, 0.0])
    """
    lengths = [len(token_ids) for token_ids in chain(prompts, outputs)]
    row_of_token = np.repeat(np.array([*rows, *rows], dtype=np.int64), lengths)
    all_ids = np.fromiter(chain.from_iterable(chain(prompts, outputs)), np.int64, sum(lengths))
    is_output = np.arange(len(all_ids)) >= sum(lengths[:len(rows)])
    keys, place = np.unique(row_of_token * vocab_size + all_ids, return_inverse=True)
    counts = np.bincount(place, weights=is_output, minlength=len(keys))  # (num_entries,)
    return Entries(keys // vocab_size, keys % vocab_size, counts.astype(np.float64))


def get_entries(logits: Logits, entries: Entries) -> Values:
    """Return the logits of `entries`, (num_entries,)."""
    return logits[entries.rows, entries.token_ids].astype(np.float64)


def replace_entries(logits: Logits, entries: Entries, values: Values) -> Logits:
    """Return a copy with other values in `entries`; what was finite stays finite in float32."""
    finite = np.clip(values, -_LARGEST, _LARGEST)
    logits = logits.copy()
    logits[entries.rows, entries.token_ids] = np.where(np.isneginf(values), values, finite)
    return logits


# In the stages below, `logits` are those of the entries, (num_entries,), as are the penalties.

def apply_logit_bias(logits: Values, biases: Values) -> Values:
    """Add the biases, clamped to [-100, 100]."""
    return logits + np.clip(biases, -100, 100)


def ban_tokens(logits: Values) -> Values:
    """Make tokens impossible: below `min_tokens` those that would end the output."""
    return np.full_like(logits, -np.inf)


def apply_repetition_penalty(logits: Values, penalties: Values) -> Values:
    """Make what prompt or output has already less likely, if the penalty is above 1.

    Divides positive and multiplies negative logits (CTRL; Keskar et al., 2019).
    """
    with np.errstate(over="ignore"):
        return np.where(logits > 0, logits / penalties, logits * penalties)


def apply_frequency_penalty(logits: Values, output_counts: Values, penalties: Values) -> Values:
    """Take the penalty off, once for each time that the token occurs in the output."""
    return logits - penalties * output_counts


def apply_presence_penalty(logits: Values, output_counts: Values, penalties: Values) -> Values:
    """Take the penalty off if the token occurs in the output, however often."""
    return logits - penalties * (output_counts > 0)
