"""Rotary embeddings and their scalings."""

import math

import numpy as np
import pytest

from minivllm.model_executor.layers.rotary_embedding import get_rope

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def turn(rope, position, vector):
    """Turn one head at one position."""
    query, _ = rope(np.array([position]), vector[None], vector[None])
    return query[0]


def angles(rope, position, pairs):
    return np.arctan2(rope._sin[position], rope._cos[position])[:pairs]


def test_a_pair_is_turned_by_position_times_frequency():
    rope = get_rope(8, 8, 32, 10000.0)
    vector = np.zeros(8, np.float32)
    vector[1] = 1  # the second pair is (1, 5)
    turned = turn(rope, 3, vector)
    angle = 3 * 10000.0 ** (-2 / 8)
    np.testing.assert_allclose(turned[[1, 5]], [math.cos(angle), math.sin(angle)], atol=1e-6)
    assert not turned[[0, 2, 3, 4, 6, 7]].any()


def test_products_depend_on_the_distance_only():
    rope, rng = get_rope(16, 16, 64, 10000.0), np.random.default_rng(0)
    q, k = rng.standard_normal((2, 16), dtype=np.float32)
    products = [turn(rope, i + 9, q) @ turn(rope, i, k) for i in (0, 5, 40)]
    np.testing.assert_allclose(products, products[0], atol=1e-5)


def test_heads_are_turned_alike_and_lengths_stay():
    rope, rng = get_rope(4, 4, 16, 10000.0), np.random.default_rng(0)
    head = rng.standard_normal((2, 4), dtype=np.float32)
    query, key = rope(np.array([3, 7]), np.tile(head, 3), head)
    np.testing.assert_array_equal(query, np.tile(key, 3))
    np.testing.assert_allclose(np.linalg.norm(key, axis=1), np.linalg.norm(head, axis=1),
                               rtol=1e-6)


def test_the_rest_of_a_head_is_left_alone():
    rope = get_rope(8, 4, 16, 10000.0)
    vector = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(turn(rope, 5, vector)[4:], vector[4:])
    assert (turn(rope, 5, vector)[:4] != vector[:4]).all()


def test_linear_moves_positions_closer():
    plain = get_rope(8, 8, 32, 10000.0)
    scaled = get_rope(8, 8, 32, 10000.0, {"rope_type": "linear", "factor": 2.0})
    np.testing.assert_allclose(scaled._cos[::2], plain._cos, atol=1e-6)
    assert len(scaled._cos) == 64


def test_dynamic_changes_nothing_within_the_trained_length():
    plain = get_rope(8, 8, 32, 10000.0)
    scaled = get_rope(8, 8, 32, 10000.0, {"rope_type": "dynamic", "factor": 2.0})
    np.testing.assert_array_equal(scaled._cos[:32], plain._cos)
    base = 10000.0 * (2.0 * 64 / 32 - 1) ** (8 / 6)  # for the last of 64 positions
    np.testing.assert_allclose(angles(scaled, 63, 4)[3], 63 * base ** (-6 / 8), rtol=1e-5)


def test_llama3_keeps_fast_pairs_and_divides_slow_ones():
    plain, scaled = get_rope(64, 64, 64, 10000.0), get_rope(64, 64, 64, 10000.0, LLAMA3)
    ratio = angles(plain, 1, 32) / angles(scaled, 1, 32)
    turns = 64 * 10000.0 ** (-np.arange(32) / 32) / (2 * math.pi)
    np.testing.assert_allclose(ratio[turns > 4], 1, rtol=1e-5)
    np.testing.assert_allclose(ratio[turns < 1], 8, rtol=1e-5)
    between = ratio[(turns < 4) & (turns > 1)]
    assert len(between) > 0
    assert (between > 1).all()
    assert (between < 8).all()
    assert (np.diff(between) > 0).all()


def test_yarn_keeps_fast_pairs_divides_slow_ones_and_scales_all():
    plain, scaled = get_rope(64, 64, 64, 10000.0), get_rope(64, 64, 64, 10000.0, YARN)
    ratio = angles(plain, 1, 32) / angles(scaled, 1, 32)
    np.testing.assert_allclose(ratio[0], 1, rtol=1e-5)
    np.testing.assert_allclose(ratio[-1], 4, rtol=1e-5)
    assert (np.diff(ratio) >= -1e-5).all()
    np.testing.assert_allclose(np.hypot(scaled._cos, scaled._sin), 0.1 * math.log(4) + 1, rtol=1e-5)
    assert len(scaled._cos) == 256


@pytest.mark.parametrize(("extra", "magnitude"), [
    ({"attention_factor": 1.5}, 1.5),
    ({"mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
    ({"mscale": 0.5, "mscale_all_dim": 1.0},
     (0.05 * math.log(4) + 1) / (0.1 * math.log(4) + 1))])
def test_yarn_magnitudes(extra, magnitude):
    rope = get_rope(8, 8, 64, 10000.0, YARN | extra)
    np.testing.assert_allclose(rope._cos[0], magnitude, rtol=1e-6)


def test_layers_share_one_table():
    first, second = get_rope(8, 8, 64, 10000.0, YARN), get_rope(8, 8, 64, 10000.0, dict(YARN))
    assert first._cos is second._cos


@pytest.mark.parametrize(("scaling", "message"), [
    ({"rope_type": "longrope", "factor": 2.0}, "'longrope' is not supported.*llama3"),
    ({"rope_type": "linear"}, "'linear' in config.json needs 'factor'"),
    ({"rope_type": "llama3", "factor": 2.0}, "needs 'low_freq_factor'")])
def test_scalings_that_cannot_be(scaling, message):
    with pytest.raises(ValueError, match=message):
        get_rope(8, 8, 64, 10000.0, scaling)
