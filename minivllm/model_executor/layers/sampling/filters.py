"""Stages that look at whole rows: temperature, and cutting off improbable tokens.

A token that is cut off has the logit minus infinity.  No stage sorts the vocabulary unless it
must: `numpy.partition` selects the few largest, and only those are sorted.
"""

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.layers.sampling.entries import Logits

# So few weights `nucleus` sorts as a whole.
_FEW = 512


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
    kept = np.empty(logits.shape, np.bool_)
    for row, (row_weights, top_p) in enumerate(zip(weights, top_ps, strict=True)):
        total = float(row_weights.sum())
        # All weights below this one together are less than 1 - top_p of the total.
        negligible = total * (1 - top_p) / len(row_weights)
        candidates = np.take(row_weights, np.flatnonzero(row_weights >= negligible))
        edge, size = nucleus(candidates, total * top_p)
        np.greater_equal(row_weights, edge, out=kept[row])
        surplus = np.count_nonzero(kept[row]) - size
        if surplus:
            kept[row, np.flatnonzero(row_weights == edge)[-surplus:]] = False
    return keep(logits, kept)


def nucleus(weights: NDArray[np.float32], target: float) -> tuple[float, int]:
    """Find the fewest weights, of one row, whose sum reaches the target.

    Splits off the larger quarter: if it reaches the target the edge of the nucleus is in there,
    otherwise all of it belongs to the nucleus and the edge is in the rest.  So on, until few
    weights are left to be sorted.

    Parameters
    ----------
    weights : (num_weights,) float32
        Not negative.
    target : float
        Above 0.

    Returns
    -------
    edge : float
        The smallest weight in the nucleus.
    size : int
        How many weights are in it.
    """
    size = 0
    while len(weights) > _FEW:
        place = len(weights) * 3 // 4
        weights = np.partition(weights, place)
        mass = float(weights[place:].sum())
        if mass >= target:
            weights = weights[place:]
        else:
            size += len(weights) - place
            target -= mass
            weights = weights[:place]
    descending = np.sort(weights)[::-1]
    reached = np.cumsum(descending, dtype=np.float64)
    # Rounding may leave the sum of all a little below a target that means all.
    last = min(int(np.searchsorted(reached, target)), len(weights) - 1)
    return float(descending[last]), size + last + 1


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
