"""Reading ``config.json`` (mirrors ``vllm/transformers_utils/config.py``).

Families name the same things differently, leave out what is their library's default, and write
rotary embeddings in an old form (``rope_theta``, ``rope_scaling``) or a new one
(``rope_parameters``).  Here all get the names and the form that Llama has in transformers 4; the
table `FAMILIES` says how.  A new architecture needs a row there.
"""

import difflib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minivllm.transformers_utils.gguf.llama import llama_config, llama_generation_config
from minivllm.transformers_utils.gguf.reader import read_gguf
from minivllm.utils import number, of_kind


class PretrainedConfig:
    """The values of a ``config.json`` as attributes, under one name for all families."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"config.json has no {name!r}.")

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of `name`, or `default` if there is none."""
        return self.__dict__.get(name, default)

    @property
    def max_model_len(self) -> int:
        """The longest text: some rotary embeddings are stretched beyond the trained length."""
        trained: int = self.max_position_embeddings
        scaling = self.get("rope_scaling") or {}
        if scaling.get("rope_type") not in ("linear", "dynamic", "yarn"):
            return trained
        trained = scaling.get("original_max_position_embeddings") or trained
        return int(trained * scaling.get("factor", 1))


@dataclass(frozen=True)
class Family:
    """How an architecture's ``config.json`` differs from Llama's.

    Attributes
    ----------
    names : dict of str to str
        Our name -> its name.
    defaults : dict of str to Any
        Our name -> what its library assumes where the file says nothing.  The file's value must
        be of the same kind, and above 0 if that is a float.
    fixed : dict of str to Any
        Our name -> the only value that is supported, or a tuple of those that are.
    """

    names: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)


