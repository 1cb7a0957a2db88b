"""In which order requests are served (mirrors ``vllm/core/policy.py``)."""

from collections import deque
from collections.abc import Iterable
from operator import attrgetter

from minivllm.sequence import SequenceGroup


class Policy:
    """An order of requests, by a priority that may change with time."""

    def get_priority(self, now: float, seq_group: SequenceGroup) -> float:
        """Return how urgent the request is; higher goes first."""
        raise NotImplementedError

    def sort_by_priority(self, now: float,
                         seq_groups: Iterable[SequenceGroup]) -> deque[SequenceGroup]:
        """Return the requests, most urgent first; equal ones keep their order."""
        return deque(sorted(seq_groups, key=lambda group: self.get_priority(now, group),
                            reverse=True))


class FCFS(Policy):
    """First come, first served: the longer a request has been here, the more urgent it is."""

    def get_priority(self, now: float, seq_group: SequenceGroup) -> float:
        """Return the time since arrival."""
        return now - seq_group.metrics.arrival_time

    def sort_by_priority(self, now: float,
                         seq_groups: Iterable[SequenceGroup]) -> deque[SequenceGroup]:
        """Return the requests, the first to arrive first, whatever the time."""
        return deque(sorted(seq_groups, key=_arrival_time))


_arrival_time = attrgetter("metrics.arrival_time")


class PolicyFactory:
    """Finds a policy by its name."""

    _POLICY_REGISTRY: dict[str, type[Policy]] = {"fcfs": FCFS}

    @classmethod
    def get_policy(cls, policy_name: str) -> Policy:
        """Return a policy of this name; "fcfs" is the only one."""
        return cls._POLICY_REGISTRY[policy_name]()
