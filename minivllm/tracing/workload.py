"""Reading workload files and checking every field of them (``minivllm-workload/1``).

The form is described by the types in `minivllm.workloads`.  Every field has to be there; other
keys are ignored.  An error names the file, the request and the field.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from minivllm.config import SchedulerConfig
from minivllm.sampling_params import SamplingParams
from minivllm.tracing.files import read_json
from minivllm.workloads import FORMAT, EngineSpec, SamplingSpec, Workload


class _Rule(NamedTuple):
    """What a field has to be: a test, and the same in words."""

    holds: Callable[[Any], bool]
    words: str


def _is_int(value: Any, at_least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= at_least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_BOOL = _Rule(lambda value: isinstance(value, bool), "true or false")
_NUMBER = _Rule(_is_number, "a number")
_NAME = _Rule(lambda value: isinstance(value, str) and value != "", "a name")
_COUNT = _Rule(_is_int, "a whole number, at least 0")
_POSITIVE = _Rule(lambda value: _is_int(value, 1), "a whole number, at least 1")
_OPTIONAL_STEP = _Rule(lambda value: value is None or _is_int(value),
                       "null or a whole number, at least 0")
_OPTIONAL_POSITIVE = _Rule(lambda value: value is None or _is_int(value, 1),
                           "null or a whole number, at least 1")
_OBJECT = _Rule(lambda value: isinstance(value, dict), "an object")
_LIST = _Rule(lambda value: isinstance(value, list), "a list")

_WORKLOAD_RULES = {
    "format": _Rule(lambda value: value == FORMAT, f'"{FORMAT}"'),
    "name": _Rule(lambda value: _NAME.holds(value) and not set(value) & set("/\\:"),
                  "a name without / \\ and : (a trace file is called after it)"),
    "engine": _OBJECT, "vocab_size": _POSITIVE, "eos_token_id": _COUNT, "requests": _LIST,
}
_ENGINE_RULES = {
    "block_size": _POSITIVE, "num_gpu_blocks": _POSITIVE, "num_cpu_blocks": _COUNT,
    "max_num_seqs": _POSITIVE, "max_num_batched_tokens": _POSITIVE, "max_model_len": _POSITIVE,
    "enable_chunked_prefill": _BOOL, "enable_prefix_caching": _BOOL,
    "use_v2_block_manager": _BOOL,
    "preemption_mode": _Rule(lambda value: value in (None, "swap", "recompute"),
                             'null, "swap" or "recompute"'),
}
_REQUEST_RULES = {
    "request_id": _NAME, "arrival_step": _COUNT, "abort_step": _OPTIONAL_STEP,
    "prompt_token_ids": _Rule(lambda value: isinstance(value, list) and value != [],
                              "a list of token ids, not empty"),
    "sampling": _OBJECT,
}
_SAMPLING_RULES = {
    "n": _POSITIVE, "best_of": _OPTIONAL_POSITIVE, "use_beam_search": _BOOL,
    "length_penalty": _NUMBER,
    "early_stopping": _Rule(lambda value: isinstance(value, bool) or value == "never",
                            'true, false or "never"'),
    "temperature": _NUMBER, "max_tokens": _POSITIVE, "min_tokens": _COUNT, "ignore_eos": _BOOL,
    "stop_token_ids": _LIST,
}


def read_workload(path: str | Path) -> Workload:
    """Read and check a workload file, ``.json`` or ``.json.gz``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If something is wrong with it.
    """
    return check_workload(read_json(path), source=str(path))


def check_workload(workload: Any, source: str = "workload") -> Workload:
    """Return `workload` if it is one.

    Parameters
    ----------
    workload : Any
        What a file holds, or what `minivllm.workloads` makes.
    source : str
        How messages begin: the name of the file.

    Raises
    ------
    ValueError
        Naming `source`, the request, the field, its value, and what it should be.
    """
    _check_fields(workload, _WORKLOAD_RULES, source)
    engine = workload["engine"]
    _check_fields(engine, _ENGINE_RULES, f"{source}: engine")
    try:
        scheduler_config(engine)
    except ValueError as error:
        raise ValueError(f"{source}: engine: {error}") from None
    _check_token_ids([workload["eos_token_id"]], workload, f"{source}: eos_token_id")
    request_ids: set[str] = set()
    for index, request in enumerate(workload["requests"]):
        _check_request(request, workload, f"{source}: requests[{index}]")
        if request["request_id"] in request_ids:
            raise ValueError(f"{source}: requests[{index}]: there is another request_id "
                             f"{request['request_id']!r} before it.")
        request_ids.add(request["request_id"])
    return cast(Workload, workload)


def scheduler_config(engine: EngineSpec) -> SchedulerConfig:
    """Return the limits of `engine`; they may contradict each other (ValueError)."""
    return SchedulerConfig(
        max_num_batched_tokens=engine["max_num_batched_tokens"],
        max_num_seqs=engine["max_num_seqs"], max_model_len=engine["max_model_len"],
        use_v2_block_manager=engine["use_v2_block_manager"],
        enable_chunked_prefill=engine["enable_chunked_prefill"],
        preemption_mode=engine["preemption_mode"])


def sampling_params(sampling: SamplingSpec) -> SamplingParams:
    """Return the parameters of a request; they may contradict each other (ValueError)."""
    return SamplingParams(
        n=sampling["n"], best_of=sampling["best_of"], use_beam_search=sampling["use_beam_search"],
        length_penalty=sampling["length_penalty"], early_stopping=sampling["early_stopping"],
        temperature=sampling["temperature"], max_tokens=sampling["max_tokens"],
        min_tokens=sampling["min_tokens"], ignore_eos=sampling["ignore_eos"],
        stop_token_ids=sampling["stop_token_ids"], detokenize=False)


def _check_fields(value: Any, rules: Mapping[str, _Rule], where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: must be an object, got {_short(value)}.")
    for field, rule in rules.items():
        if field not in value:
            raise ValueError(f"{where}: {field} is missing; it must be {rule.words}.")
        if not rule.holds(value[field]):
            raise ValueError(f"{where}: {field} must be {rule.words}, got {_short(value[field])}.")


def _check_request(request: Any, workload: Workload, where: str) -> None:
    _check_fields(request, _REQUEST_RULES, where)
    where = f"{where} ({request['request_id']})"
    _check_fields(request["sampling"], _SAMPLING_RULES, f"{where}: sampling")
    _check_token_ids(request["prompt_token_ids"], workload, f"{where}: prompt_token_ids")
    _check_token_ids(request["sampling"]["stop_token_ids"], workload,
                     f"{where}: sampling: stop_token_ids")
    try:
        params = sampling_params(request["sampling"])
    except ValueError as error:
        raise ValueError(f"{where}: sampling: {error}") from None
    seats = workload["engine"]["max_num_seqs"]
    if params.best_of > seats:
        raise ValueError(f"{where}: sampling: best_of (default n) must not exceed the engine's "
                         f"max_num_seqs ({seats}), got {params.best_of}.")
    if params.use_beam_search and 2 * params.best_of > workload["vocab_size"]:
        raise ValueError(f"{where}: sampling: a beam search needs 2 * best_of different tokens, "
                         f"got best_of={params.best_of} and vocab_size={workload['vocab_size']}.")


def _check_token_ids(token_ids: list[Any], workload: Workload, where: str) -> None:
    vocab_size = workload["vocab_size"]
    for token_id in token_ids:
        if not _is_int(token_id) or token_id >= vocab_size:
            raise ValueError(f"{where}: token ids are whole numbers from 0 to {vocab_size - 1} "
                             f"(vocab_size - 1), got {_short(token_id)}.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
