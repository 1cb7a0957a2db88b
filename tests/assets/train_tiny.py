"""Train the built-in tiny model from nothing and export it.

The whole path is here: generate the text, train the tokenizer, train the
model on the CPU, round the weights to float16, and write a Hugging Face model
directory. Needs the packages torch, tokenizers, safetensors and numpy:

    python tests/assets/train_tiny.py

Afterwards, `evaluate_tiny.py` measures the exported files and writes the
model card.
"""

import argparse
import json
import math
import pathlib
import random
import time

import corpus
import numpy as np
import safetensors.torch
import tokenizers
import torch
import torch.nn.functional as F
from corpus_games import memory_game
from muon import Muon
from tiny_model import TinyLlama
from tokenizers import decoders, models, pre_tokenizers, trainers

MODEL_DIR = pathlib.Path(__file__).parents[2] / "minivllm" / "assets" / "tiny"
RECORD = pathlib.Path(__file__).with_name("training.json")
TRAIN_SEED, HELD_OUT_SEED = 1, 2
# Roles as plain words, exactly as in the chats of the corpus; no default system
# text, and an end token after each answer, because there each chat ends.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\\n' }}"
    "{% elif message['role'] == 'assistant' %}"
    "{{ 'Assistant: ' + message['content'] + eos_token }}"
    "{% else %}{{ message['content'] + '\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)


def model_config(vocab_size):
    """Return the contents of config.json."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "eos_token_id": 0,
        "head_dim": 32,
        "hidden_act": "silu",
        "hidden_size": 192,
        "initializer_range": 0.02,
        "intermediate_size": 512,
        "max_position_embeddings": 1024,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 6,
        "num_hidden_layers": 4,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-05,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
        "use_cache": True,
        "vocab_size": vocab_size,
    }


def write_json(path, data):
    """Write readable JSON with a final newline."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=2, ensure_ascii=False)
        file.write("\n")


def add_record(path, record, fresh):
    """Note a run for the model card, after those that it started from."""
    runs = []
    if not fresh:
        with open(path, encoding="utf-8") as file:
            runs = json.load(file)
    write_json(path, runs + [record])


def make_texts(count, games):
    """Return documents of the corpus, a share of them memory games in place of others."""
    rng = random.Random(TRAIN_SEED)
    return [memory_game(rng) if rng.random() < games else corpus.document(rng)
            for _ in range(count)]


def train_tokenizer(texts, vocab_size):
    """Train a byte-level BPE tokenizer without a begin token.

    All 256 bytes are in the alphabet, so any text can be encoded, even one
    with letters that the corpus does not know.
    """
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[corpus.END], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def load(directory):
    """Return tokenizer and model of an earlier export."""
    with open(directory / "config.json", encoding="utf-8") as file:
        model = TinyLlama(json.load(file))
    weights = safetensors.torch.load_file(directory / "model.safetensors")
    model.load_state_dict({name: value.float() for name, value in weights.items()})
    return tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json")), model


def encode_documents(tokenizer, texts):
    """Return all tokens in one array, and where each document starts."""
    tokens, starts, total = [], [], 0
    for batch in (texts[i:i + 1000] for i in range(0, len(texts), 1000)):
        for encoding in tokenizer.encode_batch(batch):
            ids = encoding.ids + [0]
            starts.append(total)
            total += len(ids)
            tokens.append(np.array(ids, dtype=np.uint16))
    return np.concatenate(tokens), np.array(starts)


def make_batch(rng, tokens, starts, rows, length):
    """Cut rows of tokens that begin at the start of a random document.

    There is no begin token, so the model must know how texts start at the
    very first position; rows cut anywhere would not teach that.
    """
    usable = starts[: np.searchsorted(starts, len(tokens) - length - 1)]
    rows = [tokens[s:s + length + 1] for s in rng.choice(usable, rows)]
    return torch.from_numpy(np.stack(rows).astype(np.int64))


def loss_of(model, batch):
    """Return the mean cross-entropy of predicting each next token."""
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


@torch.no_grad()
def held_out_loss(model, tokens, length=256, rows=64):
    """Return the loss on the first `rows` pieces of held-out text."""
    pieces = [tokens[i * length:(i + 1) * length + 1] for i in range(rows)]
    batch = torch.from_numpy(np.stack(pieces).astype(np.int64))
    return sum(loss_of(model, part).item() for part in batch.split(8)) / (rows / 8)


