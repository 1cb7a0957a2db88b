"""The stages of sampling as pure functions over rows of logits.

Each takes logits ``(num_rows, vocab_size)`` and a value for each row, or for single entries, and
returns new logits; no row looks at another.  In the order in which `Sampler` uses them:

- `entries`: change single tokens (logit bias, min_tokens, the penalties)
- `filters`: temperature, and cutting off all but the most probable tokens (top-k, top-p, min-p)
- `draws`: from logits to probabilities to tokens (greedy, random, beam search)

vLLM has all of them in ``vllm/model_executor/layers/sampler.py``.
"""
