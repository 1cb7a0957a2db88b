"""The engine: requests in, one step at a time, outputs out (mirrors ``vllm/engine/llm_engine.py``).

`LLMEngine.step` is schedule -> execute -> process.  Statistics, traces and pictures are no part
of it: they are observers, told twice a step.  Left out: LoRA, parallelism, usage reports.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from minivllm.config import CacheConfig, ModelConfig, SchedulerConfig
from minivllm.core.interfaces import BlockSpaceManager
from minivllm.core.scheduler import Scheduler, SchedulerOutputs
from minivllm.engine.arg_utils import EngineArgs
from minivllm.engine.input_processor import (
    check_sampling_params,
    make_generator,
    process_prompt,
)
from minivllm.engine.metrics import StatLogger
from minivllm.engine.output_processor.single_step import SingleStepOutputProcessor
from minivllm.engine.output_processor.stop_checker import StopChecker
from minivllm.executor.cpu_executor import CPUExecutor
from minivllm.executor.executor_base import ExecutorBase
from minivllm.inputs import LLMInputs, PromptInputs
from minivllm.logger import init_logger
from minivllm.model_executor.layers.sampler import UnusableLogitsError
from minivllm.outputs import EmbeddingRequestOutput, RequestOutput, RequestOutputFactory
from minivllm.pooling_params import PoolingParams
from minivllm.sampling_params import SamplingParams
from minivllm.sequence import (
    EmbeddingSequenceGroupOutput,
    ExecuteModelRequest,
    Sequence,
    SequenceGroup,
    SequenceGroupMetadata,
    SequenceGroupOutput,
    SequenceStatus,
)
from minivllm.transformers_utils.detokenizer import Detokenizer
from minivllm.transformers_utils.tokenizer import Tokenizer, check_vocabulary, get_tokenizer
from minivllm.utils import Counter, HeldInterrupts, number

logger = init_logger(__name__)


class StepObserver(Protocol):
    """Watches an engine; it must change nothing."""

    def on_schedule(self, engine: "LLMEngine",
                    seq_group_metadata_list: list[SequenceGroupMetadata],
                    scheduler_outputs: SchedulerOutputs) -> None:
        """Look at what has been decided, before the model runs."""

    def on_step(self, engine: "LLMEngine", scheduler_outputs: SchedulerOutputs,
                request_outputs: list[RequestOutput | EmbeddingRequestOutput]) -> None:
        """Look at what has come of it, once finished requests have left."""


class LLMEngine:
    """Runs requests step by step.

    Parameters
    ----------
    model_config, cache_config, scheduler_config
        The settings; see `minivllm.config`.
    executor_class : type of ExecutorBase, or a callable that makes one
        Who runs a step: `CPUExecutor` for real, `SimulatedExecutor` with a stand-in model.
    log_stats : bool
        Log a line of statistics every few seconds, at level INFO.
    block_manager : type of BlockSpaceManager, optional
        A class of your own instead of V1 or V2.
    attention_backend : str or type of AttentionBackend, optional
        ``"numpy"``, ``"numba"`` or a class of your own.
    clock : callable
        Returns the time in seconds; a simulation counts steps instead.
    """

    def __init__(
        self,
        model_config: ModelConfig,
        cache_config: CacheConfig,
        scheduler_config: SchedulerConfig,
        executor_class: Callable[..., ExecutorBase] = CPUExecutor,
        log_stats: bool = False,
        *,
        block_manager: type[BlockSpaceManager] | None = None,
        attention_backend: Any = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.model_config = model_config
        self.cache_config = cache_config
        self.scheduler_config = scheduler_config
        self.clock = clock
        self.observers: list[StepObserver] = [StatLogger()] if log_stats else []
        self.seq_counter = Counter()
        self.request_counter = Counter()
        self._unfinished: set[str] = set()

        self.tokenizer: Tokenizer | None = None
        self.detokenizer: Detokenizer | None = None
        tokenizer_path = model_config.tokenizer or model_config.path
        if not model_config.skip_tokenizer_init and tokenizer_path is not None:
            self.tokenizer = get_tokenizer(tokenizer_path)
            check_vocabulary(self.tokenizer, model_config.get_vocab_size())
            self.detokenizer = Detokenizer(self.tokenizer)

        self.model_executor = executor_class(model_config, cache_config, scheduler_config,
                                             attention_backend)
        self._initialize_kv_caches()
        self.scheduler = Scheduler(scheduler_config, cache_config, block_manager=block_manager,
                                   clock=clock)
        self.output_processor = SingleStepOutputProcessor(
            scheduler_config, self.detokenizer, self.scheduler, self.seq_counter,
            StopChecker(scheduler_config.max_model_len))

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, **kwargs: Any) -> "LLMEngine":
        """Find the model that `engine_args` name and build an engine for it."""
        config = engine_args.create_engine_config()
        return cls(config.model_config, config.cache_config, config.scheduler_config,
                   log_stats=not engine_args.disable_log_stats, **kwargs)

    def _initialize_kv_caches(self) -> None:
        if self.scheduler_config.embedding_mode:
            # Pooling requests keep nothing.
            self.cache_config.num_gpu_blocks = self.cache_config.num_cpu_blocks = 0
            return
        num_gpu_blocks, num_cpu_blocks = self.model_executor.determine_num_available_blocks()
        self.cache_config.num_gpu_blocks = num_gpu_blocks
        self.cache_config.num_cpu_blocks = num_cpu_blocks
        pool = num_gpu_blocks * self.cache_config.block_size
        if pool < self.scheduler_config.max_model_len:
            logger.warning(
                "The GPU block pool holds %d tokens (%d blocks of %d), less than max_model_len "
                "(%d): a request that outgrows it ends early, with finish reason 'length'.",
                pool, num_gpu_blocks, self.cache_config.block_size,
                self.scheduler_config.max_model_len)
        self.model_executor.initialize_cache(num_gpu_blocks, num_cpu_blocks)

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        if self.tokenizer is None:
            raise ValueError("there is no tokenizer: skip_tokenizer_init is True.")
        return self.tokenizer

    def _get_eos_token_id(self) -> int | None:
        if self.tokenizer is not None:
            return self.tokenizer.eos_token_id
        # The stand-in model of a simulation has no tokenizer, but an end-of-sequence token.
        eos_token_id = self.model_config.hf_config.get("eos_token_id")
        return eos_token_id if isinstance(eos_token_id, int) else None

    def get_model_config(self) -> ModelConfig:
        """Return the model's settings."""
        return self.model_config

    def add_request(self, request_id: str, inputs: PromptInputs,
                    params: SamplingParams | PoolingParams,
                    arrival_time: float | None = None) -> None:
        """Check a request and put it in the waiting queue.

        Parameters
        ----------
        request_id : str
            A name that no unfinished request has.
        inputs : str or dict
            The prompt; see `minivllm.inputs`.
        params : SamplingParams or PoolingParams
            What is wanted; copied.
        arrival_time : float, optional
            For first-come-first-served; default now.

        Raises
        ------
        ValueError
            If something is wrong with it; nothing has been queued then.
        """
        self.add_processed_request(request_id, self.process_model_inputs(inputs, params), params,
                                   arrival_time)

    def process_model_inputs(self, inputs: PromptInputs,
                             params: SamplingParams | PoolingParams) -> LLMInputs:
        """Check a prompt and its parameters and tokenize it; nothing is queued yet."""
        if self.scheduler_config.embedding_mode:
            return self._process_pooling_inputs(inputs, params)
        if not isinstance(params, SamplingParams):
            raise ValueError(f"params must be SamplingParams, got {params!r}.")
        check_sampling_params(params, self.model_config, self.scheduler_config)
        return process_prompt(inputs, self.tokenizer, self.model_config.get_vocab_size(),
                              params.truncate_prompt_tokens)

    def _process_pooling_inputs(self, inputs: PromptInputs, params: object) -> LLMInputs:
        if not isinstance(params, PoolingParams):
            raise ValueError(f"params must be PoolingParams, got {params!r}.")
        result = process_prompt(inputs, self.tokenizer, self.model_config.get_vocab_size())
        length, limit = len(result["prompt_token_ids"]), self.scheduler_config.max_model_len
        if length > limit:
            # Nothing of it could be returned.
            raise ValueError(f"the prompt is {length} tokens, at most {limit} (max_model_len) can "
                             "be pooled.")
        return result

    def add_processed_request(self, request_id: str, inputs: LLMInputs,
                              params: SamplingParams | PoolingParams,
                              arrival_time: float | None = None) -> None:
        """Queue what `process_model_inputs` has checked."""
        if request_id in self._unfinished:
            raise ValueError(f"there is an unfinished request called {request_id!r} already.")
        eos_token_id = self._get_eos_token_id()
        seq = Sequence(next(self.seq_counter), inputs, self.cache_config.block_size, eos_token_id)
        arrival_time = (self.clock() if arrival_time is None
                        else number("arrival_time", arrival_time))
        seq_group = SequenceGroup(request_id, [seq], arrival_time)
        request_number = next(self.request_counter)
        # A copy: the engine adds the model's stop tokens, the user may change the original.
        if isinstance(params, SamplingParams):
            params = params.clone()
            if eos_token_id is not None:
                params.all_stop_token_ids.add(eos_token_id)
            params.update_from_generation_config(self.model_config.generation_config)
            seq_group.sampling_params = params
            seq_group.state.generator = make_generator(params, self.model_config.seed,
                                                       request_number)
        else:
            seq_group.pooling_params = params.clone()
        self._unfinished.add(request_id)
        self.scheduler.add_seq_group(seq_group)

    def abort_request(self, request_id: str | Iterable[str]) -> None:
        """Drop requests in whatever state they are; unknown and finished ones do not matter."""
        request_ids = [request_id] if isinstance(request_id, str) else list(request_id)
        with HeldInterrupts():
            self.scheduler.abort_seq_group(request_ids)
            self._unfinished.difference_update(request_ids)

    def has_request(self, request_id: str) -> bool:
        """Return whether an unfinished request has this id."""
        return request_id in self._unfinished

    def get_num_unfinished_requests(self) -> int:
        """Return how many requests wait, run or are swapped out."""
        return self.scheduler.get_num_unfinished_seq_groups()

    def has_unfinished_requests(self) -> bool:
        """Return whether `step` has something to do."""
        return self.scheduler.has_unfinished_seqs()

    def step(self) -> list[RequestOutput | EmbeddingRequestOutput]:
        """Run one step: schedule, execute, process.

        Returns
        -------
        list of RequestOutput or EmbeddingRequestOutput
            One for each request of the batch, then one for each that was given up.

        Raises
        ------
        Exception
            Whatever the model, the sampler or a logits processor raises.  The step is undone
            then: every unfinished request waits to be recomputed and can go on, or be aborted.
            Requests whose logits are unusable (NaN) have been aborted.
        """
        with HeldInterrupts() as interrupts:
            seq_group_metadata_list, scheduler_outputs = self.scheduler.schedule()
            for observer in self.observers:
                observer.on_schedule(self, seq_group_metadata_list, scheduler_outputs)
            outputs = self._execute(seq_group_metadata_list, scheduler_outputs, interrupts)
            request_outputs = self._process_model_outputs(outputs, scheduler_outputs,
                                                          seq_group_metadata_list)
            for observer in self.observers:
                observer.on_step(self, scheduler_outputs, request_outputs)
        return request_outputs

    def _execute(self, seq_group_metadata_list: list[SequenceGroupMetadata],
                 scheduler_outputs: SchedulerOutputs,
                 interrupts: HeldInterrupts) -> list[SequenceGroupOutput]:
        """Run the model; if that fails, or Ctrl-C comes meanwhile, undo the step."""
        if scheduler_outputs.is_empty():
            return []
        request = ExecuteModelRequest(
            seq_group_metadata_list=seq_group_metadata_list,
            blocks_to_swap_in=scheduler_outputs.blocks_to_swap_in,
            blocks_to_swap_out=scheduler_outputs.blocks_to_swap_out,
            blocks_to_copy=scheduler_outputs.blocks_to_copy,
            num_copies_before_swap_in=scheduler_outputs.num_copies_before_swap_in,
            running_queue_size=scheduler_outputs.running_queue_size)
        try:
            with interrupts.let_through():
                return self.model_executor.execute_model(request)
        except BaseException as error:
            self.scheduler.recompute_all()
            if isinstance(error, UnusableLogitsError):
                self.abort_request(error.request_ids)
            raise

    def _process_model_outputs(
        self,
        outputs: list[SequenceGroupOutput],
        scheduler_outputs: SchedulerOutputs,
        seq_group_metadata_list: list[SequenceGroupMetadata],
    ) -> list[RequestOutput | EmbeddingRequestOutput]:
        """Give each scheduled group its output, let finished ones go, and describe all."""
        now = self.clock()
        groups = [scheduled.seq_group for scheduled in scheduler_outputs.scheduled_seq_groups]
        for seq_group, output, metadata in zip(groups, outputs, seq_group_metadata_list,
                                               strict=True):
            seq_group.update_num_computed_tokens(metadata.token_chunk_size)
            if isinstance(output, EmbeddingSequenceGroupOutput):
                seq_group.embeddings = output.embeddings
                for seq in seq_group.get_seqs():
                    seq.status = SequenceStatus.FINISHED_STOPPED
                continue
            self.output_processor.process_prompt_logprob(seq_group, output)
            if metadata.do_sample:
                self.output_processor.process_outputs(seq_group, output)
                seq_group.metrics.last_token_time = now
        self.scheduler.free_finished_seq_groups()

        request_outputs = []
        for seq_group in groups + scheduler_outputs.ignored_seq_groups:
            seq_group.maybe_set_first_token_time(now)
            request_output = RequestOutputFactory.create(seq_group)
            if request_output.finished:
                seq_group.set_finished_time(now)
                self._unfinished.discard(seq_group.request_id)
            request_outputs.append(request_output)
        return request_outputs
