"""Stages that change the logits of single tokens: bias, bans, penalties.

They touch as many entries as there are tokens to change, never the whole vocabulary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
_LARGEST = float(np.finfo(np.float32).max)


@dataclass
class Entries:
    """Some entries of the logits: ``logits[rows[i], token_ids[i]]``, each at most once.

    Attributes
    ----------
    rows, token_ids : (num_entries,) int64
        Where they are.
    values : (num_entries,) float64
        What belongs to each: a bias, or how often the token occurs.
    """

    rows: NDArray[np.int64]
    token_ids: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int, float]]) -> "Entries":
        """Gather (row, token id, value)."""
        table = np.array(list(entries), dtype=np.float64).reshape(-1, 3)  # (num_entries, 3)
        return cls(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])


def count_tokens(rows: Sequence[int], token_ids: Sequence[Sequence[int]],
                 vocab_size: int) -> Entries:
    """Return how often each token occurs in the text behind each row.

    Parameters
    ----------
    rows : sequence of int
        Rows of the logits.
    token_ids : sequence of sequences of int
        For each of these rows the tokens to count.
    vocab_size : int
        All token ids are smaller.

    Examples
    --------
    >>> counts = count_tokens([4], [[7, 5, 7]], vocab_size=10)
    >>> counts.rows.tolist(), counts.token_ids.tolist(), counts.values.tolist()
    ([4, 4], [5, 7], [1.0, 2.0])
    """
    row_of_token = np.repeat(np.array(rows, dtype=np.int64), [len(ids) for ids in token_ids])
    all_ids = np.fromiter(chain.from_iterable(token_ids), np.int64, len(row_of_token))
    keys, counts = np.unique(row_of_token * vocab_size + all_ids, return_counts=True)
    return Entries(keys // vocab_size, keys % vocab_size, counts.astype(np.float64))


def apply_logit_bias(logits: Logits, biases: Entries) -> Logits:
    """Add each bias, clamped to [-100, 100], to its logit."""
    return _replace(logits, biases, _get(logits, biases) + np.clip(biases.values, -100, 100))


def ban_tokens(logits: Logits, banned: Entries) -> Logits:
    """Make tokens impossible: below `min_tokens` those that would end the output."""
    return _replace(logits, banned, np.full(len(banned.rows), -np.inf))


def apply_repetition_penalty(logits: Logits, seen: Entries,
                             penalties: NDArray[np.float64]) -> Logits:
    """Divide the positive and multiply the negative logits of tokens seen in prompt or output.

    Parameters
    ----------
    logits : (num_rows, vocab_size) float32
    seen : Entries
        The tokens seen; how often does not matter.
    penalties : (num_rows,) float64
        Above 1 makes repeating less likely.  From CTRL (Keskar et al., 2019).
    """
    old, penalty = _get(logits, seen), penalties[seen.rows]  # (num_entries,)
    with np.errstate(over="ignore"):
        return _replace(logits, seen, np.where(old > 0, old / penalty, old * penalty))


def apply_frequency_penalty(logits: Logits, output_counts: Entries,
                            penalties: NDArray[np.float64]) -> Logits:
    """Take the penalty off each token of the output, once for each time that it occurs there."""
    loss = penalties[output_counts.rows] * output_counts.values  # (num_entries,)
    return _replace(logits, output_counts, _get(logits, output_counts) - loss)


def apply_presence_penalty(logits: Logits, output_counts: Entries,
                           penalties: NDArray[np.float64]) -> Logits:
    """Take the penalty off each token that occurs in the output, however often."""
    loss = penalties[output_counts.rows]  # (num_entries,)
    return _replace(logits, output_counts, _get(logits, output_counts) - loss)


def _get(logits: Logits, entries: Entries) -> NDArray[np.float64]:
    return logits[entries.rows, entries.token_ids].astype(np.float64)


def _replace(logits: Logits, entries: Entries, values: NDArray[np.float64]) -> Logits:
    """Return a copy with other values in `entries`; what was finite stays finite in float32."""
    finite = np.clip(values, -_LARGEST, _LARGEST)
    logits = logits.copy()
    logits[entries.rows, entries.token_ids] = np.where(np.isneginf(values), values, finite)
    return logits
