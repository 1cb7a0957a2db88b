"""The batch of a step as the worker sees it (mirrors the end of ``Scheduler.schedule`` in vLLM)."""

from minivllm.core.interfaces import BlockSpaceManager
from minivllm.core.outputs import ScheduledSequenceGroup
from minivllm.sequence import SequenceGroupMetadata


def describe(scheduled: ScheduledSequenceGroup, block_manager: BlockSpaceManager,
             now: float) -> SequenceGroupMetadata:
    """Describe a scheduled group for the worker."""
    seq_group, chunk, seqs = scheduled.seq_group, scheduled.token_chunk_size, scheduled.seqs
    is_prompt = seqs[0].data.is_prefill
    if is_prompt:
        seq_group.maybe_set_first_scheduled_time(now)
    seq_data, block_tables = {}, {}
    for seq in seqs:
        seq_data[seq.seq_id] = seq.data
        block_tables[seq.seq_id] = block_manager.get_block_table(seq)
    return SequenceGroupMetadata(
        request_id=seq_group.request_id,
        is_prompt=is_prompt,
        seq_data=seq_data,
        sampling_params=seq_group.sampling_params,
        block_tables=block_tables,
        # Without the last token computed there is nothing to sample from.
        do_sample=not is_prompt or seqs[0].data.get_num_uncomputed_tokens() == chunk,
        pooling_params=seq_group.pooling_params,
        token_chunk_size=chunk,
        computed_block_nums=block_manager.get_common_computed_block_ids(seqs),
        state=seq_group.state)


def note_use(batch: list[ScheduledSequenceGroup], block_manager: BlockSpaceManager,
             now: float) -> None:
    """Tell the prefix cache which blocks the batch uses, and which it computes.

    This comes after the whole batch is described: no group may skip what another one computes in
    the same batch.
    """
    for scheduled in batch:
        for seq in scheduled.seqs:
            block_manager.access_all_blocks_in_seq(seq, now)
        block_manager.mark_blocks_as_computed(scheduled.seq_group, scheduled.token_chunk_size)
