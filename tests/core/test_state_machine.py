"""Random requests, forks, aborts and tiny pools: whatever happens, the invariants hold.

A machine adds and aborts requests and runs steps; the driver checks everything after each of
them.  At the end all requests finish, both pools are full again, and no request that the pool
could hold was given up.
"""

import itertools
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from minivllm.sequence import SequenceGroup, SequenceStatus
from tests.core.driver import Driver, make_scheduler

CONFIGURATIONS = list(itertools.product(["v1", "v2"], [False, True], [False, True],
                                        [None, "swap", "recompute"]))
# Two of them, so that requests begin alike.
BEGINNINGS = [[0, 1] * 12, [1] * 24]


class Machine(RuleBasedStateMachine):
    """One engine of a configuration that subclasses name, and what happens to it."""

    version: str
    caching: bool
    chunked: bool
    mode: str | None
    totals: Counter[str]

    @initialize(block_size=st.sampled_from([1, 2, 3, 4]),
                num_gpu_blocks=st.sampled_from([4, 6, 8, 10, 12, 16, 24, 110]),
                num_cpu_blocks=st.sampled_from([40, 20, 12, 3]),
                max_model_len=st.sampled_from([16, 24, 32]),
                max_num_seqs=st.integers(3, 8), max_num_batched_tokens=st.integers(8, 14),
                vocab_size=st.sampled_from([1, 2, 3, 5]))
    def start(self, block_size, num_gpu_blocks, num_cpu_blocks, max_model_len, max_num_seqs,
              max_num_batched_tokens, vocab_size):
        if not self.chunked:
            max_num_batched_tokens = max_model_len
        scheduler = make_scheduler(
            block_size=block_size, num_gpu_blocks=num_gpu_blocks, num_cpu_blocks=num_cpu_blocks,
            max_model_len=max_model_len, max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            use_v2_block_manager=self.version == "v2", enable_prefix_caching=self.caching,
            enable_chunked_prefill=self.chunked, preemption_mode=self.mode)
        self.driver = Driver(scheduler, vocab_size)
        scheduler.clock = lambda: float(self.driver.step_index)
        self.max_model_len, self.max_num_seqs = max_model_len, max_num_seqs

    @rule(beginning=st.sampled_from(BEGINNINGS), length=st.integers(1, 24),
          tail=st.lists(st.integers(0, 1), max_size=2),
          lengths=st.lists(st.integers(1, 24), min_size=1, max_size=3), beam=st.booleans(),
          salt=st.integers(0, 1))
    def add(self, beginning, length, tail, lengths, beam, salt):
        prompt = (beginning[:length] + tail)[:self.max_model_len]
        longest = max(1, self.max_model_len - len(prompt))
        self.driver.add(prompt, [min(n, longest) for n in lengths],
                        beam=beam and len(lengths) > 1, salt=salt)

    @rule(num_steps=st.integers(2, 12))
    def steps(self, num_steps):
        for _ in range(num_steps):
            if self.driver.scheduler.has_unfinished_seqs():
                self.driver.step()

    @rule(index=st.integers(0, 5), queue=st.sampled_from(["swapped", "running", "waiting"]))
    def abort(self, index, queue):
        scheduler = self.driver.scheduler
        for _ in range(15):  # until there is somebody
            groups = getattr(scheduler, queue)
            if groups:
                self.driver.abort(groups[index % len(groups)].request_id)
                return
            if scheduler.has_unfinished_seqs():
                self.driver.step()

    def teardown(self):
        if not hasattr(self, "driver"):
            return
        self.driver.run(max_steps=self.driver.step_index + 5000)
        manager = self.driver.scheduler.block_manager
        assert manager.get_num_free_gpu_blocks() == manager.num_total_gpu_blocks
        assert manager.get_num_free_cpu_blocks() == manager.num_total_cpu_blocks
        for request_id, group in self.driver.groups.items():
            self.check_not_given_up_for_others(request_id, group)
        self.totals.update(self.driver.counts)

    def check_not_given_up_for_others(self, request_id: str, group: SequenceGroup) -> None:
        """A request that ran and was given up needs more than the whole pool even alone."""
        if not any(seq.status is SequenceStatus.FINISHED_IGNORED and seq.get_output_len() > 0
                   for seq in group.get_seqs()):
            return
        alone = Driver(make_scheduler(block_size=self.driver.block_size, num_gpu_blocks=1000,
                                      max_num_batched_tokens=1000, max_model_len=1000),
                       self.driver.vocab_size)
        alone.add(group.prompt_token_ids, self.driver.lengths[request_id],
                  beam=group.sampling_params.use_beam_search,
                  salt=self.driver.salts[request_id])
        alone.run()
        assert alone.peak_blocks["r0"] > self.driver.scheduler.block_manager.num_total_gpu_blocks


def expected_counters(version: str, caching: bool, chunked: bool, mode: str | None) -> set[str]:
    expected = {"recompute preemptions", "copies on write", "forks", "ignored requests",
                "aborts while waiting", "aborts while running", "recomputes of several sequences"}
    if mode != "recompute":
        expected |= {"swap preemptions", "swap-ins", "aborts while swapped",
                     "recomputed for lack of CPU blocks", "given up"}
    if caching:
        expected |= {"prefix hits", "evictions"}
    if chunked:
        expected |= {"chunks"}
    return expected


def run(configuration: tuple[str, bool, bool, str | None], num_examples: int,
        num_steps: int) -> Counter[str]:
    """Run examples, which take so many steps at least; return what happened how often."""
    version, caching, chunked, mode = configuration
    totals: Counter[str] = Counter()
    machine = type("ConfiguredMachine", (Machine,), {
        "version": version, "caching": caching, "chunked": chunked, "mode": mode,
        "totals": totals})
    run_state_machine_as_test(machine, settings=settings(
        max_examples=num_examples, stateful_step_count=50, deadline=None, derandomize=True,
        database=None, suppress_health_check=list(HealthCheck)))
    print(f"{version} caching={caching} chunked={chunked} mode={mode}: {dict(totals)}")
    assert totals["steps"] >= num_steps
    return totals


def assert_everything_happened(configuration, totals: Counter[str]) -> None:
    missing = {name for name in expected_counters(*configuration) if not totals[name]}
    assert not missing


# Each pair of settings occurs once at least.
@pytest.mark.parametrize("configuration", [
    ("v1", False, False, None), ("v2", True, True, None), ("v1", True, False, "swap"),
    ("v2", False, True, "swap"), ("v1", False, True, "recompute"), ("v2", True, False, "recompute"),
], ids=str)
def test_some_steps(configuration):
    run(configuration, num_examples=25, num_steps=200)


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_more_steps(configuration):
    assert_everything_happened(configuration,
                               run(configuration, num_examples=40, num_steps=1500))


@pytest.mark.slow_full
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
def test_10000_steps(configuration):
    assert_everything_happened(configuration,
                               run(configuration, num_examples=270, num_steps=10_000))
