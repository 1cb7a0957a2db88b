"""How fast attention is: decodes beside what reading takes, prompts beside the rest of a prefill.

Run it on a quiet machine::

    python -m tests.bench.attention [--model smollm2] [--rounds 9]

Decodes: the kernel alone, on one KV cache for each of several layers, so that with many sequences
little is in a cache from the round before; blocks lie in random order.  *Blocks* is the speed at
which a loop without arithmetic reads the same blocks, *one piece* that of `minivllm.bench.machine`
for a large array.  The three take turns; medians.  Prompts: the stages of `minivllm bench run`.
"""

import argparse
import statistics
import time
from random import Random

import numpy as np

from minivllm import LLM
from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
from minivllm.attention.ops.jit import REORDERED, jit
from minivllm.attention.ops.paged_attn import fetch
from minivllm.bench.cases import TimedRequest, random_tokens
from minivllm.bench.machine import measure_limits
from minivllm.bench.serving import serve
from minivllm.bench.stages import watch_stages
from minivllm.threads import get_pool

NUM_LAYERS, NUM_HEADS, NUM_KV_HEADS, HEAD_SIZE, BLOCK_SIZE = 4, 9, 3, 64, 16
SHAPES = [(1, 1024), (1, 8192), (32, 128), (32, 256), (32, 512), (32, 1024), (32, 2048)]


@jit(REORDERED)
def read_blocks(thread, num_threads, kv_cache, blocks, sums):
    """Add up the numbers of a share of the blocks, and ask for the next one meanwhile."""
    share = blocks[len(blocks) * thread // num_threads:len(blocks) * (thread + 1) // num_threads]
    for which in range(2):
        for i in range(len(share)):
            for kv_head in range(kv_cache.shape[2]):
                block = kv_cache[which, share[i], kv_head]
                following = kv_cache[which, share[min(i + 1, len(share) - 1)], kv_head]
                total = np.float32(0)
                for t in range(block.shape[0]):
                    fetch(following[t:t + 1])
                    for d in range(block.shape[1]):
                        total += block[t, d]
                sums[thread] += total


def decode_speeds(num_seqs, seq_len, rounds):
    """Return bytes per second of the kernel and of reading the same blocks."""
    rng = np.random.default_rng(0)
    num_blocks = num_seqs * seq_len // BLOCK_SIZE
    caches = [rng.standard_normal((2, num_blocks, NUM_KV_HEADS, BLOCK_SIZE, HEAD_SIZE),
                                  dtype=np.float32) for _ in range(NUM_LAYERS)]
    tables = rng.permutation(num_blocks).astype(np.int32).reshape(num_seqs, -1)
    seq_lens = np.full(num_seqs, seq_len, np.int32)
    query = rng.standard_normal((num_seqs, NUM_HEADS, HEAD_SIZE), dtype=np.float32)
    out, sums = np.empty_like(query), np.zeros(64, np.float32)

    def attend():
        for cache in caches:
            NumbaAttentionBackend.paged_attention(query, cache, tables, seq_lens, 0.125, None, out)

    def read():
        for cache in caches:
            get_pool().run(read_blocks, cache, tables.ravel(), sums)

    seconds = {attend: [], read: []}
    for i in range(rounds + 1):
        for function, times in seconds.items():
            start = time.perf_counter()
            function()
            if i:  # the first round compiles
                times.append(time.perf_counter() - start)
    num_bytes = sum(cache.nbytes for cache in caches)
    return [num_bytes / statistics.median(times) for times in seconds.values()]


def prefill_share(llm, limits, prompt_len):
    """Return the seconds of a prompt, and the part of them that attention takes."""
    prompt = random_tokens(Random(prompt_len), 1000, prompt_len)
    with watch_stages(llm.llm_engine, limits) as clock:
        serve(llm.llm_engine, [TimedRequest(prompt, 1)])
    seconds = clock.prefill.seconds
    total = sum(seconds.values())
    return total, seconds["attention"] / total


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    NumbaAttentionBackend.warm_up()
    print("decodes      GB/s  blocks  one piece  of one piece  ns per token and sequence")
    for num_seqs, seq_len in SHAPES:
        kernel, blocks = decode_speeds(num_seqs, seq_len, args.rounds)
        limit = measure_limits().read_bandwidth
        token = 2 * NUM_KV_HEADS * HEAD_SIZE * 4 / kernel * 1e9
        print(f"{num_seqs:3} x {seq_len:5} {kernel / 1e9:7.1f} {blocks / 1e9:7.1f} "
              f"{limit / 1e9:10.1f} {kernel / limit:13.0%} {token:8.1f}", flush=True)
    print("\nprompts  seconds  attention")
    llm, limits = LLM(args.model), measure_limits()
    prefill_share(llm, limits, 64)
    for prompt_len in (512, 1024, 2048, 4096):
        shares = [prefill_share(llm, limits, prompt_len) for _ in range(3)]
        seconds, share = statistics.median(shares)
        print(f"{prompt_len:7} {seconds:8.2f} {share:10.0%}", flush=True)


if __name__ == "__main__":
    main()
