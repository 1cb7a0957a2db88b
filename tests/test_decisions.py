"""Sentences, and which claims about limits are made."""

from minivllm.decisions import Check, Decision, DecisionLog, Verdict, sentence


def waits(request_id: str, check: Check, need: int, have: int, *, total: int,
          enough: int | None) -> Decision:
    return Decision(request_id, Verdict.WAITS, check, need, have, total=total, enough=enough)


def test_a_sentence_names_numbers_limit_and_who_took_it():
    decision = waits("r2", Check.TOKENS, 3, 2, total=12, enough=13)
    assert decision.held_back and decision.limit == "max_num_batched_tokens"
    assert sentence(decision, ["r0", "r1"]) == (
        "r2 waits (token budget): its prompt is 3 tokens, 2 of the step's 12 are left; r0 and r1 "
        "took 10. It would have run with max_num_batched_tokens=13.")


def test_a_preemption_names_in_whose_favour():
    decision = Decision("r2", Verdict.RECOMPUTED, Check.GPU_BLOCKS, 1, 0, other="r0", total=5)
    assert sentence(decision) == (
        "r2 is preempted by recompute (free blocks): the check wants 1 free block before r0 goes "
        "on, 0 of 5 are free.")


def test_a_reserve_must_stay_free():
    decision = Decision("r1", Verdict.ADMITTED, Check.GPU_BLOCKS, 2, 9, reserve=3, total=300)
    assert not decision.held_back
    assert sentence(decision) == (
        "r1 starts: its prompt takes 2 blocks, 9 of 300 are free and 3 must stay free.")


def test_a_rule_concerns_a_queue_and_has_no_numbers():
    log = DecisionLog()
    log.rule(Verdict.PROMPTS_FIRST)
    assert log.decisions[0].request_id is None and log.decisions[0].limit is None
    assert not log.decisions[0].held_back
    assert sentence(log.decisions[0]) == "Prompts go first: running requests pause."


def test_a_claim_is_dropped_if_a_smaller_raise_had_changed_the_step_before():
    log = DecisionLog()
    log.add(waits("r0", Check.GPU_BLOCKS, 4, 3, total=10, enough=11))
    # With 11 blocks r0 would have gone first: nobody knows what were left for r1.
    log.add(waits("r1", Check.GPU_BLOCKS, 5, 3, total=10, enough=12))
    # Another limit has nothing to do with it.
    log.add(waits("r2", Check.SEATS, 2, 1, total=8, enough=9))
    assert [decision.enough for decision in log.decisions] == [11, None, 9]


def test_claims_made_together_do_not_stand_in_each_others_way():
    log = DecisionLog()
    log.add(waits("r0", Check.GPU_BLOCKS, 4, 3, total=10, enough=11),
            waits("r1", Check.GPU_BLOCKS, 5, 3, total=10, enough=12))
    assert [decision.enough for decision in log.decisions] == [11, 12]
