"""Which blocks the sequences of a group can share.

When a group with forks is recomputed, all its sequences are prefilled at once.  They have the
prompt and perhaps more in common; equal blocks after equal beginnings are shared, so that the
group takes no more room than it had while running.  (vLLM cannot recompute such groups.)
"""

from os.path import commonprefix

from minivllm.sequence import Sequence
from minivllm.utils import cdiv


def shared_layout(seqs: list[Sequence], block_size: int) -> list[list[int]]:
    """Number the distinct blocks of the sequences in order of their first use.

    Returns
    -------
    list of list of int
        For each sequence the number of each of its logical blocks.
    """
    if len(seqs) == 1:
        return [list(range(cdiv(seqs[0].get_len(), block_size)))]
    numbers: dict[tuple[int, tuple[int, ...]], int] = {}
    layouts = []
    for seq in seqs:
        layout: list[int] = []
        token_ids = seq.get_token_ids()
        for start in range(0, len(token_ids), block_size):
            # The number of the block before stands for all tokens up to there.
            previous = layout[-1] if layout else -1
            key = previous, tuple(token_ids[start:start + block_size])
            layout.append(numbers.setdefault(key, len(numbers)))
        layouts.append(layout)
    return layouts


def num_distinct_blocks(seqs: list[Sequence], block_size: int) -> int:
    """Return how many blocks the sequences take, equal ones counted once."""
    if len(seqs) == 1:
        return cdiv(seqs[0].get_len(), block_size)
    return 1 + max(max(layout) for layout in shared_layout(seqs, block_size))


def common_beginning(seqs: list[Sequence], computed: list[list[int]]) -> list[int]:
    """Return the computed blocks that all sequences of a group begin with.

    In decode, where nobody uses them, sequences without computed blocks do not count, as in vLLM.
    """
    if len(seqs) == 1:
        return computed[0]
    if not seqs[0].is_prefill():
        computed = [numbers for numbers in computed if numbers]
    return list(commonprefix(computed))
