"""Packed numbers come back as they were, and take little room."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.snapshots.pickles import packed as packed_module
from memboard.tb_plugin.formats.snapshots.pickles.packed import PackedNumbers

wide = st.integers(-(2**63), 2**63 - 1)
runs = st.one_of(
    st.lists(wide, max_size=20),
    st.lists(st.integers(0, 300), max_size=20),
    st.lists(st.integers(0, 3).map(lambda n: (n << 40) + 512), max_size=20),
    st.tuples(wide, st.integers(0, 20)).map(lambda pair: [pair[0]] * pair[1]),
)


@given(st.lists(runs, max_size=8), st.integers(1, 30))
def test_numbers_come_back(pieces, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_module, "_CHUNK", size)
        packed = PackedNumbers()
        for piece in pieces:
            packed.append(np.array(piece, np.int64))
        held = [number for piece in pieces for number in piece]
        assert len(packed) == len(held)
        assert [n for chunk in packed.chunks() for n in chunk.tolist()] == held


@given(st.lists(st.lists(st.floats()), max_size=5))
def test_floats_come_back(pieces):
    packed = PackedNumbers(is_float=True)
    for piece in pieces:
        packed.append(np.array(piece, np.float64))
    found = np.concatenate([np.empty(0), *packed.chunks()])
    assert np.array_equal(
        found, np.array([n for piece in pieces for n in piece]), equal_nan=True
    )


@given(st.lists(wide, max_size=40), st.data())
def test_spans_are_picked(numbers, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_module, "_CHUNK", 4)
        packed = PackedNumbers()
        packed.pad(-1, 3)
        packed.append(np.array(numbers, np.int64))
        packed.pad(7, 9)
        held = [-1] * 3 + numbers + [7] * 9
        place = st.integers(0, len(held))
        spans = data.draw(st.lists(st.tuples(place, place).map(sorted), max_size=4))
        found = [n for chunk in packed.rows(spans) for n in chunk.tolist()]
        assert found == [n for start, stop in spans for n in held[start:stop]]


def test_padding_of_floats_is_no_number():
    packed = PackedNumbers(is_float=True)
    packed.pad(math.nan, 5)
    packed.append(np.array([1.5]))
    found = np.concatenate(list(packed.chunks()))
    assert np.isnan(found[:5]).all()
    assert found[5] == 1.5


def test_what_is_alike_takes_little_room():
    packed = PackedNumbers()
    number = 100_000
    packed.append(1_700_000_000_000_000 + np.arange(number) * 40)  # times
    packed.pad(-(2**63), number)
    packed.append(0x7F0000000000 + (np.arange(number) % 1000) * 2**21)  # addresses
    assert len(pickle.dumps(list(packed._chunks))) < 3 * number * 2.5
