"""Rows of long tables: in order, searched, and cut."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.contract.table import Column, Table, rows_of
from memboard.tb_plugin.facts.traces.profiled import TableQuery

NAN = float("nan")
STRINGS = ("b", "A", "c", "a")
ROWS = SimpleNamespace(
    name=np.arange(4),
    took_ns=np.array([3.0, NAN, 1.0, 2.0]),
    calls=np.array([1, 1, 2, 2]),
    size=np.array([5, -1, 4, -1]),
)
TABLE = Table(
    (
        Column("name", "Name", "name"),
        Column("took_ms", "Took", "ms", bar="kernel", share_of="of all"),
        Column("calls"),
        Column("size", absent="It does not say it"),
    )
)


def found(sort=None, text=None, top=10, among=(0, 1, 2, 3)):
    query = TableQuery(run="r", sort=sort, text=text, top=top)
    rows, num = TABLE.rows(ROWS, STRINGS, query, "took_ms", np.array(among))
    return rows.tolist(), num


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (None, [0, 3, 2, 1]),
        ("took_ms", [0, 3, 2, 1]),
        ("-took_ms", [2, 3, 0, 1]),
        ("calls", [2, 3, 0, 1]),
        ("-calls", [0, 1, 2, 3]),
        ("size", [0, 2, 1, 3]),
        ("-size", [2, 0, 1, 3]),
        ("-name", [1, 3, 0, 2]),
        ("nothing", [0, 3, 2, 1]),
        ("-nothing", [0, 3, 2, 1]),
    ],
)
def test_orders(sort, expected):
    assert found(sort) == (expected, 4)


def test_searches_before_it_cuts():
    for sort in ("took_ms", "-took_ms", "name", "-name"):
        assert found(sort, top=1, among=(2, 3)) == (
            [3 if sort in ("took_ms", "-name") else 2],
            2,
        )
    assert found("-took_ms", "A", top=1) == ([3], 2)
    for sort in ("-name", "took_ms"):
        assert found(sort, "nowhere") == ([], 0)


def test_sends_columns_in_their_units():
    rows = np.array([3, 0])
    sent = TABLE.sent(ROWS, STRINGS, (rows, 4), "took_ms", without=("calls",))
    name, took, size = sent.columns
    assert (name.texts, sent.num_rows, sent.num_all) == (("a", "b"), 2, 4)
    assert took.numbers.tolist() == [2e-6, 3e-6]
    assert (took.sum, took.longest) == (6e-6, 3e-6)
    assert np.isnan(size.numbers[0])
    assert TABLE.fields(ROWS, rows)["calls"].tolist() == [2, 1]


def test_sends_objects_and_says_what_is_not_known_of_them():
    rows = [
        SimpleNamespace(name="a", took_ns=None),
        SimpleNamespace(name="", took_ns=2),
    ]
    sent = rows_of(TABLE.columns[:2], rows, "-took_ms", 7, name={"notes": ("x", "")})
    assert (sent.num_all, sent.columns[0].notes) == (7, ("x", ""))
    np.testing.assert_array_equal(sent.columns[1].numbers, [NAN, 2e-6])


@given(
    st.lists(st.floats(allow_infinity=True), max_size=30),
    st.integers(1, 40),
    st.booleans(),
)
def test_what_is_not_known_comes_last(values, top, ascending):
    source = SimpleNamespace(x=np.array(values, dtype=np.float64))
    query = TableQuery(run="r", sort="-x" if ascending else "x", top=top)
    every = np.arange(len(values))
    rows, num = Table((Column("x"),)).rows(source, (), query, "x", every)
    assert num == len(values)
    known = sorted((v for v in values if v == v), reverse=not ascending)
    sent = [values[row] for row in rows.tolist()]
    expected = [*known, *([NAN] * (len(values) - len(known)))][:top]
    np.testing.assert_array_equal(sent, expected)


@pytest.mark.parametrize(
    "unit", ["excess_seconds", "change", "change_bytes", "change_share"]
)
def test_a_difference_below_zero_is_no_sign_that_it_is_absent(unit):
    column = Column("less", unit=unit, absent="It does not say it")
    assert column.numbers([-5.0, NAN, 3.0]).tolist()[::2] == [-5.0, 3.0]
    size = Column("size", unit="bytes", absent="It does not say it")
    assert np.isnan(size.numbers([-1.0])).all()
