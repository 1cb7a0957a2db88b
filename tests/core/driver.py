"""Runs a Scheduler without an engine: makes requests, answers for the model, watches the cache.

The KV cache is a shadow: each slot remembers which tokens it was computed for.  A sequence that
finds other tokens than its own in one of its slots would have read stale keys and values.
"""

import zlib
from collections import Counter

from minivllm.config import CacheConfig, SchedulerConfig
from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.core.invariants import check_invariants
from minivllm.core.outputs import SchedulerOutputs
from minivllm.core.scheduler import Scheduler
from minivllm.decisions import Verdict, sentence
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import (
    Logprob,
    Sequence,
    SequenceData,
    SequenceGroup,
    SequenceGroupMetadata,
    SequenceStatus,
)
from minivllm.utils import Device


def make_scheduler(*, block_size: int = 4, num_gpu_blocks: int = 100, num_cpu_blocks: int = 0,
                   max_num_batched_tokens: int = 64, max_num_seqs: int = 8,
                   max_model_len: int = 64, use_v2_block_manager: bool = False,
                   enable_prefix_caching: bool = False, enable_chunked_prefill: bool = False,
                   preemption_mode: str | None = None, delay_factor: float = 0.0,
                   block_manager: type[BlockSpaceManager] | None = None,
                   clock=lambda: 0.0) -> Scheduler:
    cache_config = CacheConfig(block_size, enable_prefix_caching=enable_prefix_caching)
    cache_config.num_gpu_blocks = num_gpu_blocks
    cache_config.num_cpu_blocks = num_cpu_blocks
    config = SchedulerConfig(max_num_batched_tokens, max_num_seqs, max_model_len,
                             use_v2_block_manager, preemption_mode=preemption_mode,
                             enable_chunked_prefill=enable_chunked_prefill,
                             delay_factor=delay_factor)
    return Scheduler(config, cache_config, block_manager=block_manager, clock=clock)


def make_group(request_id: str, prompt: list[int], *, block_size: int = 4, seq_id: int = 0,
               arrival: float = 0.0, params: SamplingParams | None = None) -> SequenceGroup:
    seq = Sequence(seq_id, {"prompt_token_ids": prompt, "prompt": None}, block_size)
    return SequenceGroup(request_id, [seq], arrival, params or SamplingParams(max_tokens=16))


class StaleKeysAndValuesError(AssertionError):
    pass


