"""Operations on columns of numbers, against numpy or a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    Table,
    changes,
    constant,
    distinct,
    first_highest,
    grouped,
    highest,
    largest_groups,
    longest_of,
    median,
    nth,
    numbered,
    picked,
    places_in,
    sums,
    with_below,
    within,
)

wide = st.integers(-(2**63), 2**63 - 1)
narrow = st.integers(-3, 40)


@given(st.lists(narrow | wide, max_size=200))
def test_groups_are_those_that_sorting_finds(made):
    values = np.array(made, np.int64)
    found, place = grouped(values)
    expected, inverse = np.unique(values, return_inverse=True)
    assert found.tolist() == expected.tolist()
    assert place.tolist() == inverse.reshape(-1).tolist()


def test_many_distinct_values_far_apart_are_sorted():
    values = np.arange(500)[::-1] * 2**50
    found, place = grouped(values)
    assert (found[place] == values).all()
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("num", [1, 5, 64, 65])
def test_few_values_are_found_in_long_columns_wherever_they_begin(num):
    at = np.arange(150_000) % num
    at[: 2**16] = 0  # the others come in later pieces alone
    values = np.random.default_rng(num).permutation(num)[at] * 2**45 - 2**44
    found, place = grouped(values)
    assert found.tolist() == np.unique(values).tolist()
    assert (found[place] == values).all()


small = st.lists(st.integers(-3, 3), max_size=40)
pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_each_number_comes_once_and_in_order(values):
    column = np.array(values, np.int64)
    assert distinct(column).tolist() == sorted(set(values))
    assert distinct(column).dtype == column.dtype


@given(st.lists(st.tuples(narrow | wide, narrow, st.booleans())))
def test_rows_are_numbered_in_the_order_of_their_columns(rows):
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.array([])]
    first, number = numbered(*columns)
    ordered = sorted(set(rows))
    assert [ordered[one] for one in number.tolist()] == rows
    assert first.tolist() == [rows.index(one) for one in ordered]


@given(pairs)
def test_sums_and_highest_values_by_group(rows):
    group, values = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    of = {one: [v for g, v in rows if g == one] for one in range(4)}
    assert sums(group, values, 4).tolist() == [sum(of[one]) for one in range(4)]
    assert highest(group, values, 4).tolist() == [
        max(of[g], default=0) for g in range(4)
    ]
    known, total, place = largest_groups(group, values, 2)
    expected = sorted(set(group.tolist()), key=lambda one: (-sum(of[one]), one))
    assert known.tolist() == expected[:2]
    assert total.tolist() == [sum(of[one]) for one in expected[:2]]
    assert [expected[one] for one in place.tolist()] == group.tolist()
    dense = grouped(group)[1]
    for at, place in enumerate(longest_of(dense, values, len(expected)).tolist()):
        own = [row for row, one in enumerate(dense.tolist()) if one == at]
        assert place == max(own, key=lambda row: (values[row], -row))


@given(st.lists(st.lists(st.integers(0, 4), min_size=1), min_size=1))
def test_the_first_highest_of_each_stretch(stretches):
    values = np.concatenate(stretches)
    starts = np.cumsum([0, *map(len, stretches[:-1])])
    found = [
        start + np.argmax(one) for start, one in zip(starts, stretches, strict=True)
    ]
    assert first_highest(values, starts).tolist() == found


@given(small)
def test_rows_are_counted_within_their_key(values):
    expected = [values[:at].count(one) for at, one in enumerate(values)]
    assert nth(np.array(values, np.int64)).tolist() == expected
    counts = np.abs(np.array(values, np.int64))
    assert within(counts).tolist() == [at for n in counts.tolist() for at in range(n)]


@given(small, small)
def test_numbers_are_found_in_an_ascending_column_or_not(known, wanted):
    column = np.sort(np.array(known, np.int64))
    places = places_in(column, np.array(wanted, np.int64))
    for place, one in zip(places.tolist(), wanted, strict=True):
        assert (place == NOTHING) == (one not in known)
        assert place == NOTHING or place == column.tolist().index(one)
    assert picked(column, places, 7).tolist() == [
        one if one in known else 7 for one in wanted
    ]


@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.int32, np.float64])
def test_where_no_row_is_nothing_is_picked(kind):
    found = picked(np.array([5, 6], kind), np.array([1, NOTHING]))
    assert found.tolist() == [6, NOTHING]


@given(st.lists(st.tuples(*(st.integers(0, 5),) * 3, st.integers(0, 1))))
def test_what_comes_and_goes_by_column(rows):
    size = np.array([one[2] for one in rows], np.int64)
    first = np.array([min(one[:2]) for one in rows], np.int64)
    end = np.array([max(one[:2]) for one in rows], np.int64)
    row = np.array([one[3] for one in rows], np.uint16)
    held = np.cumsum(changes(first, end, size, 5, row, 2), axis=1)
    for at in range(2):
        for column in range(5):
            inside = (row == at) & (first <= column) & (end > column)
            assert held[at, column] == size[inside].sum()


@dataclass(frozen=True, slots=True)
class _Table(Table):
    one: np.ndarray
    two: np.ndarray
    """(2, rows)."""
    words: tuple[str, ...]


def test_tables_give_some_of_their_rows_and_are_put_together():
    table = _Table(np.array([1, 2, 3]), np.array([[1, 2, 3], [4, 5, 6]]), ("a",))
    some = table.take(np.array([2, 0]))
    assert len(some) == 2
    assert (some.one.tolist(), some.two.tolist()) == ([3, 1], [[3, 1], [6, 4]])
    assert table.take(slice(1), one=np.array([9])).one.tolist() == [9]
    assert some.words == table.words
    both = _Table.joined([table, table])
    assert both.one.tolist() == [1, 2, 3, 1, 2, 3]
    assert both.two.tolist() == [[1, 2, 3] * 2, [4, 5, 6] * 2]
    assert constant(-1, 3).tolist() == [-1, -1, -1]


@given(st.lists(st.tuples(st.integers(-1, 8), st.integers(0, 99)), max_size=10))
def test_a_row_of_a_tree_holds_what_is_below_it(rows):
    parent = np.array([min(up, at - 1) for at, (up, _) in enumerate(rows)], np.int64)
    values = np.array([value for _, value in rows], np.int64)
    expected = values.tolist()
    for at in range(len(rows) - 1, -1, -1):
        if parent[at] >= 0:
            expected[parent[at]] += expected[at]
    assert with_below(parent, values).tolist() == expected
    both = with_below(parent, np.stack([values, 2 * values]))
    assert both.tolist() == [expected, [2 * one for one in expected]]
    assert with_below(parent, np.empty((0, len(rows)))).shape == (0, len(rows))


@given(
    st.one_of(
        st.lists(st.integers(-(2**40), 2**40), max_size=20),
        st.lists(st.floats(allow_infinity=False), max_size=20),
    )
)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_a_median_is_numpys(values):
    found = median(values)
    with np.errstate(all="ignore"):
        expected = float(np.median(np.array(values, np.float64)))
    assert found == expected or (np.isnan(found) and np.isnan(expected))
    assert type(found) is float
