"""Reading ``config.json`` (mirrors ``vllm/transformers_utils/config.py``)."""

from typing import Any


class PretrainedConfig:
    """The values of a ``config.json`` as attributes."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"config.json has no {name!r}.")

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of `name`, or `default` if there is none."""
        return self.__dict__.get(name, default)
