"""From tokens to text, one token at a time (mirrors ``vllm/transformers_utils/detokenizer.py``).

A token's text depends on its neighbours: a character may be spread over several tokens, and some
tokenizers put spaces between some.  So each step decodes a few of the last tokens twice, without
the new token and with it; what is longer is the new text.  Two offsets say which tokens::

    tokens:     0 ... prefix_offset ... read_offset ... newest
                      |--- context -----|-- not shown yet ----|

The text of tokens before `read_offset` has been given out; from `prefix_offset` on they are
context.  While the decoded text ends in an unfinished character, nothing is given out and the
offsets stay.

Left out: tokenizers without a fast implementation, which need `spaces_between_special_tokens`.
"""

from minivllm.sampling_params import SamplingParams
from minivllm.sequence import PromptLogprobs, Sequence, SequenceGroup
from minivllm.transformers_utils.tokenizer import Tokenizer

# Tokens of the prompt that are context for the first output token.
INITIAL_INCREMENTAL_DETOKENIZATION_OFFSET = 5

_UNFINISHED_CHARACTER = "\ufffd"


class Detokenizer:
    """Decodes sequences and their log-probabilities.

    Parameters
    ----------
    tokenizer : Tokenizer
        Of the model.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def decode_sequence_inplace(self, seq: Sequence, prms: SamplingParams) -> int:
        """Add the text of the newest token to ``seq.output_text``, and to its log-probabilities.

        Parameters
        ----------
        seq : Sequence
            Has a new token.
        prms : SamplingParams
            Whether special tokens show.

        Returns
        -------
        int
            How many characters came; 0 while a character is unfinished.
        """
        skip = prms.skip_special_tokens
        if seq.tokens is None:
            seq.tokens, seq.prefix_offset, seq.read_offset = convert_prompt_ids_to_tokens(
                self.tokenizer, seq.get_token_ids()[:-1], skip)
        before = seq.tokens, seq.prefix_offset, seq.read_offset
        new_token_id = seq.get_last_token_id()
        new_tokens, new_text, seq.prefix_offset, seq.read_offset = detokenize_incrementally(
            self.tokenizer, new_token_id, *before, skip)
        for token_id, logprob in seq.output_logprobs[-1].items():
            logprob.decoded_token = new_text if token_id == new_token_id else \
                detokenize_incrementally(self.tokenizer, token_id, *before, skip)[1]
        seq.tokens.extend(new_tokens)
        seq.output_text += new_text
        return len(new_text)

    def decode_prompt_logprobs_inplace(self, seq_group: SequenceGroup,
                                       prompt_logprobs: PromptLogprobs) -> None:
        """Give each token of `prompt_logprobs` the text that it has after the tokens before it.

        Parameters
        ----------
        seq_group : SequenceGroup
            Its own `prompt_logprobs` are those of the tokens before; None: there are none yet.
        prompt_logprobs : PromptLogprobs
            Of the prompt's next tokens.
        """
        params = seq_group.sampling_params
        skip = params is None or params.skip_special_tokens
        start = 1 if seq_group.prompt_logprobs is None else len(seq_group.prompt_logprobs)
        tokens: list[str] = []
        prefix_offset = read_offset = 0
        # From the first token on, so that the text does not depend on how the prompt was chunked.
        for place, token_id in enumerate(seq_group.prompt_token_ids[:start + len(prompt_logprobs)]):
            before = tokens, prefix_offset, read_offset
            if place >= start:
                for other_id, logprob in (prompt_logprobs[place - start] or {}).items():
                    logprob.decoded_token = detokenize_incrementally(
                        self.tokenizer, other_id, *before, skip)[1]
            new_tokens, _, prefix_offset, read_offset = detokenize_incrementally(
                self.tokenizer, token_id, *before, skip)
            tokens.extend(new_tokens)


def convert_prompt_ids_to_tokens(tokenizer: Tokenizer, prompt_ids: list[int],
                                 skip_special_tokens: bool = False) -> tuple[list[str], int, int]:
    """Return the prompt's last tokens, and the offsets to begin with.

    Returns
    -------
    tokens : list of str
        Two more than the context needs, as special ones may drop out.
    prefix_offset, read_offset : int
        Where the context begins, and where it ends: at the end of the prompt.
    """
    tokens = tokenizer.convert_ids_to_tokens(
        prompt_ids[-INITIAL_INCREMENTAL_DETOKENIZATION_OFFSET - 2:], skip_special_tokens)
    read_offset = len(tokens)
    return tokens, max(read_offset - INITIAL_INCREMENTAL_DETOKENIZATION_OFFSET, 0), read_offset


def detokenize_incrementally(
    tokenizer: Tokenizer, new_token_id: int, prev_tokens: list[str], prefix_offset: int,
    read_offset: int, skip_special_tokens: bool = False,
) -> tuple[list[str], str, int, int]:
    """Return what a new token adds.

    Parameters
    ----------
    tokenizer : Tokenizer
        Of the model.
    new_token_id : int
        The token; one outside the vocabulary has no text.
    prev_tokens : list of str
        The tokens before; not changed.
    prefix_offset, read_offset : int
        See the module.
    skip_special_tokens : bool
        Leave special tokens out.

    Returns
    -------
    new_tokens : list of str
        To be appended to `prev_tokens`; empty for a special token left out.
    new_text : str
        Empty while a character is unfinished.
    prefix_offset, read_offset : int
        For the next call.
    """
    new_tokens = tokenizer.convert_ids_to_tokens([new_token_id], skip_special_tokens)
    context_text = tokenizer.convert_tokens_to_string(prev_tokens[prefix_offset:read_offset])
    text = tokenizer.convert_tokens_to_string(prev_tokens[prefix_offset:] + new_tokens)
    if len(text) <= len(context_text) or text.endswith(_UNFINISHED_CHARACTER):
        return new_tokens, "", prefix_offset, read_offset
    return new_tokens, text[len(context_text):], read_offset, len(prev_tokens) + len(new_tokens)
