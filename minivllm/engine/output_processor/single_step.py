"""From sampled tokens to sequences (mirrors ``vllm/engine/output_processor/single_step.py``).

Appends the tokens of a step, forks a sequence that has several, detokenizes, checks whether a
sequence ends, and gives back the blocks of those that do.  Plain sampling keeps every sequence;
beam search chooses (`minivllm.engine.output_processor.beam_search`).

Left out: vLLM's interface for several output processors (the other one serves speculative
decoding), and outputs of more than one step at a time.
"""

from minivllm.config import SchedulerConfig
from minivllm.core.scheduler import Scheduler
from minivllm.engine.output_processor.beam_search import Candidate, select_beams
from minivllm.engine.output_processor.stop_checker import StopChecker
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import (
    CompletionSequenceGroupOutput,
    PromptLogprobs,
    Sequence,
    SequenceGroup,
    SequenceOutput,
    SequenceStatus,
)
from minivllm.transformers_utils.detokenizer import Detokenizer
from minivllm.utils import Counter, InternalError


class SingleStepOutputProcessor:
    """Updates sequence groups with what the sampler says of them.

    Parameters
    ----------
    scheduler_config : SchedulerConfig
        For the model's length limit.
    detokenizer : Detokenizer or None
        None: token ids out, no text.
    scheduler : Scheduler
        Forks and frees the block tables.
    seq_counter : Counter
        Names forked sequences.
    stop_checker : StopChecker
        Ends sequences.
    """

    def __init__(self, scheduler_config: SchedulerConfig, detokenizer: Detokenizer | None,
                 scheduler: Scheduler, seq_counter: Counter, stop_checker: StopChecker) -> None:
        self.scheduler_config = scheduler_config
        self.detokenizer = detokenizer
        self.scheduler = scheduler
        self.seq_counter = seq_counter
        self.stop_checker = stop_checker

    def process_prompt_logprob(self, seq_group: SequenceGroup,
                               output: CompletionSequenceGroupOutput) -> None:
        """Collect the prompt log-probabilities of a chunk, after its tokens count as computed.

        A prompt that is computed a second time, after a preemption, brings entries again that
        are there already; those are left out.
        """
        params = seq_group.sampling_params
        if params is None or output.prompt_logprobs is None:
            return
        if seq_group.prompt_logprobs is None:
            # Nothing comes before the first token.
            seq_group.prompt_logprobs = [None]
        new_logprobs = _without_known(seq_group, output.prompt_logprobs)
        if self.detokenizer and params.detokenize:
            self.detokenizer.decode_prompt_logprobs_inplace(seq_group, new_logprobs)
        seq_group.prompt_logprobs.extend(new_logprobs)

    def process_outputs(self, seq_group: SequenceGroup,
                        output: CompletionSequenceGroupOutput) -> None:
        """Continue the group's running sequences with the tokens sampled for them."""
        params = seq_group.sampling_params
        if params is None:
            raise InternalError(f"request {seq_group.request_id}: tokens for a pooling request.")
        if params.use_beam_search:
            self.process_beams(seq_group, output.samples, params)
        else:
            self.process_samples(seq_group, output.samples, params)

    def process_samples(self, seq_group: SequenceGroup, samples: list[SequenceOutput],
                        params: SamplingParams) -> None:
        """Plain sampling: every sample lives on."""
        self._keep(seq_group, self._continue(seq_group, samples, params))

    def process_beams(self, seq_group: SequenceGroup, samples: list[SequenceOutput],
                      params: SamplingParams) -> None:
        """Beam search: the best `best_of` finished and the best `best_of` running live on."""
        earlier = [Candidate(seq, None) for seq in seq_group.get_finished_seqs()]
        new = self._continue(seq_group, samples, params)
        kept, dropped = select_beams(earlier + new, params, self.scheduler_config.max_model_len)
        self._keep(seq_group, kept)
        self._drop(seq_group, dropped)

    def _continue(self, seq_group: SequenceGroup, samples: list[SequenceOutput],
                  params: SamplingParams) -> list[Candidate]:
        """Append the samples; of several of one parent, all but the last go to forks of it."""
        samples_of: dict[int, list[SequenceOutput]] = {}
        for sample in samples:
            samples_of.setdefault(sample.parent_seq_id, []).append(sample)
        children = []
        for parent in seq_group.get_seqs(SequenceStatus.RUNNING):
            if parent.seq_id not in samples_of:
                self._remove(seq_group, parent)
                continue
            *forked, last = samples_of[parent.seq_id]
            for sample in forked:
                # Forked before the parent itself moves on.
                child = parent.fork(next(self.seq_counter))
                self._append(child, sample, params)
                children.append(Candidate(child, parent))
            self._append(parent, last, params)
            children.append(Candidate(parent, parent))
        return children

    def _append(self, seq: Sequence, sample: SequenceOutput, params: SamplingParams) -> None:
        seq.append_token_id(sample.output_token, sample.logprobs)
        new_char_count = 0
        if self.detokenizer and params.detokenize:
            new_char_count = self.detokenizer.decode_sequence_inplace(seq, params)
        self.stop_checker.maybe_stop_sequence(seq, new_char_count, params)

    def _keep(self, seq_group: SequenceGroup, kept: list[Candidate]) -> None:
        """Let forks join the group, then free the blocks of sequences that have just ended."""
        for seq, parent in kept:
            if parent is not None and parent is not seq:
                seq_group.add(seq)
                if not seq.is_finished():
                    self.scheduler.fork_seq(parent, seq)
        # Only now: until here a parent's blocks were needed by its forks.
        for seq, parent in kept:
            if parent is seq and seq.is_finished():
                self.scheduler.free_seq(seq)

    def _drop(self, seq_group: SequenceGroup, dropped: list[Candidate]) -> None:
        """Let the losers go; a dropped fork has never joined the group."""
        for seq, parent in dropped:
            if parent is None:
                seq_group.remove(seq.seq_id)
            elif parent is seq:
                self._remove(seq_group, seq)

    def _remove(self, seq_group: SequenceGroup, seq: Sequence) -> None:
        seq.status = SequenceStatus.FINISHED_ABORTED
        seq_group.remove(seq.seq_id)
        self.scheduler.free_seq(seq)


def _without_known(seq_group: SequenceGroup, prompt_logprobs: PromptLogprobs) -> PromptLogprobs:
    """Return the entries of `prompt_logprobs` that `seq_group` does not have yet.

    Computing token i gives the entry of prompt token i + 1, so `prompt_logprobs` are those up to
    the last token computed, and end with the prompt.
    """
    seq = seq_group.get_seqs()[0]
    num_entries = min(seq.data.get_num_computed_tokens() + 1, seq.get_prompt_len())
    num_new = num_entries - len(seq_group.prompt_logprobs or ())
    if num_new > len(prompt_logprobs):
        raise InternalError(f"request {seq_group.request_id}: {num_new} prompt log-probabilities "
                            f"are missing, the sampler gave {len(prompt_logprobs)}.")
    return prompt_logprobs[len(prompt_logprobs) - num_new:] if num_new > 0 else []
