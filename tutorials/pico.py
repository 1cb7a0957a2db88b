"""vLLM's idea in one file: a paged KV cache, block tables, a scheduler that preempts.

    python tutorials/pico.py "Hello, my name is" "The capital of France is"

NumPy and nothing else; the model is the one that comes with minivllm.  Greedy only, no error
messages: this is for reading.  `Engine` is the idea; tokenizer and model are what it needs.
"""

import json
import re
import sys
from collections import deque
from pathlib import Path

import numpy as np

MODEL = Path(__file__).parents[1] / "minivllm" / "assets" / "tiny"
BLOCK_SIZE, NUM_BLOCKS, MAX_TOKENS_PER_STEP = 4, 24, 64


# Byte-level BPE writes bytes that print as themselves, the others as characters from 256 on.
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
HIDDEN = [b for b in range(256) if b not in PRINTABLE]
CHAR_OF = {b: chr(b) for b in PRINTABLE} | {b: chr(256 + i) for i, b in enumerate(HIDDEN)}
BYTE_OF = {char: b for b, char in CHAR_OF.items()}
WORD = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+")


class Tokenizer:
    """Words become bytes, and neighbours are merged, the pair that was commonest first."""

    def __init__(self, folder):
        bpe = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]
        merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in bpe["merges"]]
        self.ids, self.ranks = bpe["vocab"], {pair: i for i, pair in enumerate(merges)}
        self.texts = {i: text for text, i in self.ids.items()}

    def encode(self, text):
        ids = []
        for word in WORD.findall(text):
            parts = [CHAR_OF[b] for b in word.encode()]
            while pairs := [pair for pair in zip(parts, parts[1:]) if pair in self.ranks]:
                best = min(pairs, key=self.ranks.get)
                i = list(zip(parts, parts[1:])).index(best)
                parts[i:i + 2] = ["".join(best)]
            ids += [self.ids[part] for part in parts]
        return ids

    def decode(self, ids):
        chars = "".join(self.texts.get(i, "") for i in ids)
        return bytes(BYTE_OF[char] for char in chars).decode(errors="replace")


