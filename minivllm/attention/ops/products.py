"""Kernels of the product of few tokens with a weight, where BLAS is slow.

Reading the weight takes most of the time then, so each number of it is used as often as possible
once it is in a register.
"""

import numpy as np

from minivllm.attention.ops.jit import REORDERED, jit
from minivllm.attention.ops.paged_attn import Floats

# Rows of each of three streams of a weight that all tokens are multiplied with before the next.
ROWS_AT_ONCE = 64


@jit(REORDERED)
def linear(part: int, num_parts: int, x: Floats, weight: Floats, out: Floats) -> None:
    """Put the products with one of `num_parts` equal groups of the weight's rows into `out`.

    A weight is read from memory once, as three streams that begin a third of the part apart.  Where
    rows are no multiple of three, or tokens of four, some are computed twice.  (BLAS rearranges a
    weight first, which pays with many tokens.)

    Parameters
    ----------
    part, num_parts : int
    x : (num_tokens, input_size) float32
        Few tokens.
    weight : (output_size, input_size) float32
    out : (num_tokens, output_size) float32
        Contiguous, as are the others.
    """
    num_tokens = len(x)
    first, last = len(weight) * part // num_parts, len(weight) * (part + 1) // num_parts
    third = (last - first + 2) // 3
    second_stream, third_stream = min(first + third, last - third), last - third
    for begin in range(0, third, ROWS_AT_ONCE):
        end = min(begin + ROWS_AT_ONCE, third)
        tokens_at_once = 4 if num_tokens >= 4 else 1
        for t in range(0, num_tokens, tokens_at_once):
            t = min(t, num_tokens - tokens_at_once)
            for i in range(begin, end):
                a, b, c = first + i, second_stream + i, third_stream + i
                if tokens_at_once == 4:
                    put_12_products(x, t, weight, a, b, c, out)
                else:
                    put_3_products(x, t, weight, a, b, c, out)


@jit(REORDERED)
def put_3_products(x: Floats, t: int, weight: Floats, a: int, b: int, c: int,
                   out: Floats) -> None:
    """Put the products of token t with rows a, b and c of the weight into `out`."""
    token, row_a, row_b, row_c = x[t], weight[a], weight[b], weight[c]
    sum_a = sum_b = sum_c = np.float32(0)
    for i in range(len(token)):
        sum_a += token[i] * row_a[i]
        sum_b += token[i] * row_b[i]
        sum_c += token[i] * row_c[i]
    out[t, a], out[t, b], out[t, c] = sum_a, sum_b, sum_c


@jit(REORDERED)
def put_12_products(x: Floats, t: int, weight: Floats, a: int, b: int, c: int,
                    out: Floats) -> None:
    """Put the products of four tokens, from t on, with rows a, b and c of the weight into `out`.

    Twelve sums, three numbers of the rows and one of a token fill the 16 vector registers of AVX2:
    each number that is loaded is used three or four times.
    """
    row_a, row_b, row_c = weight[a], weight[b], weight[c]
    t0, t1, t2, t3 = x[t], x[t + 1], x[t + 2], x[t + 3]
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = np.float32(0)
    for i in range(len(row_a)):
        a0 += t0[i] * row_a[i]
        b0 += t0[i] * row_b[i]
        c0 += t0[i] * row_c[i]
        a1 += t1[i] * row_a[i]
        b1 += t1[i] * row_b[i]
        c1 += t1[i] * row_c[i]
        a2 += t2[i] * row_a[i]
        b2 += t2[i] * row_b[i]
        c2 += t2[i] * row_c[i]
        a3 += t3[i] * row_a[i]
        b3 += t3[i] * row_b[i]
        c3 += t3[i] * row_c[i]
    out[t, a], out[t + 1, a], out[t + 2, a], out[t + 3, a] = a0, a1, a2, a3
    out[t, b], out[t + 1, b], out[t + 2, b], out[t + 3, b] = b0, b1, b2, b3
    out[t, c], out[t + 1, c], out[t + 2, c], out[t + 3, c] = c0, c1, c2, c3
