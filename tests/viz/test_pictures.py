"""Each picture of a few hand-made snapshots, as text."""

import dataclasses

import pytest

from minivllm.decisions import Check, Decision, Verdict
from minivllm.tracing.snapshot import Snapshot
from minivllm.viz.blocks import blocks
from minivllm.viz.diff import diff
from minivllm.viz.memory import memory
from minivllm.viz.overview import line, overview
from minivllm.viz.picture import Picture
from minivllm.viz.queues import queues
from minivllm.viz.table import table
from minivllm.viz.timeline import timeline
from minivllm.viz.why import why
from tests.viz.snapshots import LIMITS, classic, make_scheduled, make_seq, make_snapshot

DRAWERS = [blocks, diff, line, memory, overview, queues, table, timeline, why]


def lines(picture: Picture, width: int = 80) -> list[str]:
    return picture.text(width).split("\n")


def shared() -> Snapshot:
    """Two samples of one prompt diverge: the first writes into a copy of the shared block."""
    texts = ["The", " life", " is", " good", " and", " long"]
    before = [make_seq(f"r0.{i}", 6, 5, (4, 3), seq_id=i, texts=texts, num_prompt=5)
              for i in range(2)]
    first = make_snapshot(0, before)
    after = [make_seq("r0.0", 7, 6, (4, 2), seq_id=0, texts=[*texts, " a"], num_prompt=5),
             make_seq("r0.1", 7, 6, (4, 3), seq_id=1, texts=[*texts, " b"], num_prompt=5)]
    scheduled = dataclasses.replace(
        make_scheduled(after[0], False, 1),
        seqs=tuple(make_scheduled(seq, False, 1).seqs[0] for seq in after))
    return make_snapshot(1, after, scheduled=(scheduled,), blocks_to_copy=((3, 2),),
                         previous=first)


def test_queues_name_requests_from_head_to_tail():
    assert lines(queues(classic()[0]), 60) == [
        "queues  after step 0, head on the left ─────────────────────",
        "waiting   r2  3 tokens",
        "running   r0  6 tokens, 2 blocks   r1  6 tokens, 2 blocks",
        "swapped  –",
    ]


def test_blocks_show_holder_and_fill():
    """A filled slot is in the cache, a hollow one holds a token that is computed next."""
    assert lines(blocks(classic()[1]), 60) == [
        "GPU block pool  5 blocks of 4 slots: 5 used, 0 free ────────",
        "╭─ 0 ─────╮ ╭─ 1 ─────╮ ╭─ 2 ─────╮ ╭─ 3 ─────╮ ╭─ 4 ─────╮",
        "│ r2 ■■■□ │ │ r1 ■□·· │ │ r1 ■■■■ │ │ r0 ■□·· │ │ r0 ■■■■ │",
        "╰─────────╯ ╰─────────╯ ╰─────────╯ ╰─────────╯ ╰─────────╯",
        "■ in the cache  □ still to be computed  · empty",
    ]


def test_blocks_in_ascii():
    assert blocks(classic()[1]).text(60, "ascii").split("\n")[1:] == [
        "+- 0 -----+ +- 1 -----+ +- 2 -----+ +- 3 -----+ +- 4 -----+",
        "| r2 ###o | | r1 #o.. | | r1 #### | | r0 #o.. | | r0 #### |",
        "+---------+ +---------+ +---------+ +---------+ +---------+",
        "# in the cache  o still to be computed  . empty",
    ]


def test_shared_blocks_have_a_count_and_free_runs_a_box():
    limits = dataclasses.replace(LIMITS, num_gpu_blocks=12)
    seqs = [make_seq(f"r0.{i}", 6, 5, (11, 10), seq_id=i) for i in range(3)]
    picture = blocks(make_snapshot(0, seqs, limits, cached=[3]))
    assert lines(picture)[1:] == [
        "╭─ 0 ────────╮ ╭─ 1 ────────╮ ╭─ 2 ────────╮ ╭─ 3 ────────╮",
        "│ free       │ │ free       │ │ free       │ │ cached     │",
        "╰────────────╯ ╰────────────╯ ╰────────────╯ ╰────────────╯",
        "╭─ 4–9 ──────╮ ╭─ 10 ───────╮ ╭─ 11 ───────╮",
        "│ free       │ │ r0 ×3 ■□·· │ │ r0 ×3 ■■■■ │",
        "╰────────────╯ ╰────────────╯ ╰────────────╯",
        "■ in the cache  □ still to be computed  · empty  ×2 shared by two",
    ]
    assert "10 free (1 of them cached)" in lines(picture)[0]
    assert picture.data["gpu"]["blocks"][10]["ref_count"] == 3