_LLAMA_DEFAULTS: dict[str, Any] = {
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "rope_theta": 10000.0,
}
_SILU = {"hidden_act": "silu"}  # the gate of their MLP is written for it
FAMILIES: dict[str, Family] = {
    "LlamaForCausalLM": Family(defaults=_LLAMA_DEFAULTS, fixed=_SILU),
    "MistralForCausalLM": Family(fixed=_SILU, defaults=_LLAMA_DEFAULTS | {
        "max_position_embeddings": 4096 * 32, "num_key_value_heads": 8, "sliding_window": 4096}),
    "Qwen2ForCausalLM": Family(fixed=_SILU, defaults=_LLAMA_DEFAULTS | {
        "max_position_embeddings": 32768, "num_key_value_heads": 32, "use_sliding_window": False,
        "sliding_window": 4096, "max_window_layers": 28}),
    "Qwen3ForCausalLM": Family(fixed=_SILU, defaults=_LLAMA_DEFAULTS | {
        "max_position_embeddings": 32768, "num_key_value_heads": 32, "head_dim": 128,
        "use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}),
    "OPTForCausalLM": Family(
        names={"intermediate_size": "ffn_dim", "hidden_act": "activation_function"},
        defaults={"hidden_act": "relu", "max_position_embeddings": 2048,
                  "tie_word_embeddings": True, "enable_bias": True, "do_layer_norm_before": True,
                  "_remove_final_layer_norm": False},
        fixed={"layer_norm_elementwise_affine": True}),
    "GPT2LMHeadModel": Family(
        names={"hidden_size": "n_embd", "num_hidden_layers": "n_layer",
               "num_attention_heads": "n_head", "max_position_embeddings": "n_positions",
               "intermediate_size": "n_inner", "hidden_act": "activation_function"},
        defaults={"hidden_act": "gelu_new", "max_position_embeddings": 1024,
                  "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True},
        fixed={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False,
               "add_cross_attention": False}),
}
_REQUIRED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
             "max_position_embeddings")
# If they are there, they are above 0; null stands for "derive it" or "none".
_COUNTS = (*_REQUIRED, "num_key_value_heads", "head_dim", "intermediate_size", "sliding_window",
           "word_embed_proj_dim")
# If the scaling of rotary embeddings has them, they are above 0.
_ROPE_NUMBERS = ("rope_theta", "factor", "original_max_position_embeddings", "attention_factor",
                 "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor")
_LAYER_TYPES = ("full_attention", "sliding_attention")


def get_config(path: Path) -> PretrainedConfig:
    """Read the configuration of a model directory, or of a ``.gguf`` file.

    Raises
    ------
    FileNotFoundError
        If there is no ``config.json``.
    ValueError
        If it is broken, lacks a key, or is of an architecture that is not supported.
    """
    if path.suffix == ".gguf":
        return normalize_config(llama_config(read_gguf(path)), str(path))
    file = path / "config.json"
    if not file.is_file():
        raise FileNotFoundError(f"{path} is no model directory: it has no config.json.")
    return normalize_config(read_json(file), str(file))


def get_generation_config(path: Path) -> dict[str, Any]:
    """Return the contents of ``generation_config.json``, or nothing if there is no such file.

    Raises
    ------
    ValueError
        If it is broken, or names an end-of-sequence token that is no token id.
    """
    if path.suffix == ".gguf":
        return llama_generation_config(read_gguf(path))
    file = path / "generation_config.json"
    values = read_json(file) if file.is_file() else {}
    eos_ids = values.get("eos_token_id")
    for token_id in eos_ids if isinstance(eos_ids, list) else [eos_ids]:
        if (not isinstance(token_id, int) or isinstance(token_id, bool)) and eos_ids is not None:
            raise ValueError(f"{file}: eos_token_id should be a token id, a list of them, or "
                             f"null, it is {eos_ids!r}.")
    return values


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in `file`; a ValueError says what else it is."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not valid JSON: {error}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"{file} should hold an object, it holds {type(values).__name__}.")
    return values


def check_architecture(architectures: Any, supported: Iterable[str],
                       source: str = "config.json") -> str:
    """Return the first architecture that is supported.

    Raises
    ------
    ValueError
        If none is: lists what is supported, and the nearest name.
    """
    supported = sorted(supported)
    asked: list[str] = list(architectures) if isinstance(architectures, list | tuple) else []
    if architectures and not (asked and all(isinstance(name, str) for name in asked)):
        raise ValueError(f"{source}: architectures should be a list of names, it is "
                         f"{architectures!r}.")
    for name in asked:
        if name in supported:
            return name
    nearest = difflib.get_close_matches(asked[0], supported, n=1, cutoff=0.5) if asked else []
    hint = f" The nearest name is {nearest[0]}." if nearest else ""
    named = ", ".join(asked) if asked else "none ('architectures' is missing)"
    raise ValueError(f"{source}: architecture {named} is not supported.{hint} Supported are: "
                     f"{', '.join(supported)}.")


def normalize_config(values: dict[str, Any], source: str = "config.json") -> PretrainedConfig:
    """Bring the values of a ``config.json`` into Llama's names and fill in the defaults.

    Parameters
    ----------
    values : dict
        As in the file.
    source : str
        Where they are from, for error messages.

    Raises
    ------
    ValueError
        If the architecture is not supported, or a key is missing or of the wrong kind.
    """
    architecture = check_architecture(values.get("architectures"), FAMILIES, source)
    family = FAMILIES[architecture]
    ours = {theirs: name for name, theirs in family.names.items()}
    given = {ours.get(name, name): value for name, value in values.items()}
    # null stands for "off", "derive it" or "none", not for the default.
    for name, value in (family.defaults | family.fixed).items():
        if isinstance(value, bool) and given.get(name, value) is None:
            given[name] = False
    config = {name: value for name, value in (family.defaults | given).items()
              if value is not None}
    _check_fixed(config, family, source)
    _check_kinds(config, family, source)
    return PretrainedConfig(**config | _derived(config, source))


def _check_fixed(config: dict[str, Any], family: Family, source: str) -> None:
    """Raise a ValueError if a value is not among those that are supported."""
    for name, fixed in family.fixed.items():
        supported = fixed if isinstance(fixed, tuple) else (fixed,)
        value = config.get(name, supported[0])
        if value not in supported:
            raise ValueError(f"{source}: {family.names.get(name, name)} must be "
                             f"{' or '.join(map(str, supported))}, {value} is not supported.")


def _check_kinds(config: dict[str, Any], family: Family, source: str) -> None:
    """Raise a ValueError if a value is missing, or not of its kind."""
    kinds = {name: type(default) for name, default in family.defaults.items()}
    for name, kind in {**kinds, **dict.fromkeys(_COUNTS, int)}.items():
        if name not in config and kind is int and name not in _REQUIRED:
            continue
        value, key = config.get(name), f"{source}: key {family.names.get(name, name)!r}"
        if kind is float or name in _COUNTS:
            _check_positive(key, value, kind)
        else:
            of_kind(key, value, kind)


def _check_positive(name: str, value: Any, kind: type) -> None:
    """Raise a ValueError if a value is missing, or is no (whole) number above 0."""
    is_number = isinstance(value, int | float if kind is float else int)
    if not is_number or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"{name} should be a positive number, it is "
                         f"{'missing' if value is None else repr(value)}.")


def _derived(config: dict[str, Any], source: str) -> dict[str, Any]:
    """Return what follows from other values, where the file does not say it."""
    hidden_size, num_heads = config["hidden_size"], config["num_attention_heads"]
    num_kv_heads = config.get("num_key_value_heads", num_heads)
    if num_heads % num_kv_heads:
        raise ValueError(f"{source}: num_attention_heads ({num_heads}) must be a multiple of "
                         f"num_key_value_heads ({num_kv_heads}).")
    if "head_dim" not in config and hidden_size % num_heads:
        raise ValueError(f"{source}: hidden_size ({hidden_size}) must be a multiple of "
                         f"num_attention_heads ({num_heads}).")
    return {
        "num_key_value_heads": num_kv_heads,
        "head_dim": config.get("head_dim", hidden_size // num_heads),
        "intermediate_size": config.get("intermediate_size", 4 * hidden_size),
        "word_embed_proj_dim": config.get("word_embed_proj_dim", hidden_size),
        **_rope(config, source),
        **_windows(config, source),
    }


def _rope(config: dict[str, Any], source: str) -> dict[str, Any]:
    """Return `rope_theta` and `rope_scaling` from either form; `rope_scaling` has `rope_type`."""
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(parameters, dict):
        raise ValueError(f"{source}: rope_scaling should be an object, it is {parameters!r}.")
    parameters = {name: value for name, value in parameters.items() if value is not None}
    if any(isinstance(value, dict) for value in parameters.values()):
        raise ValueError(f"{source}: rope_parameters that differ between layers are not supported.")
    for name in _ROPE_NUMBERS:
        if name in parameters:
            _check_positive(f"{source}: {name} of rope_scaling", parameters[name], float)
    for name in ("mscale", "mscale_all_dim"):
        number(f"{source}: {name} of rope_scaling", parameters.get(name, 0))
    theta = parameters.pop("rope_theta", config.get("rope_theta"))
    fraction = parameters.pop("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    if not 0 < number(f"{source}: partial_rotary_factor", fraction) <= 1:
        raise ValueError(f"{source}: partial_rotary_factor should be above 0 and at most 1, it is "
                         f"{fraction!r}.")
    kind = parameters.pop("type", "default")
    of_kind(f"{source}: rope_type", parameters.setdefault("rope_type", kind), str)
    return {"rope_theta": theta, "partial_rotary_factor": fraction,
            "rope_scaling": None if parameters["rope_type"] == "default" else parameters}


def _windows(config: dict[str, Any], source: str) -> dict[str, Any]:
    """Return each layer's sliding window, and `sliding_window` if all layers have it."""
    num_layers, window = config["num_hidden_layers"], config.get("sliding_window")
    if not config.get("use_sliding_window", True):
        window = None
    kinds = config.get("layer_types")
    if kinds is None:
        first = config.get("max_window_layers", 0)
        kinds = ["sliding_attention" if i >= first else "full_attention"
                 for i in range(num_layers)]
    if (not isinstance(kinds, list) or len(kinds) != num_layers
            or any(kind not in _LAYER_TYPES for kind in kinds)):
        raise ValueError(f"{source}: layer_types should list {num_layers} layers, each "
                         f"{' or '.join(_LAYER_TYPES)}, it is {kinds!r}.")
    windows = [window if kind == "sliding_attention" else None for kind in kinds]
    return {"layer_windows": windows, "sliding_window": window if all(windows) else None}
