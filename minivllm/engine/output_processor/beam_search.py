"""Which beams live on: the choice in beam search, without touching engine state.

vLLM has it inside ``vllm/engine/output_processor/single_step.py``.  A beam search of width
`best_of` keeps two lists: the best finished sequences, which are candidates for the answer, and
the best running ones, which the next step continues.
"""

from typing import NamedTuple

from minivllm.sampling_params import SamplingParams
from minivllm.sequence import Sequence


class Candidate(NamedTuple):
    """A sequence that may stay in its group.

    Attributes
    ----------
    seq : Sequence
        With its newest token.
    parent : Sequence or None
        Whose blocks it continues: itself if it took over its parent's place, another if it is a
        fork, None if it had finished in an earlier step and has no blocks.
    """

    seq: Sequence
    parent: Sequence | None


def select_beams(candidates: list[Candidate], params: SamplingParams,
                 max_model_len: int) -> tuple[list[Candidate], list[Candidate]]:
    """Divide `candidates` into those to keep and those to drop, each best first.

    Among equals the earlier in the list is the better: finished sequences of earlier steps come
    first.

    Parameters
    ----------
    candidates : list of Candidate
        All sequences of the group: finished earlier, finished now, and running.
    params : SamplingParams
        `best_of` is the beam width.
    max_model_len : int
        For ``early_stopping="never"``.

    Returns
    -------
    kept, dropped : list of Candidate
        Finished ones before running ones.
    """
    width = params.best_of
    finished = _best_first([c for c in candidates if c.seq.is_finished()], params)
    running = _best_first([c for c in candidates if not c.seq.is_finished()], params)
    room = 0 if _search_is_over(finished, running, params, max_model_len) else width
    return finished[:width] + running[:room], finished[width:] + running[room:]


def _best_first(candidates: list[Candidate], params: SamplingParams) -> list[Candidate]:
    return sorted(candidates, key=lambda c: _score(c.seq, params), reverse=True)


def _score(seq: Sequence, params: SamplingParams, seq_len: int | None = None) -> float:
    return seq.get_beam_search_score(params.length_penalty, seq_len, seq.eos_token_id)


def _search_is_over(finished: list[Candidate], running: list[Candidate], params: SamplingParams,
                    max_model_len: int) -> bool:
    """Return True if nothing runs, or no running beam is expected to end among the best."""
    if not running:
        return True
    if len(finished) < params.best_of:
        return False
    if params.early_stopping is True:
        return True
    worst_finished = finished[params.best_of - 1].seq
    attainable = _highest_attainable_score(running[0].seq, params, max_model_len)
    return _score(worst_finished, params) >= attainable


def _highest_attainable_score(best_running: Sequence, params: SamplingParams,
                              max_model_len: int) -> float:
    """Return the score that the best running beam is credited with.

    ``early_stopping=False`` takes its present score.  ``"never"`` asks for the best that could
    still come: log-probabilities only fall, so with a positive length penalty, which favours
    length, that is the present sum over the greatest possible length.
    """
    if params.early_stopping == "never" and params.length_penalty > 0.0:
        max_tokens = params.max_tokens or 0
        longest = max(best_running.get_prompt_len() + max_tokens, max_model_len)
        return _score(best_running, params, seq_len=longest)
    return _score(best_running, params)
