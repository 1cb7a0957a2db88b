"""From logits to probabilities to tokens."""

import numpy as np
from numpy.typing import NDArray

from minivllm.model_executor.layers.sampling.entries import Logits
from minivllm.model_executor.layers.sampling.filters import shift_to_zero
from minivllm.sequence import Logprob

Probs = NDArray[np.float32]
Logprobs = NDArray[np.float32]


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
    probs: Probs = np.exp(shifted)  # (num_rows, vocab_size)
    total = probs.sum(axis=1, keepdims=True)  # (num_rows, 1)
    probs /= total
    shifted -= np.log(total)
    return probs, shifted


def greedy(logprobs: Logprobs) -> list[int]:
    """Return the most probable token of each row, of several the one with the lowest id."""
    return [int(token_id) for token_id in logprobs.argmax(axis=1)]


def draw(probs: Probs, keys: NDArray[np.uint64]) -> list[int]:
    """Draw tokens of one row's distribution by a race, as vLLM does.

    Each token starts with a waiting time, exponentially distributed, divided by its probability;
    the first to arrive wins.  A token's time comes from the draw's key and its own id alone.  So
    what rounding does to the probabilities, in other company, changes the winner only where the
    two first are nearly equal; inverting the cumulative distribution function adds up the errors
    of all tokens.

    Parameters
    ----------
    probs : (vocab_size,) float32
        One row.
    keys : (num_samples,) uint64
        Random numbers, one for each draw (with replacement).
    """
    tokens = np.flatnonzero(probs > 0)  # (num_survivors,)
    survivors = probs[tokens]
    return [int(tokens[(exponential_noise(key, tokens) / survivors).argmin()]) for key in keys]


def exponential_noise(key: np.uint64, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return an exponentially distributed number for each token id, the same for the same `key`.

    SplitMix64 (Steele, Lea and Flood, 2014): key and id make a state, mixed to 64 random bits.

    Examples
    --------
    >>> some = exponential_noise(np.uint64(7), np.array([2, 3]))
    >>> bool(some[1] == exponential_noise(np.uint64(7), np.array([0, 3, 9]))[1])
    True
    """
    bits = tokens.astype(np.uint64)
    bits += np.uint64(1)
    bits *= np.uint64(0x9E3779B97F4A7C15)
    bits += key
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    uniforms = ((bits >> np.uint64(12)) + 0.5) * 2.0**-52  # in (0, 1)
    noise: NDArray[np.float64] = -np.log(uniforms)
    return noise


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
