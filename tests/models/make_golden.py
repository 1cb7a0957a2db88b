"""Makes a golden model of another family: a tiny random checkpoint and its outputs.

transformers computes the outputs.  It and torch are needed, which minivllm and its tests do not::

    python tests/models/make_golden.py stablelm '{"model_type": "stablelm", "vocab_size": 256,
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256}'

writes ``tests/golden/families/stablelm/``, which the tests of models find by themselves.
"""

import argparse
import json
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

FAMILIES = Path(__file__).parent.parent / "golden" / "families"
PROMPT_LENS = {"short": 5, "one_token": 1, "exact_16": 16, "blocks_50": 50, "long_100": 100}
NUM_OUTPUTS = 32
# Two best logits closer than this would make the greedy tokens a matter of luck.
SMALLEST_GAP = 1e-3


def random_model(config, seed):
    """Return a model whose weights are large enough for the logits to be far apart."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=2 / weight.shape[-1] ** 0.5)
        elif name.endswith("bias"):
            torch.nn.init.normal_(weight, std=0.3)
        else:
            torch.nn.init.normal_(weight, mean=weight.mean().item(), std=0.2)
    return model


def run_prompt(model, name, ids):
    """Return the fields of golden.json for one prompt, and the smallest gap."""
    prompt = torch.tensor([ids])
    logits = model(prompt).logits[0]
    logprobs = logits.log_softmax(-1)
    tokens, gaps = list(ids), []
    for _ in range(NUM_OUTPUTS):
        best = model(torch.tensor([tokens])).logits[0, -1].topk(2)
        tokens.append(best.indices[0].item())
        gaps.append((best.values[0] - best.values[1]).item())
    return {
        "name": name,
        "prompt_token_ids": ids,
        "last_logits": [round(value, 6) for value in logits[-1].tolist()],
        "prompt_logprobs": [round(logprobs[i, token].item(), 6)
                            for i, token in enumerate(ids[1:])],
        "output_token_ids": tokens[len(ids):],
    }, min(gaps)


def leave_out_defaults(file, asked):
    """Leave out of config.json what its class assumes anyway, as published ones do.

    So the tests see our defaults.  What was asked for stays.
    """
    values = json.loads(file.read_text(encoding="utf-8"))
    defaults = AutoConfig.for_model(values["model_type"]).to_dict()
    values = {key: value for key, value in values.items()
              if key in asked or key not in defaults or value != defaults[key]}
    file.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the folder in tests/golden/families")
    parser.add_argument("config", help="what config.json should say, as JSON")
    args = parser.parse_args()
    asked = json.loads(args.config)
    config = AutoConfig.for_model(**asked)
    for seed in range(20):
        model = random_model(config, seed)
        prompts = [torch.randint(3, config.vocab_size, (n,)).tolist()
                   for n in PROMPT_LENS.values()]
        results = [run_prompt(model, name, ids)
                   for name, ids in zip(PROMPT_LENS, prompts, strict=True)]
        if min(gap for _, gap in results) > SMALLEST_GAP:
            break
    else:
        raise SystemExit("20 random models, each with two almost equal logits somewhere")
    model.save_pretrained(FAMILIES / args.name)
    leave_out_defaults(FAMILIES / args.name / "config.json", asked)
    text = json.dumps({"prompts": [fields for fields, _ in results]})
    (FAMILIES / args.name / "golden.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
