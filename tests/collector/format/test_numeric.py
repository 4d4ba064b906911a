"""Columns survive encoding exactly, and damaged blocks fail in one way only."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memboard.collector.format.encoding.numeric import (
    ABSENT,
    block_num_rows,
    decode_block,
    encode_block,
)
from memboard.collector.format.errors import CorruptError

BIG = st.integers(-(2**62), 2**62 - 1)
LENGTHS = st.integers(0, 200) | st.integers(1, 3)


def int_columns(num_rows: int) -> st.SearchStrategy[np.ndarray]:
    """Columns of every shape a source makes: constant, counter, noisy, with gaps."""
    free = arrays.arrays(np.int64, num_rows, elements=BIG)
    small = arrays.arrays(np.int64, num_rows, elements=st.integers(0, 255))
    counter = small.map(lambda a: np.cumsum(a, dtype=np.int64) + 1795177286703913739)
    gaps = st.tuples(small, arrays.arrays(np.bool_, num_rows)).map(
        lambda pair: np.where(pair[1], ABSENT, pair[0])
    )
    return st.one_of(free, small, counter, gaps)


@given(st.data(), LENGTHS)
def test_integers_and_floats_come_back_bit_for_bit(data, num_rows):
    columns = data.draw(st.lists(int_columns(num_rows), min_size=1, max_size=6))
    floats = data.draw(arrays.arrays(np.float64, num_rows))
    block = encode_block([*columns, floats], ["i8"] * len(columns) + ["f8"])
    decoded = decode_block(block)
    assert block_num_rows(block) == num_rows
    for expected, actual in zip([*columns, floats], decoded, strict=True):
        assert expected.tobytes() == actual.tobytes()


@pytest.mark.parametrize("num_rows", [1, 2, 3, 4, 47, 48, 1000, 5000])
def test_extremes_of_int64_survive(num_rows):
    lowest, highest = -(2**63) + 1, 2**63 - 1
    swing = np.array([lowest, highest] * num_rows, np.int64)[:num_rows]
    absent = np.full(num_rows, ABSENT)
    for column in (swing, absent, np.full(num_rows, highest)):
        (back,) = decode_block(encode_block([column], ["i8"]))
        assert np.array_equal(back, column)


def test_float32_columns_keep_float32_precision_and_nan():
    values = np.array([1.5, np.nan, np.inf, -0.0, 1e-40])
    (back,) = decode_block(encode_block([values], ["f4"]))
    assert np.array_equal(back, values.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("num_rows", [2, 100])
def test_columns_in_any_mix_keep_their_places(num_rows):
    ints = np.arange(num_rows, dtype=np.int64)
    floats = np.linspace(0.5, 2.5, num_rows)
    columns = [floats, ints, floats / 4, ints * 3, floats]
    dtypes = ["f4", "i8", "f8", "i8", "f8"]
    block = encode_block(columns, dtypes)
    for index, expected in enumerate(columns):
        (actual,) = decode_block(block, [index])
        np.testing.assert_allclose(actual, expected, rtol=1e-7)


def test_equal_values_cost_next_to_no_bytes_per_row():
    sizes = [len(encode_block([np.full(n, 7 << 30)], ["i8"])) for n in (1_000, 100_000)]
    assert sizes[1] - sizes[0] < 8


def test_long_columns_are_small_and_whole_whether_they_rise_or_jump():
    rng = np.random.default_rng(0)
    num_rows = 20_000
    times = 1795177286703913739 + np.cumsum(rng.integers(0, 200, num_rows))
    sizes = rng.choice(rng.integers(1 << 20, 1 << 34, 8), num_rows)
    absent = np.where(rng.random(num_rows) < 0.5, ABSENT, rng.integers(0, 16, num_rows))
    floats = rng.choice(rng.random(8), num_rows)
    for column, dtype, most in (
        (times, "i8", 1.2),
        (sizes, "i8", 2.4),
        (absent, "i8", 1.0),
        (floats, "f8", 3.5),
    ):
        block = encode_block([column], [dtype])
        (back,) = decode_block(block)
        assert back.tobytes() == column.tobytes()
        assert len(block) < most * num_rows


@given(st.binary(max_size=300))
def test_garbage_is_refused_as_corrupt(garbage):
    try:
        decoded = decode_block(garbage)
    except CorruptError:
        return
    # Whatever decodes must be what its own head promises.
    assert all(len(column) == block_num_rows(garbage) for column in decoded)


@given(st.data(), st.sampled_from([1, 3, 20, 100, 5000]))
def test_a_damaged_block_is_corrupt_or_has_the_promised_shape(data, num_rows):
    column = np.arange(num_rows, dtype=np.int64) ** 3
    columns = [column, column * 2, column]  # the last is stored as the first
    block = bytearray(encode_block(columns, ["i8"] * 3))
    at = data.draw(st.integers(0, len(block) - 1))
    block[at] ^= data.draw(st.integers(1, 255))
    try:
        decoded = decode_block(bytes(block))
    except CorruptError:
        return
    assert all(len(c) == block_num_rows(bytes(block)) for c in decoded)


@pytest.mark.parametrize("num_rows", [2, 10])
def test_a_deflate_bomb_is_refused_without_being_inflated(num_rows):
    honest = encode_block([np.arange(num_rows, dtype=np.int64)], ["i8"])
    packed = zlib.compress(bytes(1 << 24), 9)
    bomb = honest[:6] + len(packed).to_bytes(4, "little") + packed
    with pytest.raises(CorruptError, match="longer than its header says"):
        decode_block(bomb)


def test_a_block_that_claims_billions_of_rows_is_refused():
    honest = bytearray(encode_block([np.zeros(10, np.int64)], ["i8"]))
    honest[0:4] = (2**32 - 1).to_bytes(4, "little")
    with pytest.raises(CorruptError, match="claims 4,294,967,295 rows"):
        decode_block(bytes(honest))
