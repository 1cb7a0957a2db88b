"""Exercise 02: the check."""

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from minivllm.attention.backends.numpy_backend import NumpyAttentionBackend
from minivllm.entrypoints.llm import LLM
from minivllm.exercises.grading import Wrong, call
from minivllm.exercises.recording_array import RecordingArray
from minivllm.sampling_params import SamplingParams
from minivllm.viz.pen import fill_of, ink_of

TITLE = "Attention that reads through block tables"
CLASS_NAME = "MyBackend"
CHAPTER = "tutorials/02-blocks.md"
HINTS = [
    "Token p of sequence i: which logical block is it in, and at which place there? "
    "block_tables[i] says which physical block that is.",
    "For each sequence and head: a score for each of its seq_lens[i] tokens, softmax, then the "
    "weighted sum of the values. Query head h uses KV head h // (num_heads // num_kv_heads).",
    "block = block_tables[i, p // block_size]; key = kv_cache[0, block, kv_head, p % block_size]; "
    "scores[p] = query[i, head] @ key * scale; then weights = exp(scores - scores.max()), divided "
    "by their sum; out[i, head] = sum over p of weights[p] * kv_cache[1, block, kv_head, "
    "p % block_size].",
]

BLOCK_SIZE, NUM_BLOCKS = 4, 6
TABLES = np.array([[3, 1], [4, 0]], dtype=np.int32)  # r1 has one block: the 0 is padding
SEQ_LENS = np.array([6, 3], dtype=np.int32)
PROMPTS = ["Hello, my name is", "The future of AI is", "The life is"]


def check(backend: type[NumpyAttentionBackend]) -> str:
    """Watch which slots are read, compare the numbers, then let the real engine decode."""
    check_slots_and_numbers(backend, num_heads=1, num_kv_heads=1)
    check_slots_and_numbers(backend, num_heads=4, num_kv_heads=2)
    check_engine(backend)
    return "Yours read exactly the right slots, and the engine writes the same tokens with it."


def check_slots_and_numbers(backend: type[NumpyAttentionBackend], num_heads: int,
                            num_kv_heads: int) -> None:
    """Decode two sequences whose blocks lie scattered."""
    rng = np.random.default_rng(0)
    kv_cache = rng.standard_normal(
        (2, NUM_BLOCKS, num_kv_heads, BLOCK_SIZE, 8)).astype(np.float32)
    query = rng.standard_normal((2, num_heads, 8)).astype(np.float32)
    expected, yours = np.zeros_like(query), np.zeros_like(query)
    NumpyAttentionBackend.paged_attention(query, kv_cache, TABLES, SEQ_LENS, 0.5, None, expected)
    recorded = RecordingArray.of_cache(kv_cache)
    call(backend.paged_attention, query, recorded, TABLES, SEQ_LENS, 0.5, None, yours)
    check_touched(recorded.touched)
    check_numbers(yours, expected, num_heads, num_kv_heads)


def owner_of_slots() -> dict[int, int]:
    """Return slot -> the sequence whose token is in it."""
    return {int(TABLES[i, p // BLOCK_SIZE]) * BLOCK_SIZE + p % BLOCK_SIZE: i
            for i, seq_len in enumerate(SEQ_LENS) for p in range(seq_len)}


def check_touched(touched: set[int]) -> None:
    """Compare the slots that were read with those that hold tokens."""
    owners = owner_of_slots()
    too_many, missed = sorted(touched - owners.keys()), sorted(owners.keys() - touched)
    if not touched:
        raise Wrong("yours did not read the KV cache at all.")
    if too_many or missed:
        slot, verb = (too_many[0], "read") if too_many else (missed[0], "did not read")
        why = ("no token of these sequences is in it" if too_many
               else f"a token of r{owners[slot]} is in it")
        raise Wrong(f"yours {verb} slot {slot} (block {slot // BLOCK_SIZE}, place "
                    f"{slot % BLOCK_SIZE}): {why}. r0 has 6 tokens in blocks 3 and 1, r1 has 3 in "
                    "block 4.", draw_slots(touched))


def draw_slots(touched: set[int]) -> Text:
    """Draw the pool: whose slots were read, which were missed, which were none of anybody's."""
    owners = owner_of_slots()
    picture = Text("\n")
    for block in range(NUM_BLOCKS):
        picture.append(f"block {block}  ")
        for slot in range(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE):
            picture.append(*_glyph(slot in touched, owners.get(slot)))
            picture.append(" ")
        picture.append("\n")
    return picture.append("0, 1: read, a token of r0, r1   ?: should be read   !: read, but empty",
                          "dim")


def _glyph(was_read: bool, owner: int | None) -> tuple[str, str]:
    if owner is None:
        return (" ! ", "bold reverse") if was_read else (" . ", "dim")
    style = f"{ink_of(owner)} on {fill_of(owner)}"
    return (f" {owner} ", style) if was_read else (" ? ", f"bold {style}")


def check_numbers(yours: NDArray[np.float32], expected: NDArray[np.float32], num_heads: int,
                  num_kv_heads: int) -> None:
    """Compare the results; name the sequence and head that is wrong first."""
    wrong = np.argwhere(~np.isclose(yours, expected, atol=1e-4))
    if not len(wrong):
        return
    i, head, place = wrong[0]
    what = f"with {num_heads} query heads and {num_kv_heads} KV heads, " if num_heads > 1 else ""
    message = (f"the right slots were read, but {what}r{i}, head {head}: out[{i}, {head}, {place}] "
               f"should be {expected[i, head, place]:.4f}, yours is {yours[i, head, place]:.4f}. ")
    right_heads = {(int(a), int(b)) for a in range(2) for b in range(num_heads)} - {
        (int(a), int(b)) for a, b, _ in wrong}
    if num_heads > 1 and right_heads:
        raise Wrong(message + "Some heads are right: does each query head use its own KV head, "
                              f"head // {num_heads // num_kv_heads}?")
    raise Wrong(message + "Scores times scale, softmax (its weights sum to 1), weighted sum of "
                          "the values: is one missing?")


def check_engine(backend: type[NumpyAttentionBackend]) -> None:
    """Generate with the built-in model."""
    params = SamplingParams(temperature=0.0, max_tokens=8)
    outputs = [LLM(block_size=BLOCK_SIZE, attention_backend=choice).generate(
        PROMPTS, params, use_tqdm=False) for choice in (NumpyAttentionBackend, backend)]
    for right, mine in zip(*outputs, strict=True):
        if right.outputs[0].token_ids != mine.outputs[0].token_ids:
            raise Wrong(f"the engine: {right.prompt!r} should go on {right.outputs[0].text!r}, "
                        f"with yours it goes on {mine.outputs[0].text!r}.")
