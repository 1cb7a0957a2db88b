"""``minivllm generate``: continue prompts, as they are given."""

import argparse
import dataclasses
import json
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
from minivllm.outputs import RequestOutput
from minivllm.sampling_params import SamplingParams
from minivllm.tracing.files import check_can_write
from minivllm.tracing.record import record
from minivllm.transformers_utils.download import DEFAULT_MODEL


def parser() -> argparse.ArgumentParser:
    """Return the parser of this sub-command."""
    result = argparse.ArgumentParser(
        prog="minivllm generate", usage="%(prog)s [options] PROMPT [PROMPT ...]",
        description="Continue each PROMPT as it is given, without a chat template. One prompt "
        "streams as it comes; several run as one batch. Exit code 1: a prompt was too long.")
    result.add_argument("prompts", nargs="+", metavar="PROMPT",
                        help="a text to continue; - reads one from standard input")
    result.add_argument("--json", action="store_true",
                        help="print one JSON object for each prompt and line")
    result.add_argument("--trace", metavar="FILE",
                        help="record every step for minivllm show and step --trace")
    add_model_option(result, DEFAULT_MODEL)
    add_sampling_options(result, temperature=0.0, max_tokens=64)
    add_engine_options(result)
    return result


def main(argv: Sequence[str]) -> int:
    """Run the sub-command."""
    args = parser().parse_args(argv)
    params = sampling_params(args)
    prompts = [sys.stdin.read() if prompt == "-" else prompt for prompt in args.prompts]
    if args.trace is not None:
        check_can_write(args.trace)
    make_output_safe()
    llm = LLM(**engine_kwargs(args))
    if args.trace is None:
        outputs = _generate(llm, prompts, params, args.json)
    else:
        with record(llm) as trace:
            outputs = _generate(llm, prompts, params, args.json)
        trace.save(args.trace)
    return 1 if any([was_refused(output) for output in outputs]) else 0


def _generate(llm: LLM, prompts: list[str], params: SamplingParams,
              as_lines: bool) -> list[RequestOutput]:
    """Print the continuations as they come, or all at the end, and return them."""
    if as_lines:
        outputs = llm.generate(prompts, params)
        for output in outputs:
            print(json.dumps(as_json(output), ensure_ascii=False))
    elif len(prompts) == 1 and params.best_of == 1:
        events = stream(llm.llm_engine, prompts[0], params)
        print(prompts[0], end="", flush=True)
        last, interrupted = print_stream(events)
        if interrupted:
            raise KeyboardInterrupt
        outputs = [last] if last else []
    else:
        outputs = llm.generate(prompts, params)
        print_batch(outputs)
    return outputs


def print_batch(outputs: list[RequestOutput]) -> None:
    """Print each prompt with its continuations; several of one prompt have numbers."""
    for i, output in enumerate(outputs, start=1):
        for j, completion in enumerate(output.outputs, start=1):
            number = f"[{i}.{j}] " if len(output.outputs) > 1 else ""
            print(f"{number}{output.prompt}{completion.text}\n")


def as_json(output: RequestOutput) -> dict[str, object]:
    """Return what a program would want to know of a finished request."""
    result = dataclasses.asdict(output)
    for completion in result["outputs"]:
        del completion["index"]
    return result
