"""`LLM`: whole batches in, outputs in order out, and nothing left behind."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from minivllm import LLM, SamplingParams, envs
from minivllm.engine.llm_engine import LLMEngine
from minivllm.pooling_params import PoolingParams

GREEDY = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)


@pytest.fixture(scope="module")
def llm(tiny_dir) -> LLM:
    return LLM(tiny_dir / "llama-mha", block_size=8, num_gpu_blocks_override=64,
               num_cpu_blocks_override=16, max_num_seqs=8, attention_backend="numpy")


def free_blocks(engine: LLMEngine) -> tuple[int, int]:
    manager = engine.scheduler.block_manager
    return manager.get_num_free_gpu_blocks(), manager.get_num_free_cpu_blocks()


def test_all_ways_to_pass_prompts(llm) -> None:
    ids = llm.get_tokenizer().encode("The cat")
    text = llm.generate("The cat", GREEDY, use_tqdm=False)
    assert len(text) == 1 and text[0].prompt == "The cat" and text[0].finished
    expected = text[0].outputs[0].token_ids
    for outputs in [
        llm.generate(["The cat"], GREEDY, use_tqdm=False),
        llm.generate({"prompt": "The cat"}, [GREEDY], use_tqdm=False),
        llm.generate({"prompt_token_ids": ids}, GREEDY, use_tqdm=False),
        llm.generate(prompt_token_ids=ids, sampling_params=GREEDY, use_tqdm=False),
        llm.generate(prompt_token_ids=[ids], sampling_params=GREEDY, use_tqdm=False),
        llm.generate("The cat", GREEDY, prompt_token_ids=ids, use_tqdm=False),
    ]:
        assert [output.outputs[0].token_ids for output in outputs] == [expected]
    assert llm.generate([], GREEDY) == []


def test_outputs_come_in_the_order_of_the_prompts(llm) -> None:
    prompts = [{"prompt_token_ids": [5 + i] * (1 + 3 * i)} for i in range(6)]
    params = [SamplingParams(temperature=0, max_tokens=12 - 2 * i, ignore_eos=True)
              for i in range(6)]
    together = llm.generate(prompts, params, use_tqdm=False)
    alone = [llm.generate(prompt, param, use_tqdm=False)[0]
             for prompt, param in zip(prompts, params, strict=True)]
    assert ([o.outputs[0].token_ids for o in together]
            == [o.outputs[0].token_ids for o in alone])
    assert [len(o.outputs[0].token_ids) for o in together] == [12, 10, 8, 6, 4, 2]


def test_metrics_are_in_order(llm) -> None:
    [output] = llm.generate({"prompt_token_ids": [5, 6]}, GREEDY, use_tqdm=False)
    metrics = output.metrics
    assert (metrics.arrival_time <= metrics.first_scheduled_time <= metrics.first_token_time
            <= metrics.last_token_time <= metrics.finished_time)
    assert metrics.time_in_queue == metrics.first_scheduled_time - metrics.arrival_time


def test_one_bad_prompt_is_named_and_nothing_of_the_call_runs(llm) -> None:
    before = free_blocks(llm.llm_engine)
    with pytest.raises(ValueError, match="prompt 1: the prompt is empty"):
        llm.generate([{"prompt_token_ids": [5]}, {"prompt_token_ids": []}], GREEDY)
    assert not llm.llm_engine.has_unfinished_requests()
    assert free_blocks(llm.llm_engine) == before
    with pytest.raises(ValueError, match="2 prompts but 1 parameters"):
        llm.generate(["a", "b"], [GREEDY])


def test_requests_added_before_go_on(llm) -> None:
    engine = llm.llm_engine
    engine.add_request("mine", {"prompt_token_ids": [9, 8]},
                       SamplingParams(temperature=0, max_tokens=20, ignore_eos=True))
    with pytest.raises(ValueError, match="prompt 0"):
        llm.generate({"prompt_token_ids": [-1]}, GREEDY)
    assert engine.has_request("mine")
    [output] = llm.generate({"prompt_token_ids": [5]}, GREEDY, use_tqdm=False)
    assert output.finished and engine.has_request("mine")
    while engine.has_unfinished_requests():
        outputs = engine.step()
    assert outputs[0].request_id == "mine" and len(outputs[0].outputs[0].token_ids) == 20


def test_the_same_id_twice_is_refused(llm) -> None:
    engine = llm.llm_engine
    engine.add_request("twin", {"prompt_token_ids": [5]}, GREEDY)
    with pytest.raises(ValueError, match="twin"):
        engine.add_request("twin", {"prompt_token_ids": [6]}, GREEDY)
    engine.abort_request("twin")
    assert not engine.has_unfinished_requests()


def test_ctrl_c_frees_every_block_and_the_next_call_works(llm) -> None:
    before = free_blocks(llm.llm_engine)
    steps = 0

    class Interrupt:
        def on_schedule(self, *args) -> None: ...

        def on_step(self, *args) -> None:
            nonlocal steps
            steps += 1
            if steps == 3:
                signal.raise_signal(signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    interrupt = Interrupt()
    llm.llm_engine.observers.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        llm.generate([{"prompt_token_ids": [5] * 9}, {"prompt_token_ids": [6] * 20}],
                     SamplingParams(temperature=1, n=2, max_tokens=30), use_tqdm=False)
    llm.llm_engine.observers.remove(interrupt)
    assert steps == 3
    assert free_blocks(llm.llm_engine) == before
    assert not llm.llm_engine.has_unfinished_requests()
    [output] = llm.generate({"prompt_token_ids": [5]}, GREEDY, use_tqdm=False)
    assert len(output.outputs[0].token_ids) == 8


@pytest.mark.parametrize("method", ["allocate", "append_slots", "fork", "free"])
def test_ctrl_c_waits_until_blocks_and_queues_fit_together(llm, monkeypatch, method) -> None:
    engine = llm.llm_engine
    before = free_blocks(engine)
    manager = engine.scheduler.block_manager
    original = getattr(manager, method)
    calls = 0

    def interrupted(*args):
        nonlocal calls
        calls += 1
        result = original(*args)
        signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(manager, method, interrupted)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        llm.generate([{"prompt_token_ids": [5] * 9}, {"prompt_token_ids": [6] * 20}],
                     SamplingParams(temperature=1, n=2, max_tokens=9), use_tqdm=False)
    assert calls and signal.getsignal(signal.SIGINT) is handler
    assert free_blocks(engine) == before
    assert not engine.has_unfinished_requests() and not engine.has_request("0")


def test_threads_take_turns(llm) -> None:
    prompts = [{"prompt_token_ids": [5 + i] * (1 + 2 * i)} for i in range(4)]
    expected = [output.outputs[0].token_ids
                for output in llm.generate(prompts, GREEDY, use_tqdm=False)]
    results: list[list[list[int]]] = []

    def generate() -> None:
        outputs = llm.generate(prompts, GREEDY, use_tqdm=False)
        results.append([output.outputs[0].token_ids for output in outputs])

    threads = [threading.Thread(target=generate) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 3


def test_a_failing_step_is_undone(llm) -> None:
    """A logits processor that raises fails its own call; a request beside it loses nothing."""
    engine = llm.llm_engine
    before = free_blocks(engine)
    expected = llm.generate({"prompt_token_ids": [9, 8]}, GREEDY, use_tqdm=False)
    engine.add_request("mine", {"prompt_token_ids": [9, 8]}, GREEDY)
    engine.step()

    def fails(output_ids: list[int], logits: np.ndarray) -> np.ndarray:
        if len(output_ids) == 2:
            raise RuntimeError("no more")
        return logits

    with pytest.raises(RuntimeError, match="no more"):
        llm.generate({"prompt_token_ids": [5]},
                     SamplingParams(temperature=0, logits_processors=[fails]), use_tqdm=False)
    while engine.has_unfinished_requests():
        outputs = engine.step()
    assert outputs[0].outputs[0].token_ids == expected[0].outputs[0].token_ids
    assert free_blocks(engine) == before


def test_a_prompt_that_is_too_long_ends_as_length(llm, tiny_dir, caplog) -> None:
    limit = llm.llm_engine.scheduler_config.max_model_len
    [output] = llm.generate({"prompt_token_ids": [5] * (limit + 1)}, GREEDY, use_tqdm=False)
    assert output.finished and output.outputs[0].token_ids == []
    assert output.outputs[0].finish_reason == "length"


def test_engine_arguments_are_checked(tiny_dir) -> None:
    model = tiny_dir / "llama-mha"
    with pytest.raises(TypeError, match="tensor_parallel_size.*there are: model"):
        LLM(model, tensor_parallel_size=2)
    with pytest.raises(ValueError, match=r"max_num_batched_tokens \(8\).*max_model_len"):
        LLM(model, max_num_batched_tokens=8)
    with pytest.raises(ValueError, match="num_gpu_blocks_override must be at least 1"):
        LLM(model, num_gpu_blocks_override=0)
    with pytest.raises(ValueError, match="no GPU blocks"):
        LLM(model, kv_cache_space=1e-9)
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        LLM(model, block_size=0)
    with pytest.raises(ValueError, match="float16"):
        LLM(model, dtype="float16")
    with pytest.raises(ValueError, match="max_model_len"):
        LLM(model, max_model_len=1 << 30)
    with pytest.raises(ValueError, match="preemption_mode"):
        LLM(model, preemption_mode="drop")
    nan = float("nan")
    for wrong in [{"block_size": 8.0}, {"max_num_seqs": True}, {"max_num_batched_tokens": nan},
                  {"kv_cache_space": nan}, {"kv_cache_space": float("inf")}, {"seed": "x"},
                  {"swap_space": "1"}, {"enable_prefix_caching": "no"}, {"tokenizer": 5},
                  {"scheduler_delay_factor": -1}]:
        with pytest.raises(ValueError, match=f"{[*wrong][0].removeprefix('scheduler_')} must "):
            LLM(model, **wrong)
    with pytest.raises(ValueError, match="no memory for 100,000,000,000 GPU blocks"):
        LLM(model, num_gpu_blocks_override=10 ** 11)


@pytest.mark.parametrize("prompts, prompt_token_ids, says", [
    (5, None, "prompts must be a list, got 5"),
    (None, 5, "prompt_token_ids must be a list, got 5"),
    (["a", None], None, "prompt 1: a prompt must be a str"),
])
def test_what_is_no_list_of_prompts_is_refused(llm, prompts, prompt_token_ids, says) -> None:
    with pytest.raises(ValueError, match=says):
        llm.generate(prompts, GREEDY, prompt_token_ids)


def test_token_ids_may_be_arrays(llm) -> None:
    expected = llm.generate(prompt_token_ids=[[5, 6], [7, 8]], sampling_params=GREEDY)
    for ids in (np.array([[5, 6], [7, 8]]), (range(5, 7), range(7, 9))):
        outputs = llm.generate(prompt_token_ids=ids, sampling_params=GREEDY, use_tqdm=False)
        assert ([output.outputs[0].token_ids for output in outputs]
                == [output.outputs[0].token_ids for output in expected])


def test_parameters_of_the_other_kind_are_refused(llm) -> None:
    with pytest.raises(ValueError, match="params must be SamplingParams, got PoolingParams"):
        llm.generate("a", PoolingParams())
    with pytest.raises(ValueError, match="params must be PoolingParams, got SamplingParams"):
        llm.encode("a", GREEDY)
    with pytest.raises(ValueError, match="params must be SamplingParams, got PoolingParams"):
        llm.llm_engine.add_request("a", "a", PoolingParams())
    assert not llm.llm_engine.has_unfinished_requests()


def test_a_prompt_that_is_too_long_cannot_be_pooled(llm) -> None:
    limit = llm.llm_engine.scheduler_config.max_model_len
    with pytest.raises(ValueError, match=rf"prompt 1: the prompt is {limit + 1} tokens, at most "):
        llm.encode(prompt_token_ids=[[5], [5] * (limit + 1)])
    assert len(llm.encode(prompt_token_ids=[[5] * limit])) == 1


def test_an_arrival_time_is_a_number(llm) -> None:
    with pytest.raises(ValueError, match="arrival_time must be a number, got 'now'"):
        llm.llm_engine.add_request("a", "a", GREEDY, "now")
    assert not llm.llm_engine.has_unfinished_requests()


def test_a_small_pool_is_allowed_with_a_warning(tiny_dir, caplog) -> None:
    caplog.set_level("WARNING", logger="minivllm")
    llm = LLM(tiny_dir / "llama-mha", block_size=8, num_gpu_blocks_override=2,
              attention_backend="numpy")
    assert "16 tokens (2 blocks of 8), less than max_model_len" in caplog.text
    [output] = llm.generate({"prompt_token_ids": [5] * 9},
                            SamplingParams(temperature=0, max_tokens=30, ignore_eos=True),
                            use_tqdm=False)
    # The pool holds 16 tokens, and the last token needs no place.
    assert output.outputs[0].finish_reason == "length"
    assert 0 < len(output.outputs[0].token_ids) <= 8
    assert free_blocks(llm.llm_engine)[0] == 2


@pytest.mark.parametrize("name", ["llama-mha", "gpt2", "opt-post-proj"])
def test_a_step_whose_chunks_are_all_cached_computes_nothing(tiny_dir, name) -> None:
    llm = LLM(tiny_dir / name, block_size=4, max_model_len=64, enable_prefix_caching=True,
              enable_chunked_prefill=True, max_num_batched_tokens=4, max_num_seqs=4,
              attention_backend="numpy")
    first, again = (llm.generate({"prompt_token_ids": list(range(5, 20))}, GREEDY, use_tqdm=False)
                    for _ in range(2))
    assert again[0].outputs[0].token_ids == first[0].outputs[0].token_ids


def test_what_is_no_block_manager():
    for block_manager in (5, int):
        with pytest.raises(ValueError, match="must be a subclass of BlockSpaceManager, got"):
            LLM(block_manager=block_manager)


@pytest.mark.parametrize("value", ["0", "-1", "2.5", "²"])
def test_what_is_no_number_of_threads(monkeypatch, value):
    monkeypatch.setenv("MINIVLLM_NUM_THREADS", value)
    with pytest.raises(ValueError, match="must be a positive number, got"):
        envs.num_threads()


def test_a_bad_number_of_threads_is_noticed_when_the_model_is_loaded():
    result = subprocess.run([sys.executable, "-c", "from minivllm import LLM; LLM()"], text=True,
                            env=os.environ | {"MINIVLLM_NUM_THREADS": "many"}, timeout=60,
                            capture_output=True, check=False)
    assert "ValueError: MINIVLLM_NUM_THREADS must be a positive number" in result.stderr
