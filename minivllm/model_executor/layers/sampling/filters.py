"""Stages that look at whole rows: temperature, and cutting off improbable tokens.

A token that is cut off has the logit minus infinity.  No stage sorts the vocabulary unless it
must: `numpy.partition` selects the few largest, and only those are sorted.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.layers.sampling.entries import Logits

# How many of the largest weights `apply_top_p` looks at first, and how much it widens the search.
_FIRST_LOOK = 64
_WIDEN = 8


def apply_temperature(logits: Logits, temperatures: NDArray[np.float32]) -> Logits:
    """Divide by the temperature: below 1 sharpens the distribution, above 1 flattens it.

    The largest logit is brought to 0 first, so that no quotient overflows.

    Parameters
    ----------
    logits : (num_rows, vocab_size) float32
    temperatures : (num_rows,) float32
        Above 0.
    """
    with np.errstate(over="ignore"):  # too small for float32 is minus infinity
        return shift_to_zero(logits) / temperatures[:, None]


def apply_top_k(logits: Logits, top_ks: NDArray[np.int64]) -> Logits:
    """Keep the `top_ks` most probable tokens, and all that tie with the last of them.

    Parameters
    ----------
    logits : (num_rows, vocab_size) float32
    top_ks : (num_rows,) int64
        From 1 to vocab_size.
    """
    vocab_size = logits.shape[1]
    kth_largest = np.empty((len(logits), 1), logits.dtype)
    for k in np.unique(top_ks):
        rows = np.flatnonzero(top_ks == k)
        place = vocab_size - k  # of the k-th largest in ascending order
        kth_largest[rows, 0] = np.partition(logits[rows], place, axis=1)[:, place]
    return keep(logits, logits >= kth_largest)


def apply_top_p(logits: Logits, top_ps: NDArray[np.float64]) -> Logits:
    """Keep the smallest set of most probable tokens whose probabilities reach `top_ps`.

    This is nucleus sampling (Holtzman et al., 2020).  Of tokens that tie at its edge, those with
    the lowest ids belong to it.

    Parameters
    ----------
    logits : (num_rows, vocab_size) float32
    top_ps : (num_rows,) float64
        In (0, 1].
    """
    weights = np.exp(shift_to_zero(logits))  # (num_rows, vocab_size)
    edge, size = nucleus(weights, top_ps * weights.sum(axis=1))
    kept = weights >= edge[:, None]
    surplus = np.count_nonzero(kept, axis=1) - size
    for row in np.flatnonzero(surplus):
        tied = np.flatnonzero(weights[row] == edge[row])
        kept[row, tied[-surplus[row]:]] = False
    return keep(logits, kept)


def nucleus(weights: NDArray[np.float32], targets: NDArray[np.float64]) -> tuple[
        NDArray[np.float32], NDArray[np.int64]]:
    """Return how many of each row's largest weights reach the target, and the least of them.

    Looks at the 64 largest first, at eight times as many where they are not enough, and so on: a
    row is only sorted as a whole if almost all of it is needed.

    Parameters
    ----------
    weights : (num_rows, vocab_size) float32
        Not negative.
    targets : (num_rows,) float64
        What the sum of the chosen weights has to reach.

    Returns
    -------
    edge : (num_rows,) float32
    size : (num_rows,) int64
        At least 1.
    """
    num_rows, vocab_size = weights.shape
    edge, size = np.empty(num_rows, weights.dtype), np.empty(num_rows, np.int64)
    pending, look = np.arange(num_rows), min(_FIRST_LOOK, vocab_size)
    while len(pending):
        place = vocab_size - look
        largest = np.partition(weights[pending], place, axis=1)[:, place:]
        largest = np.sort(largest, axis=1)[:, ::-1]  # (num_pending, look), descending
        reached = np.cumsum(largest, axis=1, dtype=np.float64)
        # A token is needed if those before it do not reach the target.
        needed = np.count_nonzero(reached - largest < targets[pending, None], axis=1)
        done = (needed < look) | (look == vocab_size)
        size[pending[done]] = needed[done]
        edge[pending[done]] = largest[done, needed[done] - 1]
        pending, look = pending[~done], min(look * _WIDEN, vocab_size)
    return edge, size


def apply_min_p(logits: Logits, min_ps: NDArray[np.float64]) -> Logits:
    """Keep the tokens that are at least `min_ps` times as probable as the most probable one.

    Parameters
    ----------
    logits : (num_rows, vocab_size) float32
    min_ps : (num_rows,) float64
        In (0, 1].
    """
    largest = logits.max(axis=1, keepdims=True)  # (num_rows, 1)
    return keep(logits, logits >= largest + np.log(min_ps)[:, None])


def shift_to_zero(logits: Logits) -> Logits:
    """Return the rows, each less its largest logit: the same distribution, nothing above 0."""
    with np.errstate(over="ignore"):  # too small for float32 is minus infinity
        shifted: Logits = logits - logits.max(axis=1, keepdims=True)
    return shifted


def keep(logits: Logits, mask: NDArray[np.bool_]) -> Logits:
    """Cut off every token that `mask` does not keep."""
    kept = np.flatnonzero(mask)
    result = np.full_like(logits, -np.inf)
    # Few are kept as a rule: copying those is faster than a choice for each entry.
    np.put(result, kept, np.take(logits, kept))
    return result
