"""Average two exports of the tiny model, one of which went on from the other.

The mean of two points of one training is often better than both: the noise of
the last steps cancels out. The vocabularies may differ a little; the result
has that of the first one.

    python tests/assets/average_tiny.py --first earlier/ --second later/
"""

import argparse
import json
import pathlib

import tokenizers
import torch
from evaluate_tiny import load
from tiny_model import TinyLlama
from train_tiny import MODEL_DIR, export, start_from


def average(first, second):
    """Return config, tokenizer and the model half-way between two exports."""
    with open(first / "config.json", encoding="utf-8") as file:
        config = json.load(file)
    tokenizer, one = load(first)
    other = TinyLlama(config)
    start_from(other, tokenizer, second)
    names = tokenizers.Tokenizer.from_file(str(second / "tokenizer.json"))
    # A token that only the first model knows keeps the row that it has there.
    lone = [index for index in range(config["vocab_size"])
            if names.token_to_id(tokenizer.id_to_token(index)) is None]
    mine, theirs = one.state_dict(), other.state_dict()
    mean = {name: (mine[name] + theirs[name]) / 2 for name in mine}
    rows = "model.embed_tokens.weight"
    mean[rows][lone] = mine[rows][lone]
    one.load_state_dict(mean)
    return config, tokenizer, one


def main():
    """Average and export."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=pathlib.Path, required=True)
    parser.add_argument("--second", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=MODEL_DIR)
    args = parser.parse_args()
    torch.set_num_threads(1)
    config, tokenizer, model = average(args.first, args.second)
    export(model, tokenizer, config, args.out)


if __name__ == "__main__":
    main()
