"""Columns of a snapshot's tables, as typed as asked for and as narrow as they may be."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.snapshots.columns import Table


def test_words_are_coded_as_wide_as_they_come():
    for kind in (np.int8, np.uint8, np.int64):
        values = np.array([1, 0, 1], kind)
        table = table_of({"action": values}, {"action": "text"})
        assert table.coded("action", ("oom", "x")).tolist() == [0, -1, 0]
    lost = table_of({"action": np.array([7, -1, 1])}, {"action": "text"})
    assert lost.coded("action", ("oom",)).tolist() == [-1, -1, 0]
    number = table_of({"action": np.array([0, 1])}, {"action": "int"})
    assert number.coded("action", ("alloc",)).tolist() == [-1, -1]


def table_of(columns: dict, kinds: dict[str, str]) -> Table:
    layout = {
        "table": tuple("t" for _ in kinds),
        "column": tuple(kinds),
        "kind": tuple(kinds.values()),
    }
    return Table("t", {"t": columns, "layout": layout}, ("alloc", "oom"))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint8])
def test_rows_that_lead_nowhere_are_counted_and_taken_away(kind):
    values = np.array([0, 1, 2, 9], kind)
    table = table_of({"stack": values}, {"stack": "stack"})
    rows, num_wrong = table.rows("stack", 2)
    assert rows.tolist() == [0, 1, -1, -1]
    assert num_wrong == 2


def test_what_is_absent_is_not_wrong():
    values = np.array([-(2**63), -1, -2, 0])
    table = table_of(
        {"stack": values, "size": values}, {"stack": "stack", "size": "int"}
    )
    rows, num_wrong = table.rows("stack", 1)
    assert rows.tolist() == [-1, -1, -1, 0]
    assert num_wrong == 1
    assert table.ints("size", 7).tolist() == [7, -1, -2, 0]


def test_a_column_that_says_nothing_takes_no_memory():
    table = table_of({"a": np.full(1000, -1, np.int8)}, {"a": "stack"})
    rows, num_wrong = table.rows("a", 5)
    assert (rows == -1).all()
    assert rows.strides == (0,)
    assert num_wrong == 0


@pytest.mark.parametrize(
    "column",
    [np.zeros((2, 2), np.int64), np.zeros(2), ("a", "b"), np.zeros(3, np.int8)],
)
def test_what_is_no_column_of_numbers_is_refused(column):
    table = table_of({"a": np.zeros(2, np.int64), "b": column}, {"b": "int"})
    if len(column) == 3:
        table = table_of({"a": np.zeros(4, np.int64), "b": column}, {"b": "int"})
    with pytest.raises(ValueError, match=r"t\.b"):
        table.ints("b", 0)
    with pytest.raises(ValueError, match=r"t\.b"):
        table.rows("b", 1)
