"""How much memory the process takes beside the weights and the KV cache."""

import subprocess
import sys
from pathlib import Path

import pytest

ALLOWED_BYTES = 200e6

# Counts from after the imports and the compilation of kernels, as their size is not ours.
SCRIPT = """
import random, sys
from minivllm import LLM, SamplingParams
from minivllm.attention.backends.numba_backend import NumbaAttentionBackend

def status(key):
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))

NumbaAttentionBackend.warm_up()
before = status("VmRSS:")
llm = LLM(sys.argv[1], num_gpu_blocks_override=64 * 9, num_cpu_blocks_override=0)
prompts = [random.Random(i).choices(range(49000), k=128) for i in range(64)]
params = SamplingParams(max_tokens=2, ignore_eos=True, top_p=0.9)
llm.generate(prompt_token_ids=prompts, sampling_params=params, use_tqdm=False)
worker = llm.llm_engine.model_executor.driver_worker
weights = sum(array.nbytes for _, module in worker.model_runner.model.named_modules()
              for _, array in module.parameters())
pool = sum(cache.nbytes for cache in worker.cache_engine.gpu_cache)
print(status("VmHWM:") - before - weights - pool)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak")
def test_a_step_of_8192_tokens(smollm2_dir):
    output = subprocess.run([sys.executable, "-c", SCRIPT, str(smollm2_dir)], check=True,
                            capture_output=True, text=True).stdout
    assert float(output) < ALLOWED_BYTES
