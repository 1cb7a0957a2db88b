"""Exercise 03: say whether a running request may go on for another step.

Read README.md, complete `can_append_slots`, then run ``minivllm exercises check 03``.
"""

from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.sequence import SequenceGroup


class MyManager(BlockSpaceManagerV1):
    """The real block manager, with one method missing."""

    def can_append_slots(self, seq_group: SequenceGroup, num_lookahead_slots: int = 0) -> bool:
        """Return True if the group may run another step."""
        raise NotImplementedError("can_append_slots is missing")
