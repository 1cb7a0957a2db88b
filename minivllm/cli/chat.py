"""``minivllm chat``: ask a model that has a chat template."""

import argparse
import sys
from collections.abc import Sequence

from minivllm.cli.options import (
    add_engine_options,
    add_model_option,
    add_sampling_options,
    engine_kwargs,
    sampling_params,
)
from minivllm.cli.streaming import make_output_safe, print_stream, stream, was_refused
from minivllm.entrypoints.llm import LLM
from minivllm.inputs import PromptInputs
from minivllm.outputs import RequestOutput
from minivllm.sampling_params import SamplingParams

Message = dict[str, str]


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm chat", usage="%(prog)s [options] [MESSAGE]",
        description="Answer MESSAGE, or without one hold a conversation: Ctrl-C stops an answer, "
        "Ctrl-D (Ctrl-Z on Windows) ends the program. Exit code 1: the message was too long.")
    result.add_argument("message", nargs="?", metavar="MESSAGE",
                        help="what to ask; - reads it from standard input")
    result.add_argument("--system", metavar="TEXT", help="a system message to begin with")
    add_model_option(result, "smollm2")
    add_sampling_options(result, temperature=0.0, max_tokens=256)
    add_engine_options(result)
    return result


def main(argv: Sequence[str]) -> int:
    """Run the sub-command."""
    args = parser().parse_args(argv)
    params = sampling_params(args)
    make_output_safe()
    # A conversation sends its beginning again each time: the cache keeps it.
    llm = LLM(**{**engine_kwargs(args), "enable_prefix_caching": True})
    history = [{"role": "system", "content": args.system}] if args.system else []
    if args.message is None:
        return converse(llm, history, params)
    message = sys.stdin.read() if args.message == "-" else args.message
    output, interrupted = answer(llm, [*history, {"role": "user", "content": message}], params)
    if interrupted or output is None:
        raise KeyboardInterrupt
    return 1 if was_refused(output) else 0


def converse(llm: LLM, history: list[Message], params: SamplingParams) -> int:
    """Take turns until the input ends; Ctrl-C stops an answer and keeps what has come of it."""
    turns = list(history)
    while True:
        try:
            message = input("> ")
        except EOFError:
            print()
            return 0
        except KeyboardInterrupt:
            print("\n(Ctrl-D ends the program)")
            continue
        if not message.strip():
            continue
        turns.append({"role": "user", "content": message})
        output, _ = answer(llm, turns, params)
        if output is None:
            turns.pop()
        elif was_refused(output):
            print("(The conversation has become too long. It starts again.)", file=sys.stderr)
            turns = list(history)
        else:
            turns.append({"role": "assistant", "content": output.outputs[0].text})


def answer(llm: LLM, turns: list[Message],
           params: SamplingParams) -> tuple[RequestOutput | None, bool]:
    """Stream the answer to the last turn; see `print_stream`."""
    tokenizer = llm.get_tokenizer()
    text = tokenizer.apply_chat_template(turns, add_generation_prompt=True)
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    prompt: PromptInputs = {"prompt": text, "prompt_token_ids": token_ids}
    return print_stream(stream(llm.llm_engine, prompt, params))