class Model:
    """Llama.  `forward` takes the new tokens of all sequences in one row."""

    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        raw = (folder / "model.safetensors").read_bytes()
        data = 8 + int.from_bytes(raw[:8], "little")  # behind a JSON header
        self.w = {name: np.frombuffer(raw[data:][slice(*entry["data_offsets"])],
                                      {"F16": np.float16, "F32": np.float32}[entry["dtype"]])
                  .reshape(entry["shape"]).astype(np.float32)
                  for name, entry in json.loads(raw[8:data]).items() if name != "__metadata__"}
        self.num_layers, self.num_heads, self.num_kv_heads = (self.config[key] for key in (
            "num_hidden_layers", "num_attention_heads", "num_key_value_heads"))
        self.head_size = self.config["hidden_size"] // self.num_heads

    def forward(self, ids, positions, slots, seqs, cache):
        """Return the logits of each sequence's last token, ``(num_seqs, vocab_size)``.

        ids, positions, slots: (num_tokens,); seqs: (first row, last row + 1, table) of each.
        cache: (num_layers, 2, num_blocks, BLOCK_SIZE, num_kv_heads, head_size).
        """
        x = self.w["model.embed_tokens.weight"][ids]  # (num_tokens, hidden_size)
        for layer in range(self.num_layers):
            name = f"model.layers.{layer}."
            h = self.norm(x, name + "input_layernorm")
            q, k, v = (self.linear(h, f"{name}self_attn.{p}_proj")
                       .reshape(len(ids), -1, self.head_size) for p in "qkv")
            q, k = self.rotate(q, positions), self.rotate(k, positions)
            cache[layer, 0, slots // BLOCK_SIZE, slots % BLOCK_SIZE] = k
            cache[layer, 1, slots // BLOCK_SIZE, slots % BLOCK_SIZE] = v
            out = [self.attend(q[start:stop], positions[start:stop], cache[layer][:, table])
                   for start, stop, table in seqs]
            x = x + self.linear(np.concatenate(out), name + "self_attn.o_proj")
            h = self.norm(x, name + "post_attention_layernorm")
            gate, up = self.linear(h, name + "mlp.gate_proj"), self.linear(h, name + "mlp.up_proj")
            x = x + self.linear(gate / (1 + np.exp(-gate)) * up, name + "mlp.down_proj")
        last = self.norm(x[[stop - 1 for _, stop, _ in seqs]], "model.norm")
        return self.linear(last, "lm_head" if "lm_head.weight" in self.w else "model.embed_tokens")

    def attend(self, q, positions, blocks):
        # blocks: (2, num_blocks, BLOCK_SIZE, num_kv_heads, head_size), gathered by table.  From
        # here on nothing is paged any more.
        k, v = blocks.reshape(2, -1, self.num_kv_heads, self.head_size).repeat(
            self.num_heads // self.num_kv_heads, axis=2)  # (num_slots, num_heads, head_size)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.head_size)
        scores[:, np.arange(len(k)) > positions[:, None]] = -np.inf  # later tokens, unused slots
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("hqk,khd->qhd", weights, v).reshape(len(q), -1)

    def rotate(self, x, positions):
        half = self.head_size // 2
        angles = positions[:, None, None] * self.config["rope_theta"] ** (-np.arange(half) / half)
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T

    def norm(self, x, name):
        scale = np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"])
        return x / scale * self.w[name + ".weight"]


class Sequence:
    """Tokens, how many of them are in the cache, and the blocks where they are."""

    def __init__(self, prompt, max_tokens):
        self.tokens, self.num_computed, self.table = list(prompt), 0, []
        self.end = len(prompt) + max_tokens

    def num_missing_blocks(self):
        return -(-len(self.tokens) // BLOCK_SIZE) - len(self.table)


class Engine:
    """Queues, free blocks, and the loop."""

    def __init__(self, model, num_blocks=NUM_BLOCKS):
        self.model, self.free = model, list(range(num_blocks))
        self.cache = np.zeros((model.num_layers, 2, num_blocks, BLOCK_SIZE, model.num_kv_heads,
                               model.head_size), dtype=np.float32)
        self.waiting, self.running, self.num_preemptions = deque(), [], 0

    def step(self):
        """Schedule, execute, process."""
        batch = self.start_prompts() or self.continue_running()
        rows = [(seq, range(seq.num_computed, len(seq.tokens))) for seq in batch]
        ids = np.array([seq.tokens[p] for seq, new in rows for p in new])
        positions = np.array([p for _, new in rows for p in new])
        slots = np.array([seq.table[p // BLOCK_SIZE] * BLOCK_SIZE + p % BLOCK_SIZE
                          for seq, new in rows for p in new])
        ends = np.cumsum([len(new) for _, new in rows])
        seqs = [(end - len(new), end, seq.table) for end, (seq, new) in zip(ends, rows)]
        logits = self.model.forward(ids, positions, slots, seqs, self.cache)
        for seq, token in zip(batch, logits.argmax(-1)):
            seq.num_computed = len(seq.tokens)
            seq.tokens.append(int(token))
            if token == self.model.config["eos_token_id"] or len(seq.tokens) == seq.end:
                self.running.remove(seq)
                self.release(seq)

    def start_prompts(self):
        """Let waiting sequences in, first come first served, while tokens and blocks last."""
        batch, budget = [], MAX_TOKENS_PER_STEP
        while (self.waiting and self.waiting[0].num_missing_blocks() <= len(self.free)
               and len(self.waiting[0].tokens) <= budget):
            seq = self.waiting.popleft()
            budget -= len(seq.tokens)
            self.fill_table(seq)
            batch.append(seq)
        self.running += batch
        return batch

    def continue_running(self):
        """Give each running sequence a slot for its newest token; preempt from the end."""
        for seq in list(self.running):
            while seq in self.running and seq.num_missing_blocks() > len(self.free):
                victim = self.running.pop()
                self.release(victim)  # by recompute: its tokens stay, its keys and values go
                victim.num_computed, self.num_preemptions = 0, self.num_preemptions + 1
                self.waiting.appendleft(victim)
            if seq in self.running:
                self.fill_table(seq)
        return self.running.copy()

    def fill_table(self, seq):
        seq.table += [self.free.pop() for _ in range(seq.num_missing_blocks())]

    def release(self, seq):
        self.free, seq.table = self.free + seq.table, []

    def generate(self, prompts, max_tokens=16):
        """Continue prompts of token ids; return the new ids of each."""
        seqs = [Sequence(prompt, max_tokens) for prompt in prompts]
        self.waiting += seqs
        while self.waiting or self.running:
            self.step()
        return [seq.tokens[len(prompt):] for seq, prompt in zip(seqs, prompts)]


if __name__ == "__main__":
    tokenizer, engine = Tokenizer(MODEL), Engine(Model(MODEL))
    texts = sys.argv[1:] or ["Hello, my name is", "The capital of France is"]
    for text, ids in zip(texts, engine.generate([tokenizer.encode(text) for text in texts])):
        print(text + tokenizer.decode(ids))
