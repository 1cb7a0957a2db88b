"""One program that generates tokens, behind a pipe; `peers.py` starts several of them.

Runs under the Python of the program's own environment and imports nothing of minivllm's unless
minivllm is the program.  A line of JSON on stdin, ``{"prompts": [[id, ...], ...], "max_tokens":
n}``, is answered by one on stdout, ``{"seconds": s, "tokens": [[id, ...], ...]}``; all prompts
are given at once, decoding is greedy, and every sequence gets exactly `max_tokens` tokens.
"""

import json
import os
import sys
import time


def minivllm(model):
    from minivllm import LLM, SamplingParams

    llm = LLM(model)

    def generate(prompts, max_tokens):
        params = SamplingParams(temperature=0, max_tokens=max_tokens, ignore_eos=True,
                                detokenize=False)
        outputs = llm.generate(prompt_token_ids=prompts, sampling_params=params, use_tqdm=False)
        return [output.outputs[0].token_ids for output in outputs]

    return generate


def transformers(model):
    import torch
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()

    def generate(prompts, max_tokens):
        ids = torch.tensor(prompts)  # of one length, so nothing is padded
        with torch.inference_mode():
            output = network.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                      max_new_tokens=max_tokens, min_new_tokens=max_tokens)
        return output[:, ids.shape[1]:].tolist()

    return generate


def llamacpp(model):
    import llama_cpp as lib
    import numpy as np

    lib.llama_backend_init()
    network = lib.llama_load_model_from_file(model.encode(), lib.llama_model_default_params())
    vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(network))
    max_batch = 2048
    batch = lib.llama_batch_init(max_batch, 0, 1)

    def decode(context, entries, newest):
        """Run (token, position, sequence, wants logits) entries; note the best next tokens."""
        batch.n_tokens = len(entries)
        for i, (token, position, seq, wants_logits) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, position, 1
            batch.seq_id[i][0], batch.logits[i] = seq, wants_logits
        if lib.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode failed.")
        for i, (_, _, seq, wants_logits) in enumerate(entries):
            if wants_logits:
                logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(context, i), (vocab_size,))
                newest[seq].append(int(logits.argmax()))

    def generate(prompts, max_tokens):
        params = lib.llama_context_default_params()
        params.n_ctx = sum(len(prompt) + max_tokens + 8 for prompt in prompts)
        params.n_batch, params.n_ubatch, params.n_seq_max = max_batch, 512, len(prompts)
        params.n_threads = params.n_threads_batch = len(os.sched_getaffinity(0))
        context = lib.llama_new_context_with_model(network, params)
        tokens = [[] for _ in prompts]
        entries = [(token, position, seq, position == len(prompt) - 1)
                   for seq, prompt in enumerate(prompts) for position, token in enumerate(prompt)]
        for start in range(0, len(entries), max_batch):
            decode(context, entries[start:start + max_batch], tokens)
        for step in range(max_tokens - 1):
            decode(context, [(tokens[seq][-1], len(prompt) + step, seq, True)
                             for seq, prompt in enumerate(prompts)], tokens)
        lib.llama_free(context)
        return tokens

    return generate


def vllm(model):
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")  # else one core does nothing
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm import LLM, SamplingParams

    llm = LLM(model=model, dtype="float32", max_model_len=2048, enable_prefix_caching=False,
              max_num_seqs=64, max_num_batched_tokens=8192)

    def generate(prompts, max_tokens):
        params = SamplingParams(temperature=0, max_tokens=max_tokens, ignore_eos=True,
                                detokenize=False)
        outputs = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params,
                               use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]

    return generate


PROGRAMS = {"minivllm": minivllm, "transformers": transformers, "llamacpp": llamacpp, "vllm": vllm}


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    program, model = sys.argv[1:]
    generate = PROGRAMS[program](model)
    for line in sys.stdin:
        question = json.loads(line)
        start = time.perf_counter()
        tokens = generate(question["prompts"], question["max_tokens"])
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "tokens": tokens}), file=answers, flush=True)


if __name__ == "__main__":
    main()