def test_table_maps_logical_to_physical():
    assert lines(table(classic()[0], "r0"), 70) == [
        "block tables  logical block, physical block, its tokens ──────────────",
        " r0  5 prompt + 1 output tokens, 5 in the cache, running",
        "    0 → 4          ■■■■  Hello │ , │ ·my │ ·name",
        "    1 → 3          ■□··  ·is │ ▸·Ada",
        "■ in the cache  □ still to be computed  · empty  ▸ output starts",
    ]


def test_a_token_without_a_block_yet():
    seq = make_seq("r0", 9, 8, (4, 3), texts=list("abcdefghi"), num_prompt=5)
    assert lines(table(make_snapshot(0, [seq])))[4] == "    2 → –          □···  i"


def test_tokens_are_shown_as_they_are():
    """Spaces and newlines have glyphs; Chinese takes two cells; markup stays text."""
    seq = make_seq("r0", 4, 4, (1,), texts=[" 你好", "\n", "[bold]", "<E4>"])
    row = lines(table(make_snapshot(0, [seq])))[2]
    assert row == "    0 → 1          ■■■■  ·你好 │ ↵ │ [bold] │ <E4>"
    ascii_row = table(make_snapshot(0, [seq])).text(80, "ascii").split("\n")[2]
    assert ascii_row == "    0 -> 1         ####  _\\u4f60\\u597d | \\n | [bold] | <E4>"


def test_timeline_has_a_glyph_for_each_step():
    assert lines(timeline(classic()[2]), 60) == [
        "timeline  steps 0 to 2 ─────────────────────────────────────",
        "     0",
        "r0   P  -  D",
        "r1   P  -  D",
        "r2   w  P  X",
        "P prefill  D decode  - running, but not in this step",
        "w waiting  X preempted",
    ]


def test_memory_curve():
    assert lines(memory(classic()[2]), 60)[:4] == [
        "GPU blocks used  now 4 of 5, most 5 in step 1 ──────────────",
        " 5 │   ███",
        "   │▇▇▇███▇▇▇",
        "   │█████████",
    ]


def test_diff_says_what_was_copied_and_for_whom():
    assert diff(shared()).data == {
        "tokens": ["r0.0 computes 1 token, gets ' a'", "r0.1 computes 1 token, gets ' b'"],
        "blocks": ["r0.0 takes block 2", "r0.0 gives back block 3",
                   "free GPU blocks: 3 -> 2"],
        "moved": ["copy on write: block 3 -> 2; r0.0 is about to write into a block that r0.1 "
                  "still needs"],
    }


def test_diff_of_the_first_step_is_about_arrivals():
    assert diff(classic()[0]).data["queues"] == [
        "r2 arrives: waiting", "r0 arrives: running", "r1 arrives: running"]


def test_line_and_why():
    decisions = (Decision("r0", Verdict.ADMITTED, Check.GPU_BLOCKS, 2, 5, total=5),
                 Decision("r2", Verdict.WAITS, Check.TOKENS, 3, 2, total=12, enough=13))
    snapshot = dataclasses.replace(classic()[0], decisions=decisions)
    assert line(snapshot).text(80) == (
        "step 0  prefill r0 r1 | r2 waits: token budget, needs 3, has 2")
    assert why(snapshot, "r2").data == {"r2": [
        "r2 waits (token budget): its prompt is 3 tokens, 2 of the step's 12 are left; r0 and r1 "
        "took 10. It would have run with max_num_batched_tokens=13."]}
    assert why(snapshot, "r0").data["r0"][-1] == "r0 runs: prefill of 5 tokens."
    assert list(why(snapshot).data) == ["r2"]


def test_where_everybody_ran_but_a_block_was_copied_it_says_where_to_look():
    assert lines(why(shared()))[1:] == [
        "every unfinished request ran; diff says which blocks were moved"]


def test_requests_behind_the_head_of_a_queue_wait_for_it():
    decisions = (Decision("r1", Verdict.WAITS, Check.SEATS, 1, 0, total=1, enough=2),)
    seqs = [make_seq(f"r{i}", 3, 0, status="WAITING") for i in range(3)]
    snapshot = make_snapshot(0, seqs, decisions=decisions)
    assert why(snapshot, "r2").data == {"r2": ["r2 waits behind r1."]}


