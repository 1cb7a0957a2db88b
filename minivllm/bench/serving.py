"""Serves timed requests with an engine, and notes when each token came."""

import time
from dataclasses import dataclass, field
from itertools import pairwise

from minivllm.bench.cases import TimedRequest
from minivllm.engine.llm_engine import LLMEngine
from minivllm.outputs import RequestOutput
from minivllm.sampling_params import SamplingParams


@dataclass
class TokenTimes:
    """When a request arrived, and when each of its tokens came, in seconds."""

    arrival: float
    tokens: list[float] = field(default_factory=list)

    @property
    def to_first_token(self) -> float:
        """Seconds from arrival to the first token."""
        return self.tokens[0] - self.arrival

    @property
    def gaps(self) -> list[float]:
        """Seconds between each two tokens."""
        return [later - earlier for earlier, later in pairwise(self.tokens)]


def serve(engine: LLMEngine, requests: list[TimedRequest]) -> tuple[float, list[TokenTimes]]:
    """Run requests to their ends, each added before the step it arrives at.

    Returns
    -------
    seconds : float
        From the first step to the last.
    times : list of TokenTimes
        In the order of the requests.
    """
    waiting = dict(enumerate(requests))
    times: dict[str, TokenTimes] = {}
    step, start = 0, time.perf_counter()
    while waiting or engine.has_unfinished_requests():
        for index in [i for i, request in waiting.items() if request.arrival_step <= step]:
            request = waiting.pop(index)
            params = SamplingParams(temperature=0, max_tokens=request.max_tokens, ignore_eos=True)
            engine.add_request(str(index), {"prompt_token_ids": request.prompt_token_ids}, params)
            times[str(index)] = TokenTimes(time.perf_counter())
        outputs = engine.step()
        now = time.perf_counter()
        for output in outputs:
            token_times = times[output.request_id].tokens
            if (isinstance(output, RequestOutput)
                    and len(output.outputs[0].token_ids) > len(token_times)):
                token_times.append(now)
        step += 1
    seconds = time.perf_counter() - start
    return seconds, [times[str(index)] for index in range(len(requests))]
