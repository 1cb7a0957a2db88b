"""Compares arrangements of threads: tokens per second by batch size.

Run it on a quiet machine::

    python -m tests.bench.threads [--model smollm2] [--rounds 3]

Each line is measured in processes of its own, `rounds` of them in turns with the other lines, and
shows the median.  *BLAS* is how many threads the BLAS library has, *products* how many threads of
minivllm share a matrix product, *attention* how many share attention.  Where products are not
shared (``MINIVLLM_FAST=0``), norms and activations are NumPy's as well.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from minivllm import LLM, SamplingParams, envs

BATCH_SIZES = (1, 8, 32, 64)
PROMPT_LEN, OUTPUT_LEN = 32, 32


def arrangements(cores):
    """Return (BLAS, products, attention) threads; without sharing, products are 1."""
    return [(1, 1, 1), (1, 1, cores), (cores, 1, 1), (cores, 1, cores), (1, cores, cores)]


def measure(model):
    """Return generated tokens per second for each batch size, prefill included."""
    llm = LLM(model, max_model_len=PROMPT_LEN + OUTPUT_LEN)
    params = SamplingParams(temperature=0, max_tokens=OUTPUT_LEN, ignore_eos=True)

    def run(batch_size):
        prompts = [[100 + i + j for j in range(PROMPT_LEN)] for i in range(batch_size)]
        start = time.perf_counter()
        llm.generate(prompt_token_ids=prompts, sampling_params=params, use_tqdm=False)
        return batch_size * OUTPUT_LEN / (time.perf_counter() - start)

    run(2)
    return [run(batch_size) for batch_size in BATCH_SIZES]


def measure_elsewhere(model, blas, products, attention):
    """Run `measure` in a process with the given numbers of threads."""
    env = os.environ | {"OPENBLAS_NUM_THREADS": str(blas), "MKL_NUM_THREADS": str(blas),
                        "VECLIB_MAXIMUM_THREADS": str(blas),
                        "MINIVLLM_NUM_THREADS": str(attention),
                        "MINIVLLM_FAST": "1" if products > 1 else "0",
                        "MINIVLLM_ATTENTION_BACKEND": "numba"}
    command = [sys.executable, "-m", "tests.bench.threads", "--model", model, "--measure"]
    output = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    return json.loads(output.splitlines()[-1])


def print_table(lines):
    print("| BLAS | products | attention |" + "".join(f" batch {n} |" for n in BATCH_SIZES))
    print("|---" * (3 + len(BATCH_SIZES)) + "|")
    for arrangement, rounds in lines.items():
        medians = [statistics.median(values) for values in zip(*rounds, strict=True)]
        print("| " + " | ".join(map(str, arrangement)) + " |"
              + "".join(f" {value:.1f} |" for value in medians))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.model)))
        return
    lines = {arrangement: [] for arrangement in arrangements(envs.num_threads())}
    for _ in range(args.rounds):
        for arrangement, rounds in lines.items():
            rounds.append(measure_elsewhere(args.model, *arrangement))
    print_table(lines)


if __name__ == "__main__":
    main()
