"""The rules of chapter 3, written down as they stand there, predict the engine's every step."""

from dataclasses import dataclass, field
from random import Random

from minivllm.core.block_manager_v1 import BlockSpaceManagerV1
from minivllm.exercises.grading import run_toy, toy_workload

BLOCK_SIZE, MAX_NUM_BATCHED_TOKENS, MAX_MODEL_LEN, MAX_NUM_SEQS = 4, 12, 12, 8


@dataclass
class Request:
    name: str
    arrival: int
    tokens: int
    max_tokens: int
    new_tokens: int = 0
    table: list[int] = field(default_factory=list)


class Reader:
    """Someone who has read the chapter and has paper and pencil."""

    def __init__(self, prompt_lens, num_blocks, max_tokens):
        self.free = list(range(num_blocks))
        self.waiting = [Request(f"r{i}", i, length, max_tokens)
                        for i, length in enumerate(prompt_lens)]
        self.running = []
        self.num_preemptions = 0

    def step(self):
        """Return who runs, and who has which blocks at the end of the step."""
        batch = self.start_prompts() or self.decode()
        for request in batch:
            request.tokens += 1
            request.new_tokens += 1
            # Rule 6.
            if request.new_tokens == request.max_tokens or request.tokens > MAX_MODEL_LEN:
                self.give_back(request)
                self.running.remove(request)
        return ({request.name for request in batch},
                {request.name: list(request.table) for request in self.running})

    def start_prompts(self):
        """Rules 1 and 2."""
        batch, budget = [], MAX_NUM_BATCHED_TOKENS
        while self.waiting:
            head = self.waiting[0]
            blocks = -(-head.tokens // BLOCK_SIZE)
            if (blocks > len(self.free) or head.tokens > budget
                    or len(self.running) == MAX_NUM_SEQS):
                break
            self.waiting.pop(0)
            head.table = [self.free.pop() for _ in range(blocks)]
            budget -= head.tokens
            self.running.append(head)
            batch.append(head)
        return batch

    def decode(self):
        """Rules 3, 4 and 5."""
        batch, to_visit = [], sorted(self.running, key=lambda request: request.arrival)
        while to_visit:
            request = to_visit.pop(0)
            while not self.free:
                victim = to_visit.pop() if to_visit else request
                self.give_back(victim)
                self.running.remove(victim)
                self.waiting.insert(0, victim)
                self.num_preemptions += 1
                if victim is request:
                    break
            else:
                if request.tokens > len(request.table) * BLOCK_SIZE:
                    request.table.append(self.free.pop())
                batch.append(request)
        return batch

    def give_back(self, request):
        """From the first block to the last: the last one is on top."""
        self.free += request.table
        request.table = []


def test_the_rules_predict_every_step():
    rng, num_steps, num_preemptions = Random(0), 0, 0
    for _ in range(100):
        num_blocks = rng.randint(5, 10)  # fewer could not hold one request to its end
        prompt_lens = [rng.randint(1, 11) for _ in range(rng.randint(1, 10))]
        max_tokens = rng.randint(1, 12)
        trace, error = run_toy(toy_workload(prompt_lens, num_blocks, max_tokens=max_tokens),
                               BlockSpaceManagerV1)
        assert error is None
        reader = Reader(prompt_lens, num_blocks, max_tokens)
        for snapshot in trace:
            expected_batch, expected_tables = reader.step()
            assert {request.request_id for request in snapshot.scheduled} == expected_batch
            tables = {seq.name: list(seq.block_table) for seq in snapshot.sequences.values()
                      if seq.request_id in snapshot.running}
            assert tables == expected_tables, f"step {snapshot.step}"
            num_steps += 1
        assert not reader.waiting and not reader.running
        num_preemptions += reader.num_preemptions
    assert num_steps > 1000 and num_preemptions > 300
