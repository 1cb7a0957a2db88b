"""Random workloads for tiny engines, in every mode, those included that vLLM cannot get through."""

from random import Random

from minivllm.tracing.workload import check_workload
from minivllm.workloads import EngineSpec, RequestSpec, SamplingSpec, Workload

EOS = 2


def random_workload(seed: int) -> Workload:
    rng = Random(seed)
    engine = _engine(rng)
    vocab_size = rng.choice([17, 31, 97, 1000])
    beginnings = [_tokens(rng, vocab_size, rng.randint(1, 30)) for _ in range(2)]
    requests, step = [], 0
    for index in range(rng.randint(3, 12)):
        step += rng.choice([0, 0, 1, 2, 3])
        requests.append(_request(rng, index, step, engine, vocab_size, beginnings))
    return check_workload(Workload(
        format="minivllm-workload/1", name=f"random-{seed}", engine=engine, vocab_size=vocab_size,
        eos_token_id=EOS, requests=requests), f"seed {seed}")


def _engine(rng: Random) -> EngineSpec:
    block_size = rng.choice([1, 2, 3, 4, 4, 8, 16])
    max_model_len = rng.choice([16, 24, 32, 48, 64])
    max_num_seqs = rng.randint(4, 10)
    chunked = rng.random() < 0.4
    fewest = max(2, max_model_len // block_size // 2)
    # Pools from 100 blocks on have a watermark.
    num_gpu_blocks = rng.randint(fewest, 4 * fewest) if rng.random() < 0.9 else rng.randint(
        100, 130)
    return EngineSpec(
        block_size=block_size, num_gpu_blocks=num_gpu_blocks,
        num_cpu_blocks=rng.choice([0, 3, 16, 64, 200]), max_num_seqs=max_num_seqs,
        max_num_batched_tokens=(rng.randint(max_num_seqs, 24) if chunked
                                else max_model_len + rng.randint(0, 40)),
        max_model_len=max_model_len, enable_chunked_prefill=chunked,
        enable_prefix_caching=rng.random() < 0.4, use_v2_block_manager=rng.random() < 0.5,
        preemption_mode=rng.choice([None, "swap", "recompute"]))


def _request(rng: Random, index: int, step: int, engine: EngineSpec, vocab_size: int,
             beginnings: list[list[int]]) -> RequestSpec:
    max_model_len = engine["max_model_len"]
    length = rng.randint(1, max_model_len * 2 // 3)
    if rng.random() < 0.05:
        length = rng.randint(max_model_len - 1, max_model_len + 5)
    prompt = _tokens(rng, vocab_size, length)
    if rng.random() < 0.5:
        prompt = (rng.choice(beginnings) + prompt)[:length]
    return RequestSpec(
        request_id=f"r{index}", arrival_step=step,
        abort_step=step + rng.randint(0, 20) if rng.random() < 0.1 else None,
        prompt_token_ids=prompt, sampling=_sampling(rng, engine["max_num_seqs"], vocab_size))


def _sampling(rng: Random, max_num_seqs: int, vocab_size: int) -> SamplingSpec:
    max_tokens = rng.randint(1, rng.choice([6, 20, 40]))
    best_of = rng.randint(2, min(4, max_num_seqs)) if rng.random() < 0.4 else 1
    beam = best_of > 1 and rng.random() < 0.5
    return SamplingSpec(
        n=rng.randint(1, best_of), best_of=best_of, use_beam_search=beam,
        length_penalty=rng.choice([0.0, 0.5, 1.0, 2.0]) if beam else 1.0,
        early_stopping=rng.choice([False, True, "never"]) if beam else False,
        temperature=0.0 if beam else 1.0, max_tokens=max_tokens,
        min_tokens=rng.randint(0, max_tokens) if rng.random() < 0.2 else 0,
        ignore_eos=rng.random() < 0.4,
        stop_token_ids=[rng.randrange(vocab_size)] if rng.random() < 0.3 else [])


def _tokens(rng: Random, vocab_size: int, num_tokens: int) -> list[int]:
    return rng.choices(range(vocab_size), k=num_tokens)
