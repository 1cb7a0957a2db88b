"""From logits to probabilities to tokens."""

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.layers.sampling.entries import Logits
from minivllm.model_executor.layers.sampling.filters import shift_to_zero
from minivllm.sequence import Logprob

Probs = NDArray[np.float32]
Logprobs = NDArray[np.float32]

# Tokens in a block of `draw`.
_BLOCK = 256


def softmax(logits: Logits) -> tuple[Probs, Logprobs]:
    """Return the probabilities of each row and their logarithms.

    What is cut off has the probability 0, its logarithm is minus infinity.

    Parameters
    ----------
    logits : (num_rows, vocab_size) float32
        At least one entry of each row is finite, and none is NaN.

    Returns
    -------
    probs, logprobs : (num_rows, vocab_size) float32
    """
    shifted = shift_to_zero(logits)
    probs: Probs = np.exp(shifted)
    total = probs.sum(axis=1, keepdims=True)  # (num_rows, 1)
    probs /= total
    return probs, shifted - np.log(total)


def greedy(logprobs: Logprobs) -> list[int]:
    """Return the most probable token of each row, of several the one with the lowest id."""
    return [int(token_id) for token_id in logprobs.argmax(axis=1)]


def draw(probs: Probs, uniforms: NDArray[np.float64]) -> list[int]:
    """Draw tokens of one row's distribution by inverting its cumulative distribution function.

    That function is computed in two steps: for blocks of tokens, and inside the block of a draw.

    Parameters
    ----------
    probs : (vocab_size,) float32
        One row.
    uniforms : (num_samples,) float64
        In [0, 1), one for each draw (with replacement).

    Examples
    --------
    >>> draw(np.array([0.25, 0.5, 0.25]), np.array([0.1, 0.3, 0.7, 0.8]))
    [0, 1, 1, 2]
    """
    starts = np.arange(0, len(probs), _BLOCK)
    block_ends = np.cumsum(np.add.reduceat(probs, starts, dtype=np.float64))  # (num_blocks,)
    tokens = []
    for target in uniforms * block_ends[-1]:
        block = _first_above(block_ends, target)
        start = int(starts[block])
        before = block_ends[block - 1] if block else 0.0
        inside = np.cumsum(probs[start:start + _BLOCK], dtype=np.float64)
        tokens.append(start + _first_above(inside, target - before))
    return tokens


def _first_above(cdf: NDArray[np.float64], target: float) -> int:
    """Return the first place where `cdf` is above `target`: where something has been added.

    If rounding has brought `target` to the end, the last place where something has been added.
    """
    return min(int(np.searchsorted(cdf, target, side="right")), int(np.searchsorted(cdf, cdf[-1])))


def beam_candidates(logprobs: Logprobs, cumulative_logprobs: NDArray[np.float64],
                    num_candidates: int) -> list[tuple[int, int]]:
    """Return the most probable continuations of all beams of one search, best first.

    Parameters
    ----------
    logprobs : (num_beams, vocab_size) float32
        Of the next token of each beam.
    cumulative_logprobs : (num_beams,) float64
        Of the beams so far.
    num_candidates : int
        Twice the beam width, so that enough are left if half of them end; there are fewer if the
        vocabulary is tiny or most of it is cut off.

    Returns
    -------
    list of (int, int)
        (beam, token id).
    """
    scores = (logprobs + cumulative_logprobs[:, None]).ravel()  # (num_beams * vocab_size,)
    best = top_indices(scores, num_candidates)
    vocab_size = logprobs.shape[1]
    return [divmod(int(i), vocab_size) for i in best if scores[i] > -np.inf]


def top_indices(values: NDArray[np.floating], num: int) -> NDArray[np.int64]:
    """Return the places of the `num` largest values (or all, if fewer), largest first.

    Of equal values the first comes first.  Selects before it sorts.

    Examples
    --------
    >>> top_indices(np.array([1.0, 3.0, 2.0, 3.0, 2.0]), 3).tolist()
    [1, 3, 2]
    """
    place = max(len(values) - num, 0)
    edge = np.partition(values, place)[place]
    above = np.flatnonzero(values > edge)
    above = above[np.argsort(-values[above], kind="stable")]
    tied = np.flatnonzero(values == edge)
    return np.concatenate([above, tied])[:num]


def describe_token(logprobs: Logprobs, token_id: int, num_logprobs: int) -> dict[int, Logprob]:
    """Return log-probability and rank of a token, and of the `num_logprobs` most probable ones.

    Parameters
    ----------
    logprobs : (vocab_size,) float32
        One row.
    token_id : int
        Comes first in the result, and is there in any case.
    num_logprobs : int
        0: only the token itself.
    """
    logprob = logprobs[token_id]
    rank = 1 + int(np.count_nonzero(logprobs > logprob))
    result = {token_id: Logprob(float(logprob), rank)}
    if num_logprobs:
        for rank, top_id in enumerate(top_indices(logprobs, num_logprobs), start=1):
            result[int(top_id)] = Logprob(float(logprobs[top_id]), rank)
    return result
