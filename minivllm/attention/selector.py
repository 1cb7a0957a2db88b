"""Chooses the attention backend (mirrors ``vllm/attention/selector.py``)."""

from minivllm import envs
from minivllm.attention.backends.abstract import AttentionBackend
from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.config import ModelConfig
from minivllm.logger import init_logger

logger = init_logger(__name__)

# With hidden states this small, compiling kernels takes longer than they save.
_TINY_HIDDEN_SIZE = 256
_NAMES = ("numpy", "numba", "auto")


def get_attn_backend(backend: str | type[AttentionBackend] | None,
                     model_config: ModelConfig) -> type[AttentionBackend]:
    """Return the backend that the user named, or the one that suits the model.

    Parameters
    ----------
    backend : str or type of AttentionBackend, optional
        ``"numpy"``, ``"numba"``, ``"auto"``, or a class of the user's own.  None: what
        ``MINIVLLM_ATTENTION_BACKEND`` says, else ``"auto"``: NumPy for tiny models, Numba for
        others.
    model_config : ModelConfig

    Raises
    ------
    ValueError
        If there is no backend of that name.
    ImportError
        If Numba is named, but cannot be imported.
    """
    name = backend or envs.attention_backend() or "auto"
    if isinstance(name, type) and issubclass(name, AttentionBackend):
        return name
    if name not in _NAMES:
        raise ValueError(f"attention backend {name!r} does not exist; choose from "
                         f"{', '.join(_NAMES)}, or pass a subclass of AttentionBackend.")
    if name == "auto" and model_config.get_hidden_size() <= _TINY_HIDDEN_SIZE:
        name = "numpy"
    if name == "numpy":
        return NumpyAttentionBackend
    try:
        # Only now: importing Numba takes time, and it may be missing.
        from minivllm.attention.backends.numba_backend import NumbaAttentionBackend
    except ImportError as error:
        if name == "numba":
            raise
        logger.warning("Numba cannot be imported (%s): attention falls back to NumPy.", error)
        return NumpyAttentionBackend
    NumbaAttentionBackend.warm_up()
    return NumbaAttentionBackend
