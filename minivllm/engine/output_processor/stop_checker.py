"""Whether a sequence ends (mirrors ``vllm/engine/output_processor/stop_checker.py``)."""

from minivllm.sampling_params import SamplingParams
from minivllm.sequence import Sequence, SequenceStatus


class StopChecker:
    """Ends sequences.

    Parameters
    ----------
    max_model_len : int
        The model's limit.  As in vLLM a sequence may end one token past it: the newest token need
        not go through the model.
    """

    def __init__(self, max_model_len: int) -> None:
        self.max_model_len = max_model_len

    def maybe_stop_sequence(self, seq: Sequence, new_char_count: int,
                            sampling_params: SamplingParams) -> None:
        """End `seq` if its newest token, its text or its length says so, in this order.

        Below `min_tokens` only the model's limit ends it, and stop strings found by then stay in
        the text.

        Parameters
        ----------
        seq : Sequence
            With its newest token, and the text of it.
        new_char_count : int
            How many characters of its text are new.
        sampling_params : SamplingParams
            When to stop.
        """
        if seq.get_output_len() >= sampling_params.min_tokens and (
                _stop_at_token(seq, new_char_count, sampling_params)
                or _stop_at_string(seq, new_char_count, sampling_params)):
            seq.status = SequenceStatus.FINISHED_STOPPED
        elif (seq.get_len() > self.max_model_len
                or seq.get_output_len() == sampling_params.max_tokens):
            seq.status = SequenceStatus.FINISHED_LENGTH_CAPPED


def _stop_at_token(seq: Sequence, new_char_count: int, params: SamplingParams) -> bool:
    """Return whether the newest token ends the sequence; take away its text if so."""
    token_id = seq.get_last_token_id()
    if token_id == seq.eos_token_id and not params.ignore_eos:
        pass  # no reason is given for the most usual end
    elif token_id in params.stop_token_ids:
        seq.stop_reason = token_id
    else:
        return False
    if new_char_count and not params.include_stop_str_in_output:
        seq.output_text = seq.output_text[:-new_char_count]
    return True


def _stop_at_string(seq: Sequence, new_char_count: int, params: SamplingParams) -> bool:
    """Return whether the new text completes a stop string; cut the text there if so.

    The one that is completed first counts, of several the first in the list.
    """
    found = find_stop_string(seq.output_text, new_char_count, params.stop)
    if found is None:
        return False
    seq.stop_reason, end = found
    if not params.include_stop_str_in_output:
        end -= len(seq.stop_reason)
    seq.output_text = seq.output_text[:end]
    return True


def find_stop_string(text: str, new_char_count: int, stop: list[str]) -> tuple[str, int] | None:
    """Return the stop string that is completed first by the new part of `text`, and where it ends.

    As in vLLM, one that ends where the new part begins counts too.  (It was not found when it was
    new only if its token was the last one below `min_tokens`.)

    Examples
    --------
    >>> find_stop_string("One, two", 5, ["two", ", "])
    (', ', 5)
    >>> find_stop_string("One, two", 2, [", "])
    """
    old_length = len(text) - new_char_count
    ends = []
    for stop_string in stop if new_char_count else ():
        start = text.find(stop_string, max(old_length - len(stop_string), 0))
        if start != -1:
            ends.append((stop_string, start + len(stop_string)))
    return min(ends, key=lambda found: found[1], default=None)
