"""Offline inference on a batch of prompts (mirrors ``vllm/entrypoints/llm.py``)."""

import copy
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from minivllm.core.interfaces import BlockSpaceManager
from minivllm.engine.arg_utils import EngineArgs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.executor.cpu_executor import CPUExecutor
from minivllm.inputs import PromptInputs
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput
from minivllm.pooling_params import PoolingParams
from minivllm.sampling_params import SamplingParams
from minivllm.transformers_utils.download import DEFAULT_MODEL
from minivllm.transformers_utils.tokenizer import Tokenizer
from minivllm.utils import Counter

Params = SamplingParams | PoolingParams
Output = RequestOutput | EmbeddingRequestOutput
Message = dict[str, str]


class LLM:
    """A model, its tokenizer, and the engine that runs them.

    Parameters
    ----------
    model : str
        A directory in Hugging Face layout, a ``.gguf`` file, a name that ``minivllm models``
        lists, or a hub id.
    tokenizer, dtype, max_model_len, block_size, kv_cache_space, num_gpu_blocks_override, \
num_cpu_blocks_override, swap_space, max_num_seqs, max_num_batched_tokens, \
enable_prefix_caching, enable_chunked_prefill, use_v2_block_manager, preemption_mode, seed
        See `minivllm.EngineArgs`, which lists them all.
    block_manager : type of BlockSpaceManager, optional
        A class of your own instead of V1 or V2.
    attention_backend : str or type of AttentionBackend, optional
        ``"numpy"``, ``"numba"`` or a class of your own.
    **kwargs
        The other settings of `minivllm.EngineArgs`.

    Examples
    --------
    >>> llm = LLM("smollm2")  # doctest: +SKIP
    >>> llm.generate(["Hello, my name is"], SamplingParams(temperature=0.8))  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        tokenizer: str | None = None,
        dtype: str = "auto",
        max_model_len: int | None = None,
        block_size: int = 16,
        kv_cache_space: float = 1.0,
        num_gpu_blocks_override: int | None = None,
        num_cpu_blocks_override: int | None = None,
        swap_space: float = 1.0,
        max_num_seqs: int = 256,
        max_num_batched_tokens: int | None = None,
        enable_prefix_caching: bool = False,
        enable_chunked_prefill: bool = False,
        use_v2_block_manager: bool = False,
        preemption_mode: str | None = None,
        seed: int = 0,
        *,
        block_manager: type[BlockSpaceManager] | None = None,
        attention_backend: Any = None,
        **kwargs: Any,
    ) -> None:
        engine_args = EngineArgs.from_kwargs(
            model=model, tokenizer=tokenizer, dtype=dtype, max_model_len=max_model_len,
            block_size=block_size, kv_cache_space=kv_cache_space,
            num_gpu_blocks_override=num_gpu_blocks_override,
            num_cpu_blocks_override=num_cpu_blocks_override, swap_space=swap_space,
            max_num_seqs=max_num_seqs, max_num_batched_tokens=max_num_batched_tokens,
            enable_prefix_caching=enable_prefix_caching,
            enable_chunked_prefill=enable_chunked_prefill,
            use_v2_block_manager=use_v2_block_manager, preemption_mode=preemption_mode, seed=seed,
            **{"disable_log_stats": True, **kwargs})
        self.llm_engine = LLMEngine.from_engine_args(
            engine_args, block_manager=block_manager, attention_backend=attention_backend)
        self.request_counter = Counter()
        self._pooling_engine: LLMEngine | None = None
        # Threads take turns: a step moves blocks and queues that all requests share.
        self._turn = threading.RLock()

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self.llm_engine.get_tokenizer()

    def generate(
        self,
        prompts: PromptInputs | Sequence[PromptInputs] | None = None,
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        prompt_token_ids: list[int] | list[list[int]] | None = None,
        use_tqdm: bool = True,
    ) -> list[RequestOutput]:
        """Continue each prompt.

        Parameters
        ----------
        prompts : str, dict, or list of them
            See `minivllm.inputs`.
        sampling_params : SamplingParams or list of them, optional
            One for all prompts, or one for each.
        prompt_token_ids : list of int, or list of lists, optional
            Prompts as token ids.
        use_tqdm : bool
            Show a progress bar.

        Returns
        -------
        list of RequestOutput
            In the order of the prompts.

        Raises
        ------
        ValueError
            If any prompt or parameter is wrong; nothing has been run then.
        """
        inputs = _as_prompts(prompts, prompt_token_ids)
        params = SamplingParams() if sampling_params is None else sampling_params
        with self._turn:
            outputs = self._run(self.llm_engine, inputs, params, use_tqdm)
        return [output for output in outputs if isinstance(output, RequestOutput)]

    def chat(
        self,
        messages: list[Message] | list[list[Message]],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        use_tqdm: bool = True,
        add_generation_prompt: bool = True,
    ) -> list[RequestOutput]:
        """Answer one conversation, or each of several.

        Parameters
        ----------
        messages : list of dict, or list of such lists
            ``{"role": "user" | "assistant" | "system", "content": text}`` in order.
        sampling_params, use_tqdm
            As for `generate`.
        add_generation_prompt : bool
            End the prompt where the assistant's answer begins.
        """
        if not messages or not isinstance(messages, list | tuple):
            raise ValueError(f"messages must be a list of at least one message, got {messages!r}.")
        several: Any = messages if isinstance(messages[0], list) else [messages]
        tokenizer = self.get_tokenizer()
        prompts: list[PromptInputs] = []
        for conversation in several:
            text = tokenizer.apply_chat_template(conversation, add_generation_prompt)
            # The template writes the special tokens itself.
            token_ids = tokenizer.encode(text, add_special_tokens=False)
            prompts.append({"prompt": text, "prompt_token_ids": token_ids})
        return self.generate(prompts, sampling_params, use_tqdm=use_tqdm)

    def encode(
        self,
        prompts: PromptInputs | Sequence[PromptInputs] | None = None,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        prompt_token_ids: list[int] | list[list[int]] | None = None,
        use_tqdm: bool = True,
    ) -> list[EmbeddingRequestOutput]:
        """Turn each prompt into one vector of its hidden states.

        The model is shared with `generate`, but the engine is one of its own, since a pooling
        request needs no blocks.  vLLM has such engines for embedding models only.
        """
        inputs = _as_prompts(prompts, prompt_token_ids)
        params = PoolingParams() if pooling_params is None else pooling_params
        with self._turn:
            if self._pooling_engine is None:
                self._pooling_engine = self._make_pooling_engine()
            outputs = self._run(self._pooling_engine, inputs, params, use_tqdm)
        return [output for output in outputs if isinstance(output, EmbeddingRequestOutput)]

    def _make_pooling_engine(self) -> LLMEngine:
        engine = self.llm_engine
        scheduler_config = copy.copy(engine.scheduler_config)
        scheduler_config.embedding_mode = True
        # A prompt is pooled as a whole.
        scheduler_config.chunked_prefill_enabled = False
        scheduler_config.max_num_batched_tokens = max(scheduler_config.max_num_batched_tokens,
                                                      scheduler_config.max_model_len)
        model_executor = engine.model_executor
        if not isinstance(model_executor, CPUExecutor):
            raise ValueError("encode needs a real model.")
        worker = model_executor.driver_worker
        return LLMEngine(engine.model_config, copy.copy(engine.cache_config), scheduler_config,
                         partial(CPUExecutor, model=worker.model_runner.model),
                         attention_backend=worker.attn_backend)

    def _run(self, engine: LLMEngine, inputs: list[PromptInputs],
             params: Params | Sequence[Params], use_tqdm: bool) -> list[Output]:
        """Check all, then queue all, then step until all are finished."""
        each: list[Any] = [params] * len(inputs)
        if isinstance(params, Sequence) and not isinstance(params, str):
            each = list(params)
        if len(each) != len(inputs):
            raise ValueError(f"there are {len(inputs)} prompts but {len(each)} parameters: pass "
                             "one for all, or one for each.")
        processed = []
        for index, (prompt, param) in enumerate(zip(inputs, each, strict=True)):
            try:
                processed.append(engine.process_model_inputs(prompt, param))
            except ValueError as error:
                raise ValueError(f"prompt {index}: {error}") from error
        request_ids: list[str] = []
        try:
            for prompt_ids, param in zip(processed, each, strict=True):
                request_ids.append(self._next_request_id(engine))
                engine.add_processed_request(request_ids[-1], prompt_ids, param)
            return self._run_engine(engine, request_ids, use_tqdm)
        except BaseException:
            # Ctrl-C as well: no block of this call stays behind.
            engine.abort_request(request_ids)
            raise

    def _next_request_id(self, engine: LLMEngine) -> str:
        request_id = str(next(self.request_counter))
        while engine.has_request(request_id):
            request_id = str(next(self.request_counter))
        return request_id

    def _run_engine(self, engine: LLMEngine, request_ids: list[str],
                    use_tqdm: bool) -> list[Output]:
        finished: dict[str, Output] = {}
        remaining = set(request_ids)
        with _ProgressBar(len(request_ids), use_tqdm) as progress:
            while remaining:
                outputs = engine.step()
                for output in outputs:
                    if output.finished and output.request_id in remaining:
                        remaining.discard(output.request_id)
                        finished[output.request_id] = output
                progress.update(outputs, len(finished))
        return [finished[request_id] for request_id in request_ids]


def _as_prompts(prompts: Any, prompt_token_ids: Any) -> list[Any]:
    """Bring all ways to pass prompts into one: a list with one entry for each."""
    if prompts is None and prompt_token_ids is None:
        raise ValueError("pass prompts or prompt_token_ids.")
    if prompts is not None:
        prompts = [prompts] if isinstance(prompts, str | dict) else _as_list("prompts", prompts)
    if prompt_token_ids is None:
        return list(prompts)
    each = _as_list("prompt_token_ids", prompt_token_ids)
    if not each or isinstance(each[0], str) or not isinstance(each[0], Iterable):
        each = [each]
    if prompts is None:
        return [{"prompt_token_ids": token_ids} for token_ids in each]
    if len(prompts) != len(each):
        raise ValueError(f"there are {len(prompts)} prompts but {len(each)} prompt_token_ids.")
    return [{"prompt": prompt, "prompt_token_ids": token_ids}
            for prompt, token_ids in zip(prompts, each, strict=True)]


def _as_list(name: str, values: Any) -> list[Any]:
    if not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a list, got {values!r}.")
    return list(values)


class _ProgressBar:
    """Prompts done, and tokens per second so far, on stderr."""

    def __init__(self, num_requests: int, show: bool) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), TextColumn("{task.fields[speed]}"),
            console=Console(stderr=True), disable=not show)
        self.task = self.progress.add_task("Processed prompts", total=num_requests, speed="")
        self.num_tokens: dict[str, int] = {}
        self.num_prompt_tokens: dict[str, int] = {}

    def __enter__(self) -> "_ProgressBar":
        self.progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.progress.stop()

    def update(self, outputs: Sequence[Output], num_finished: int) -> None:
        if self.progress.disable:
            return
        for output in outputs:
            self.num_prompt_tokens[output.request_id] = len(output.prompt_token_ids)
            if isinstance(output, RequestOutput):
                self.num_tokens[output.request_id] = sum(
                    len(completion.token_ids) for completion in output.outputs)
        elapsed = self.progress.tasks[0].elapsed or 1e-9
        speed = (f"input {sum(self.num_prompt_tokens.values()) / elapsed:.1f} tokens/s, "
                 f"output {sum(self.num_tokens.values()) / elapsed:.1f} tokens/s")
        self.progress.update(self.task, completed=num_finished, speed=speed)