def test_rules_without_numbers_hold_for_a_whole_queue():
    rule = Decision(None, Verdict.PROMPTS_FIRST, Check.RULE)
    snapshot = dataclasses.replace(classic()[1], decisions=(rule,))
    assert why(snapshot).data == {name: ["Prompts go first: running requests pause."]
                                  for name in ("r0", "r1")}
    assert line(snapshot).data == "step 1  prefill r2 | r0 r1 pause: prompts go first"


@pytest.mark.parametrize("draw", DRAWERS, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("width", [40, 60, 100, 160])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "gbk"])
def test_no_line_is_too_wide_and_none_needs_unicode(draw, width, encoding):
    limits = dataclasses.replace(LIMITS, num_gpu_blocks=40)
    seqs = [make_seq(f"r0.{i}", 14, 13, (20 - i, *range(i * 3, i * 3 + 3)), seq_id=i,
                     texts=[" 你好", "\n", "supercalifragilistic"] * 5, num_prompt=9)
            for i in range(4)]
    decisions = (Decision(None, Verdict.PROMPTS_FIRST, Check.RULE),)
    first = make_snapshot(0, seqs, limits, decisions=decisions)
    snapshot = make_snapshot(1, seqs, limits, decisions=decisions, previous=first)
    text = draw(snapshot).text(width, encoding)
    text.encode(encoding)
    for row in text.split("\n"):
        assert sum(2 if char in "你好" else 1 for char in row) <= width


@pytest.mark.parametrize("draw", DRAWERS, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("width", [1, 5, 12, 20])
def test_a_window_that_is_much_too_narrow_is_no_error(draw, width):
    seqs = [make_seq("r0", 5, 4, (0, 1), texts=list("abcde"))]
    first = make_snapshot(0, seqs)
    assert draw(make_snapshot(1, seqs, previous=first)).text(width, "utf-8")


def test_thousands_of_blocks_and_requests_become_a_summary():
    limits = dataclasses.replace(LIMITS, num_gpu_blocks=8000)
    seqs = [make_seq(f"r{i}", 8, 7, (2 * i, 2 * i + 1), texts=list("abcdefgh"))
            for i in range(1500)]
    waiting = [make_seq(f"r{i}", 8, 0, status="WAITING", texts=list("abcdefgh"))
               for i in range(1500, 4000)]
    snapshot = make_snapshot(0, seqs + waiting, limits,
                             decisions=(Decision(None, Verdict.PROMPTS_FIRST, Check.RULE),
                                        Decision("r1500", Verdict.WAITS, Check.SEATS, 1, 0)))
    for draw in (blocks, queues, table, timeline, overview):
        assert len(lines(draw(snapshot))) < 120, draw.__name__
    assert "one glyph is 8 blocks" in blocks(snapshot).text()
    assert "more" in queues(snapshot).text()


def test_a_middle_sized_pool_has_a_glyph_for_each_block():
    limits = dataclasses.replace(LIMITS, num_gpu_blocks=100)
    seqs = [make_seq(f"r{i}", 7, 6, (2 * i, 2 * i + 1), texts=list("abcdefg"))
            for i in range(20)]
    seqs.append(make_seq("r20", 7, 6, (0, 1), texts=list("abcdefg")))
    rows = lines(blocks(make_snapshot(0, seqs, limits, cached=[50])))
    assert rows[1].startswith("  0  22█▄█▄")
    assert rows[-1] == ("█ full  ▄ partly filled  2 shared by two  ▒ cached, unused  · free")
    assert "▒" in rows[1]


def test_the_whole_picture_says_what_moved():
    text = overview(shared()).text(100)
    assert ("moved  before the model ran" in text
            and "copy on write: block 3 → 2; r0.0 is about to write into a block that r0.1" in text)


@pytest.mark.parametrize("draw", DRAWERS, ids=lambda draw: draw.__name__)
def test_an_engine_without_blocks_can_be_drawn(draw):
    """Pooling requests need none."""
    limits = dataclasses.replace(LIMITS, num_gpu_blocks=0, num_cpu_blocks=0)
    seq = make_seq("r0", 3, 3)
    snapshot = make_snapshot(0, [seq], limits, scheduled=(make_scheduled(seq, True, 3),))
    assert draw(snapshot).text()