def make_optimizers(model, rate):
    """Return Muon for the matrices of the layers and AdamW for the rest.

    The embedding is a table of vectors and no map between them: most of its
    rows have no gradient in most steps.
    """
    matrices = [p for p in model.model.layers.parameters() if p.dim() == 2]
    chosen = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    return [
        Muon(matrices, rate),
        torch.optim.AdamW(rest, lr=0.3 * rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    ]


def batch_shape(args, step):
    """Return rows and length of a batch; every second one has long rows.

    Short rows are cheaper and show more starts of texts. Long ones, as long as the model's whole
    window, make late positions sensible; where they come only at the end, they spoil what is there.
    """
    if step % 2:
        return args.rows, args.length
    return max(1, args.rows * args.length // 1024), 1024


def train(model, tokens, starts, held_out, args, save):
    """Run the training and print the losses now and then.

    The learning rate has a short linear warm-up and then falls along half a
    cosine wave to a twentieth, by the share of the steps or of the time that
    is used up, whichever is larger: a busy machine makes the training shorter
    and not its end rough. `save` is called every 500 steps, so that an
    interrupted training leaves something that works.
    """
    optimizers = make_optimizers(model, args.rate)
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    peaks = [group["lr"] for group in groups]
    rng = np.random.default_rng(TRAIN_SEED)
    begin, step, seen, recent = time.time(), 0, 0, []
    while (progress := max(step / args.steps, (time.time() - begin) / 60 / args.minutes)) < 1:
        share = 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * progress))
        for group, peak in zip(groups, peaks, strict=True):
            group["lr"] = peak * share * min(1.0, (step + 1) / 100)
        batch = make_batch(rng, tokens, starts, *batch_shape(args, step))
        loss = loss_of(model, batch)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        step, seen = step + 1, seen + batch[:, 1:].numel()
        recent.append(loss.item())
        if step % 200 == 0:
            print(f"step {step} tokens {seen} seconds {time.time() - begin:.0f} "
                  f"train {np.mean(recent[-200:]):.4f} "
                  f"held-out {held_out_loss(model, held_out):.4f}", flush=True)
        if step % 500 == 0:
            save()
    return {"steps": step, "tokens": seen, "minutes": round((time.time() - begin) / 60, 1)}


def export(model, tokenizer, config, directory):
    """Write a Hugging Face model directory with float16 weights."""
    directory.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().half().contiguous()
               for name, value in model.state_dict().items()}
    safetensors.torch.save_file(
        weights, directory / "model.safetensors", metadata={"format": "pt"})
    # The library creates the file for its owner alone; a package is for all.
    (directory / "model.safetensors").chmod(0o644)
    tokenizer.save(str(directory / "tokenizer.json"))
    write_json(directory / "config.json", config)
    write_json(directory / "generation_config.json", {"eos_token_id": 0, "pad_token_id": 0})
    write_json(directory / "tokenizer_config.json", {
        "add_bos_token": False,
        "add_prefix_space": False,
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": corpus.END,
        "model_max_length": config["max_position_embeddings"],
        "pad_token": corpus.END,
        "tokenizer_class": "PreTrainedTokenizerFast",
    })


def main():
    """Generate, train and export."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=7000)
    parser.add_argument("--minutes", type=float, default=120.0, help="time limit")
    parser.add_argument("--documents", type=int, default=110_000)
    parser.add_argument("--games", type=float, default=0.05, help="share of memory games")
    parser.add_argument("--vocab", type=int, default=2560)
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--rate", type=float, default=5e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start", type=pathlib.Path, help="earlier export to go on from")
    parser.add_argument("--out", type=pathlib.Path, default=MODEL_DIR)
    parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    args = parser.parse_args()
    torch.manual_seed(TRAIN_SEED)
    torch.set_num_threads(args.threads)

    texts = make_texts(args.documents, args.games)
    if args.start:
        tokenizer, model = load(args.start)
    else:
        tokenizer = train_tokenizer(texts[:30_000], args.vocab)
        model = TinyLlama(model_config(tokenizer.get_vocab_size()))
    tokens, starts = encode_documents(tokenizer, texts)
    held_out, _ = encode_documents(tokenizer, list(corpus.documents(1000, HELD_OUT_SEED)))
    config = model_config(tokenizer.get_vocab_size())
    size = sum(p.numel() for p in model.parameters())
    print(f"characters {sum(map(len, texts))} tokens {len(tokens)} "
          f"vocabulary {config['vocab_size']} parameters {size}", flush=True)

    def save():
        export(model, tokenizer, config, args.out)

    record = train(model, tokens, starts, held_out, args, save)
    save()
    record.update(documents=args.documents, games=args.games, rate=args.rate)
    add_record(args.record, record, fresh=args.start is None)


if __name__ == "__main__":
    main()
