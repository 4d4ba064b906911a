"""Rows of long tables: in order, searched, and cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.pages.operators.table_rows import rows_sent

NAN = float("nan")
COLUMNS = {"ms": np.array([3.0, NAN, 1.0, 2.0]), "calls": np.array([1, 1, 2, 2])}
NAMES = ("b", "A", "c", "a")
TEXTS = {"name": NAMES.__getitem__}


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (None, [0, 3, 2, 1]),
        ("ms", [0, 3, 2, 1]),
        ("-ms", [2, 3, 0, 1]),
        ("calls", [2, 3, 0, 1]),
        ("-calls", [0, 1, 2, 3]),
        ("-name", [1, 3, 0, 2]),
        ("nothing", [0, 3, 2, 1]),
        ("-nothing", [0, 3, 2, 1]),
    ],
)
def test_orders(sort, expected):
    rows, num = rows_sent(4, COLUMNS, sort, "ms", 10, texts=TEXTS)
    assert (rows.tolist(), num) == (expected, 4)


def test_searches_before_it_cuts():
    for sort in ("ms", "-ms", "name", "-name"):
        rows, num = rows_sent(4, COLUMNS, sort, "ms", 1, lambda row: row > 1, TEXTS)
        assert num == 2
        assert rows.tolist() == [3 if sort in ("ms", "-name") else 2]
    nothing, num = rows_sent(4, COLUMNS, "-name", "ms", 9, lambda _: False, TEXTS)
    assert (nothing.tolist(), num) == ([], 0)


@given(
    st.lists(st.floats(allow_infinity=True), max_size=30),
    st.integers(1, 40),
    st.booleans(),
)
def test_what_is_not_known_comes_last(values, top, ascending):
    columns = {"x": np.array(values, dtype=np.float64)}
    rows, num = rows_sent(len(values), columns, "-x" if ascending else "x", "x", top)
    assert num == len(values)
    known = sorted((v for v in values if v == v), reverse=not ascending)
    sent = [values[row] for row in rows.tolist()]
    expected = [*known, *([NAN] * (len(values) - len(known)))][:top]
    np.testing.assert_array_equal(sent, expected)
