"""Average several exports of the tiny model, each of which went on from the one before.

The mean of points of one training is often better than each of them: the noise of the last steps
cancels out.

    python tests/assets/average_tiny.py earlier/ later/ last/
"""

import argparse
import pathlib

import torch
from train_tiny import MODEL_DIR, export, load, model_config


def mean(models):
    """Put the mean of all models' weights into the first one, and return it."""
    states = [model.state_dict() for model in models]
    models[0].load_state_dict(
        {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]})
    return models[0]


def main():
    """Average and export."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directories", type=pathlib.Path, nargs="+", help="exports")
    parser.add_argument("--out", type=pathlib.Path, default=MODEL_DIR)
    args = parser.parse_args()
    tokenizers, models = zip(*map(load, args.directories), strict=True)
    config = model_config(tokenizers[0].get_vocab_size())
    export(mean(models), tokenizers[0], config, args.out)


if __name__ == "__main__":
    main()
