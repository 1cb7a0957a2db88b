"""Random small workloads that run into every kind of memory pressure."""

from typing import Any

from hypothesis import strategies as st

from minivllm.tracing.workload import check_workload
from minivllm.workloads import FORMAT, GREEDY, Workload


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Return a workload of up to six requests at a tiny engine."""
    block_size = draw(st.sampled_from([1, 2, 4]))
    is_chunked = draw(st.booleans())
    engine = {
        "block_size": block_size, "num_gpu_blocks": draw(st.integers(4, 24)),
        "num_cpu_blocks": draw(st.integers(0, 24)), "max_num_seqs": draw(st.integers(4, 8)),
        "max_num_batched_tokens": draw(st.integers(8, 24) if is_chunked else st.integers(24, 40)),
        "max_model_len": 24, "enable_chunked_prefill": is_chunked,
        "enable_prefix_caching": draw(st.booleans()),
        "use_v2_block_manager": draw(st.booleans()),
        "preemption_mode": draw(st.sampled_from([None, "swap", "recompute"]))}
    requests = [draw(_request(number)) for number in range(draw(st.integers(1, 6)))]
    return check_workload({"format": FORMAT, "name": "random", "engine": engine,
                           "vocab_size": 13, "eos_token_id": 2, "requests": requests})


@st.composite
def _request(draw: st.DrawFn, number: int) -> dict[str, Any]:
    best_of = draw(st.integers(1, 3))
    sampling = {**GREEDY, "n": 1, "best_of": best_of, "temperature": 1.0 if best_of > 1 else 0.0,
                "max_tokens": draw(st.integers(1, 12)), "ignore_eos": draw(st.booleans())}
    if best_of > 1 and draw(st.booleans()):
        sampling |= {"use_beam_search": True, "temperature": 0.0}
    # Few different tokens, and prompts that begin alike, so that prefixes are found again.
    prompt = draw(st.sampled_from([[3, 4, 5, 6], []])) + draw(
        st.lists(st.integers(3, 5), min_size=1, max_size=8))
    return {"request_id": f"r{number}", "arrival_step": draw(st.integers(0, 6)),
            "abort_step": draw(st.sampled_from([None, None, None, 2, 5, 9])),
            "prompt_token_ids": prompt, "sampling": sampling}
