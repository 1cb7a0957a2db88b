"""Showing text as it comes."""

import sys
from collections.abc import Generator

from minivllm.engine.llm_engine import LLMEngine
from minivllm.inputs import LLMInputs, PromptInputs
from minivllm.outputs import RequestOutput
from minivllm.sampling_params import SamplingParams


def stream(engine: LLMEngine, prompt: PromptInputs, params: SamplingParams,
           request_id: str = "r0") -> Generator[RequestOutput, None, None]:
    """Run one request and yield its state after each step that had it.

    Whoever stops listening, by Ctrl-C too, ends the request: its blocks are free again.

    Raises
    ------
    ValueError
        At once, if something is wrong with the request.
    """
    return _stream(engine, engine.process_model_inputs(prompt, params), params, request_id)


def _stream(engine: LLMEngine, inputs: LLMInputs, params: SamplingParams,
            request_id: str) -> Generator[RequestOutput, None, None]:
    try:
        engine.add_processed_request(request_id, inputs, params)
        while engine.has_request(request_id):
            for output in engine.step():
                if isinstance(output, RequestOutput) and output.request_id == request_id:
                    yield output
    finally:
        engine.abort_request(request_id)


def print_stream(
        outputs: Generator[RequestOutput, None, None]) -> tuple[RequestOutput | None, bool]:
    """Print each new piece of the best continuation.

    Returns
    -------
    RequestOutput or None
        The last state; None if Ctrl-C came before any.
    bool
        Whether Ctrl-C ended it.
    """
    output, shown, interrupted = None, 0, False
    try:
        for output in outputs:
            text = output.outputs[0].text
            print(text[shown:], end="", flush=True)
            shown = len(text)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        outputs.close()
    print(flush=True)
    return output, interrupted


def was_refused(output: RequestOutput) -> bool:
    """Return True, and say why on stderr, if the prompt was too long to run at all."""
    best = output.outputs[0]
    refused = best.finish_reason == "length" and not best.token_ids
    if refused:
        print(f"minivllm: the prompt of {len(output.prompt_token_ids)} tokens is longer than the "
              "model or the block pool allows, nothing was generated. Shorten it, or raise "
              "--max-model-len or --kv-cache-space.", file=sys.stderr)
    return refused


def make_output_safe() -> None:
    """Let a terminal that cannot show a character show a replacement instead of failing."""
    for output in (sys.stdout, sys.stderr):
        if hasattr(output, "reconfigure"):
            output.reconfigure(errors="replace")
