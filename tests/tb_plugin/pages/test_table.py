"""Rows of long tables: in order, searched, and cut."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.pages.operators.table import Number, Table
from tb_plugin.pages.profile.asked import TableQuery

NAN = float("nan")
STRINGS = ("b", "A", "c", "a")
ROWS = SimpleNamespace(
    name=np.arange(4),
    ns=np.array([3.0, NAN, 1.0, 2.0]),
    calls=np.array([1, 1, 2, 2]),
    size=np.array([5, -1, 4, -1]),
)
TABLE = Table(
    texts=("name",),
    numbers=(
        Number("ms", "ns", 1e6),
        Number("calls"),
        Number("size", negative_is_unknown=True),
    ),
)


def rows_of(sort=None, text=None, top=10, among=(0, 1, 2, 3)):
    query = TableQuery(run="r", sort=sort, text=text, top=top)
    rows, num = TABLE.rows(ROWS, STRINGS, query, "ms", np.array(among))
    return rows.tolist(), num


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (None, [0, 3, 2, 1]),
        ("ms", [0, 3, 2, 1]),
        ("-ms", [2, 3, 0, 1]),
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
    assert rows_of(sort) == (expected, 4)


def test_searches_before_it_cuts():
    for sort in ("ms", "-ms", "name", "-name"):
        assert rows_of(sort, top=1, among=(2, 3)) == (
            [3 if sort in ("ms", "-name") else 2],
            2,
        )
    assert rows_of("-ms", "A", top=1) == ([3], 2)
    for sort in ("-name", "ms"):
        assert rows_of(sort, "nowhere") == ([], 0)


def test_sends_columns_in_their_units():
    sent = TABLE.sent(ROWS, STRINGS, np.array([3, 0]))
    assert sent["name"] == ("a", "b")
    assert {key: sent[key].tolist() for key in ("ms", "size")} == {
        "ms": [2e-6, 3e-6],
        "size": [-1, 5],
    }


@given(
    st.lists(st.floats(allow_infinity=True), max_size=30),
    st.integers(1, 40),
    st.booleans(),
)
def test_what_is_not_known_comes_last(values, top, ascending):
    source = SimpleNamespace(x=np.array(values, dtype=np.float64))
    query = TableQuery(run="r", sort="-x" if ascending else "x", top=top)
    every = np.arange(len(values))
    rows, num = Table((Number("x"),)).rows(source, (), query, "x", every)
    assert num == len(values)
    known = sorted((v for v in values if v == v), reverse=not ascending)
    sent = [values[row] for row in rows.tolist()]
    expected = [*known, *([NAN] * (len(values) - len(known)))][:top]
    np.testing.assert_array_equal(sent, expected)
