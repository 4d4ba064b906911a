"""The envelope: aligned columns behind a JSON header, whatever is in it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.api import base
from memboard.tb_plugin.api.base import f64, i32
from memboard.tb_plugin.contract import wire
from tests.tb_plugin.client import decode_envelope

if TYPE_CHECKING:
    from memboard.tb_plugin.api.base import F64Column, I32Column, U8Column, U16Column


@dataclass(frozen=True)
class Everything:
    text: str
    number: float | None
    flag: bool
    columns: tuple[F64Column | I32Column | U16Column | U8Column, ...]


@given(
    st.text(),
    st.lists(st.sampled_from(["f64", "i32", "u16", "u8"]), max_size=30),
    st.integers(0, 40),
)
def test_columns_and_text_come_back(text, kinds, length):
    values = np.arange(length) % 200
    columns = tuple(getattr(base, kind)(values) for kind in kinds)
    body = wire.envelope(Everything(text, None, True, columns))
    found = decode_envelope(body)
    assert found["$response"] == "Everything"
    assert found["text"] == text
    assert found["number"] is None
    assert found["flag"] is True
    assert [column.tolist() for column in found["columns"]] == [values.tolist()] * len(
        kinds
    )


@given(
    st.sampled_from([("f64", "<f8"), ("i32", "<i4"), ("u16", "<u2"), ("u8", "u1")]),
    st.integers(-3, 3),
    st.integers(0, 2**32 - 1),
)
def test_long_columns_are_packed_and_come_back_bit_by_bit(kind, more, seed):
    name, dtype = kind
    random = np.random.default_rng(seed)
    num_bytes = (wire.PACKED_LENGTH + more) * np.dtype(dtype).itemsize
    values = random.integers(0, 256, num_bytes, np.uint8).view(dtype)
    body = wire.envelope(Everything("", None, True, (getattr(base, name)(values),)))
    (found,) = decode_envelope(body)["columns"]
    assert found.dtype == np.dtype(dtype)
    assert found.tobytes() == values.tobytes()
    assert (b"packed_" in body[:1000]) == (more >= 0 and name != "u8")


def test_packed_columns_deflate_to_a_fraction():
    values = 1_000_000 + np.arange(20_000) * 3
    body = wire.envelope(Everything("", None, True, (i32(values),)))
    plain = gzip.compress(values.astype("<i4").tobytes(), 1)
    assert len(gzip.compress(body, 1)) < len(plain) / 10


@pytest.mark.parametrize("num_columns", [1, 9, 10, 99, 300])
def test_the_header_says_its_own_length_however_long_it_gets(num_columns):
    columns = tuple(f64(np.full(13, i)) for i in range(num_columns))
    body = wire.envelope(Everything("", 1.5, False, columns))
    for index, column in enumerate(decode_envelope(body)["columns"]):
        assert column.tolist() == [index] * 13


def test_nan_travels_in_columns_and_nowhere_else():
    body = wire.envelope(Everything("", None, True, (f64([1, float("nan")]),)))
    assert np.isnan(decode_envelope(body)["columns"][0][1])
    with pytest.raises(ValueError, match="JSON"):
        wire.envelope(Everything("", float("nan"), True, ()))
    assert wire.finite(float("inf")) is None
    assert wire.finite(2) == 2.0


def test_names_that_are_no_text_do_not_break_the_answer():
    body = wire.envelope(Everything("a\udcffb", None, True, ()))
    assert decode_envelope(body)["text"] == "a?b"