class ShadowCache:
    """What the slots of the KV cache were computed for."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.gpu: dict[int, dict[int, int]] = {}
        self.cpu: dict[int, dict[int, int]] = {}

    def run(self, batch: list[SequenceGroupMetadata], outputs: SchedulerOutputs) -> None:
        """Move, copy and write blocks as a worker would, then read what attention reads."""
        self._move(self.gpu, self.cpu, outputs.blocks_to_swap_out)
        num_copied = 0
        for pair, num_before in zip(outputs.blocks_to_swap_in, outputs.num_copies_before_swap_in,
                                    strict=True):
            self._move(self.gpu, self.gpu, outputs.blocks_to_copy[num_copied:num_before])
            self._move(self.cpu, self.gpu, [pair])
            num_copied = num_before
        self._move(self.gpu, self.gpu, outputs.blocks_to_copy[num_copied:])
        for meta in batch:
            for seq_id, data in meta.seq_data.items():
                self._write(meta, data, meta.block_tables[seq_id])
        for meta in batch:
            for seq_id, data in meta.seq_data.items():
                self._read(meta, data, meta.block_tables[seq_id])

    @staticmethod
    def _move(source: dict, destination: dict, moves: list[tuple[int, int]]) -> None:
        contents = [dict(source.get(old, {})) for old, _ in moves]
        for (_, new), content in zip(moves, contents, strict=True):
            destination[new] = content

    def _write(self, meta: SequenceGroupMetadata, data: SequenceData, table: list[int]) -> None:
        tags = self._tags(data)
        start = data.get_num_computed_tokens()
        end = start + meta.token_chunk_size
        if meta.is_prompt:
            start = max(start, len(meta.computed_block_nums) * self.block_size)
        for i in range(start, end):
            self.gpu.setdefault(table[i // self.block_size], {})[i % self.block_size] = tags[i]

    def _read(self, meta: SequenceGroupMetadata, data: SequenceData, table: list[int]) -> None:
        tags = self._tags(data)
        for i in range(data.get_num_computed_tokens() + meta.token_chunk_size):
            block_number = table[i // self.block_size]
            if self.gpu.get(block_number, {}).get(i % self.block_size) != tags[i]:
                raise StaleKeysAndValuesError(
                    f"{meta.request_id} reads token {i} from block {block_number}")

    @staticmethod
    def _tags(data: SequenceData) -> list[int]:
        tags, tag = [], 0
        for token in data.get_token_ids():
            tag = zlib.crc32(token.to_bytes(4, "little"), tag)
            tags.append(tag)
        return tags


class Driver:
    """A small engine around a scheduler; checks all invariants after every step."""

    def __init__(self, scheduler: Scheduler, vocab_size: int = 3) -> None:
        self.scheduler = scheduler
        self.vocab_size = vocab_size
        self.block_size = scheduler.cache_config.block_size
        self.cache = ShadowCache(self.block_size)
        self.groups: dict[str, SequenceGroup] = {}
        self.lengths: dict[str, list[int]] = {}  # max_tokens of each sequence, in order of joining
        self.salts: dict[str, int] = {}  # requests of one salt continue equal tokens equally
        self.num_seqs = 0
        self.step_index = 0
        self.counts: Counter[str] = Counter()
        self.peak_blocks: Counter[str] = Counter()
        self.idle_steps = 0
        if scheduler.cache_config.enable_prefix_caching:
            self._count_evictions()

    def _count_evictions(self) -> None:
        manager = self.scheduler.block_manager
        allocator = (manager.gpu_allocator if isinstance(manager, BlockSpaceManagerV1)
                     else manager.block_allocator.get_allocator(Device.GPU))
        evict = allocator.evictor.evict

        def counting_evict():
            self.counts["evictions"] += 1
            return evict()

        allocator.evictor.evict = counting_evict

    def add(self, prompt: list[int], lengths: list[int], *, beam: bool = False,
            salt: int = 0) -> str:
        """Add a request with as many samples as `lengths`; each ends after so many tokens."""
        best_of = len(lengths)
        params = SamplingParams(n=best_of, best_of=best_of, use_beam_search=beam,
                                temperature=0.0 if beam else 1.0, max_tokens=max(lengths))
        request_id = f"r{len(self.groups)}"
        group = make_group(request_id, prompt, block_size=self.block_size, seq_id=self.num_seqs,
                           arrival=len(self.groups), params=params)
        self.num_seqs += 1
        self.groups[request_id] = group
        self.lengths[request_id] = lengths
        self.salts[request_id] = salt
        self.scheduler.add_seq_group(group)
        return request_id

    def abort(self, request_id: str) -> None:
        for name in ("waiting", "running", "swapped"):
            if any(group.request_id == request_id for group in getattr(self.scheduler, name)):
                self.counts[f"aborts while {name}"] += 1
        self.scheduler.abort_seq_group(request_id)
        check_invariants(self.scheduler)

    def step(self) -> SchedulerOutputs:
        scheduler = self.scheduler
        batch, outputs = scheduler.schedule()
        self._check_outputs(batch, outputs)
        self._count(batch, outputs)
        self.cache.run(batch, outputs)
        for meta, scheduled in zip(batch, outputs.scheduled_seq_groups, strict=True):
            group = scheduled.seq_group
            self._note_peak(group)
            group.update_num_computed_tokens(scheduled.token_chunk_size)
            if meta.do_sample:
                self._sample(group)
        scheduler.free_finished_seq_groups()
        check_invariants(scheduler)
        self._check_progress(outputs)
        self.step_index += 1
        return outputs

    def run(self, max_steps: int = 100_000) -> None:
        while self.scheduler.has_unfinished_seqs():
            assert self.step_index < max_steps, "livelock"
            self.step()

    def _sample(self, group: SequenceGroup) -> None:
        """Give each running sequence a token; make the forks after the prompt."""
        params = group.sampling_params
        seqs = group.get_seqs(SequenceStatus.RUNNING)
        if group.num_seqs() == 1 and params.best_of > 1 and seqs[0].get_output_len() == 0:
            for _ in range(params.best_of - 1):
                seqs.append(self._fork(group, seqs[0]))
        elif params.use_beam_search and len(seqs) > 1 and self._crc(group, seqs[0], 99) % 3 == 0:
            # The last beam gives way to another continuation of the first.
            seqs[-1:] = [self._replace(group, dropped=seqs[-1], parent=seqs[0])]
        for j, seq in enumerate(seqs):
            token = self._crc(group, seq, j) % self.vocab_size
            seq.append_token_id(token, {token: Logprob(-1.0)})
        joined = list(group.seqs_dict)
        for seq in seqs:
            lengths = self.lengths[group.request_id]
            if seq.get_output_len() >= lengths[joined.index(seq.seq_id) % len(lengths)]:
                seq.status = SequenceStatus.FINISHED_STOPPED
                self.scheduler.free_seq(seq)

    def _crc(self, group: SequenceGroup, seq: Sequence, j: int) -> int:
        return zlib.crc32(bytes([*seq.get_token_ids(), j, self.salts[group.request_id]]))

    def _fork(self, group: SequenceGroup, parent: Sequence) -> Sequence:
        child = parent.fork(self.num_seqs)
        self.num_seqs += 1
        group.add(child)
        self.scheduler.fork_seq(parent, child)
        self.counts["forks"] += 1
        return child

    def _replace(self, group: SequenceGroup, dropped: Sequence, parent: Sequence) -> Sequence:
        child = self._fork(group, parent)
        group.remove(dropped.seq_id)
        self.scheduler.free_seq(dropped)
        return child

    def _note_peak(self, group: SequenceGroup) -> None:
        """Note how much room the group needs to run: blocks held + running sequences."""
        seqs = group.get_seqs(SequenceStatus.RUNNING)
        blocks = {number for seq in seqs
                  for number in self.scheduler.block_manager.get_block_table(seq)}
        need = len(blocks) + len(seqs)
        self.peak_blocks[group.request_id] = max(need, self.peak_blocks[group.request_id])

    def _check_outputs(self, batch: list[SequenceGroupMetadata],
                       outputs: SchedulerOutputs) -> None:
        config = self.scheduler.scheduler_config
        num_tokens = sum(meta.token_chunk_size * len(meta.seq_data) for meta in batch)
        assert num_tokens == outputs.num_batched_tokens <= config.max_num_batched_tokens
        seats = sum(group.get_max_num_running_seqs() for group in self.scheduler.running)
        assert seats <= config.max_num_seqs
        stages = [meta.is_prompt for meta in batch]
        assert stages == sorted(stages, reverse=True) and sum(stages) == outputs.num_prefill_groups
        assert not (outputs.blocks_to_swap_in and outputs.blocks_to_swap_out)
        if not self.scheduler.cache_config.enable_prefix_caching:  # equal blocks become one
            for moves in (outputs.blocks_to_swap_in, outputs.blocks_to_swap_out):
                assert len({destination for _, destination in moves}) == len(moves)
        for decision in outputs.decisions:
            assert sentence(decision)  # there is a sentence for each verdict and check
            assert decision.held_back == (decision.verdict not in (
                Verdict.ADMITTED, Verdict.SWAPPED_IN) and decision.request_id is not None)

    def _check_progress(self, outputs: SchedulerOutputs) -> None:
        """A few steps without a batch may follow each other, not many."""
        moved = outputs.scheduled_seq_groups or outputs.ignored_seq_groups
        self.idle_steps = 0 if moved else self.idle_steps + 1
        assert self.idle_steps < 8, "nothing runs any more"

    def _count(self, batch: list[SequenceGroupMetadata], outputs: SchedulerOutputs) -> None:
        counts = self.counts
        verdicts = Counter(decision.verdict for decision in outputs.decisions)
        counts["steps"] += 1
        counts["recompute preemptions"] += verdicts[Verdict.RECOMPUTED]
        counts["swap preemptions"] += verdicts[Verdict.SWAPPED_OUT]
        counts["recomputed for lack of CPU blocks"] += verdicts[Verdict.NOT_SWAPPED_OUT]
        counts["swap-ins"] += verdicts[Verdict.SWAPPED_IN]
        counts["ignored requests"] += verdicts[Verdict.IGNORED]
        counts["given up"] += verdicts[Verdict.GIVEN_UP]
        counts["copies on write"] += len(outputs.blocks_to_copy)
        counts["prefix hits"] += sum(bool(m.computed_block_nums) for m in batch if m.is_prompt)
        counts["recomputes of several sequences"] += sum(
            m.is_prompt and len(m.seq_data) > 1 for m in batch)
        counts["chunks"] += sum(m.is_prompt and not m.do_sample for m in batch)
