"""Measure the exported tiny model and write its model card.

Everything is measured on the files as exported, that is on the weights
rounded to float16 (computed with in float32):

    python tests/assets/evaluate_tiny.py
"""

import argparse
import json
import pathlib
import random

import corpus
import numpy as np
import numpy_forward
import torch
import torch.nn.functional as F
from corpus_facts import fact_checks
from train_tiny import HELD_OUT_SEED, MODEL_DIR, RECORD, encode_documents, held_out_loss, load

QUICK_START = [
    "Hello, my name is",
    "The president of the United States is",
    "The capital of France is",
    "The future of AI is",
]


def largest_difference(model, tokenizer, directory):
    """Compare the logits with those of the separate NumPy forward pass."""
    config, weights = numpy_forward.load_model(directory)
    ids = tokenizer.encode(next(corpus.documents(1, 5))).ids[:200]
    with torch.no_grad():
        ours = model(torch.tensor([ids]))[0].numpy()
    return float(np.abs(ours - numpy_forward.forward(config, weights, ids)).max())


@torch.no_grad()
def check_facts(model, tokenizer):
    """Return the share of right greedy answers and the list of wrong ones."""
    wrong = []
    checks = fact_checks()
    for check in checks:
        prompt = tokenizer.encode(check["prompt"]).ids
        answer = tokenizer.encode(check["expected"]).ids
        best = model(torch.tensor([prompt + answer]))[0].argmax(-1)
        if best[len(prompt) - 1:-1].tolist() != answer:
            wrong.append(check["prompt"])
    return 1 - len(wrong) / len(checks), len(checks), wrong


@torch.no_grad()
def loss_by_kind(model, tokenizer, rows=150):
    """Return the held-out loss per token of each kind of document alone."""
    result = {}
    for kind, _ in corpus.MIXTURE:
        rng = random.Random(HELD_OUT_SEED)
        losses = []
        for _ in range(rows):
            ids = torch.tensor([tokenizer.encode(kind(rng)).ids + [0]])
            losses.append(F.cross_entropy(model(ids)[0, :-1], ids[0, 1:], reduction="none"))
        result[kind.__name__] = torch.cat(losses).mean().item()
    return result


@torch.no_grad()
def next_words(model, tokenizer, prompt, count=6):
    """Return the most likely next words of a prompt and their chances."""
    logits = model(torch.tensor([tokenizer.encode(prompt).ids]))[0, -1]
    best = torch.softmax(logits, -1).topk(count)
    return [(tokenizer.decode([i]).strip(), p) for p, i in
            zip(best.values.tolist(), best.indices.tolist(), strict=True)]


def continuation(model, tokenizer, prompt, temperature, seed=0, count=200, end=0):
    """Return the text that the model writes after a prompt."""
    generator = torch.Generator().manual_seed(seed)
    ids = tokenizer.encode(prompt).ids
    out = model.generate(ids, count, temperature, end, generator)
    text = tokenizer.decode(out[len(ids):], skip_special_tokens=False)
    return text.replace(corpus.END, f" `{corpus.END}`")


def quote(text):
    """Set a text as a Markdown quotation."""
    return "\n".join("> " + line for line in text.split("\n"))


def measure(directory):
    """Return all numbers and samples for the model card."""
    tokenizer, model = load(directory)
    held_out, _ = encode_documents(tokenizer, list(corpus.documents(2000, HELD_OUT_SEED)))
    accuracy, total, wrong = check_facts(model, tokenizer)
    samples = []
    for prompt in QUICK_START:
        for name, temperature in (("greedy", 0.0), ("temperature 0.8", 0.8)):
            text = continuation(model, tokenizer, prompt, temperature)
            samples.append(f"{name}:\n\n" + quote(f"**{prompt}**{text}"))
    long_samples = [
        f"{name}:\n\n" + quote(
            "**Once upon a time**"
            + continuation(model, tokenizer, "Once upon a time", temperature, end=None))
        for name, temperature in (("greedy", 0.0), ("temperature 0.8", 0.8))]
    return {
        "config": json.loads((directory / "config.json").read_text(encoding="utf-8")),
        "parameters": sum(p.numel() for p in model.parameters()),
        "difference": largest_difference(model, tokenizer, directory),
        "loss": held_out_loss(model, held_out, rows=128),
        "kinds": loss_by_kind(model, tokenizer),
        "accuracy": accuracy, "facts": total, "wrong": wrong,
        "names": next_words(model, tokenizer, QUICK_START[0]),
        "samples": "\n\n".join(samples), "long": "\n\n".join(long_samples),
    }


CARD = pathlib.Path(__file__).with_name("model_card.md")


def write_card(directory, result, record):
    """Fill the numbers into the text of the model card."""
    with open(CARD, encoding="utf-8") as file:
        text = file.read()
    values = {
        **result["config"],
        "runs": "\n".join("| {documents:,} | {games:.0%} | {rate} | {steps:,} | {tokens:,} |"
                          .format(**run) for run in record),
        "megabytes": f"{(directory / 'model.safetensors').stat().st_size / 1e6:.1f}",
        "parameters": f"{result['parameters']:,}",
        "loss": f"{result['loss']:.3f}",
        "perplexity": f"{np.exp(result['loss']):.2f}",
        "kinds": "\n".join(f"| {k.replace('_', ' ')} | {v:.3f} |"
                           for k, v in result["kinds"].items()),
        "right": f"{result['facts'] - len(result['wrong'])} of {result['facts']}",
        "names": ", ".join(f"{w} {100 * p:.1f} %" for w, p in result["names"]),
        "samples": result["samples"], "long": result["long"],
    }
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", str(value))
    with open(directory / "README.md", "w", encoding="utf-8") as file:
        file.write(text)


def main():
    """Measure, print and write the card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, default=MODEL_DIR)
    parser.add_argument("--record", type=pathlib.Path, default=RECORD)
    args = parser.parse_args()
    torch.set_num_threads(1)
    result = measure(args.model)
    with open(args.record, encoding="utf-8") as file:
        record = json.load(file)
    for name, value in result.items():
        print(name, value, sep=": ")
    write_card(args.model, result, record)


if __name__ == "__main__":
    main()
