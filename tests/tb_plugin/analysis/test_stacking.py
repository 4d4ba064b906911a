"""The picture of live allocations, against one that is drawn the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_plugin.analysis import stacking
from tb_plugin.analysis.lifetimes import Lifetimes
from tb_plugin.analysis.stacking import columns, stacked


def lives_of(rows: list[tuple[int, int, int]]) -> Lifetimes:
    """Born, gone and size of each, in order of birth."""
    born, gone, size = (
        np.array([row[at] for row in rows], np.int64) for at in range(3)
    )
    return Lifetimes(
        addr=np.arange(len(rows)),
        size=size,
        stack=np.full(len(rows), -1),
        born=born,
        freed=gone,
        gone=gone,
        num_lost=0,
    )


NUM_EVENTS = 40
rows = st.lists(
    st.tuples(
        st.integers(-1, NUM_EVENTS - 2), st.integers(1, NUM_EVENTS), st.integers(1, 50)
    ),
    max_size=30,
).map(lambda made: sorted((b, max(g, b + 1), s) for b, g, s in made))


def slow_levels(lives: Lifetimes) -> np.ndarray:
    return np.array(
        [
            lives.size[(lives.born <= e) & (lives.gone > e)].sum()
            for e in range(NUM_EVENTS)
        ],
        np.int64,
    )


@settings(max_examples=200, deadline=None)
@given(rows, st.integers(1, 60), st.integers(0, NUM_EVENTS), st.integers(0, NUM_EVENTS))
def test_a_column_stands_for_the_highest_event_in_it(made, width, one, other):
    after = slow_levels(lives_of(made))
    start, stop = sorted((one, other))
    found = columns(after, start, stop, width)
    ends = [*found.start[1:].tolist(), stop][: len(found.start)]
    assert len(found.at) == min(width, stop - start)
    for at, low, high in zip(found.at, found.start, ends, strict=True):
        assert low <= at < high
        assert after[at] == after[low:high].max()
        assert (after[low:at] < after[at]).all()
    if stop > start:
        assert after[found.at].max() == after[start:stop].max()


@settings(max_examples=200, deadline=None)
@given(rows, st.integers(1, 3), st.integers(0, 30), st.data())
def test_every_run_lies_where_it_lies_when_drawn_one_by_one(made, groups, least, data):
    lives = lives_of(made)
    group = np.array([data.draw(st.integers(0, groups - 1)) for _ in made], np.int64)
    after = slow_levels(lives)
    at = columns(after, 0, NUM_EVENTS, 13).at
    found = stacked(lives, group, groups, at, least)
    drawn: dict[tuple[int, int], int] = {}
    for life, first, last, offset in zip(
        found.life, found.first, found.last, found.offset, strict=True
    ):
        for column in range(first, last + 1):
            assert (int(life), column) not in drawn
            drawn[int(life), column] = int(offset)
    expected: dict[tuple[int, int], int] = {}
    for column, event in enumerate(at):
        height = 0
        for number in range(groups):
            alive = [
                row
                for row in range(len(made))
                if lives.born[row] <= event < lives.gone[row] and group[row] == number
            ]
            for row in alive:
                if lives.size[row] >= least:
                    expected[row, column] = height
                    height += int(lives.size[row])
            rest = sum(int(lives.size[row]) for row in alive if lives.size[row] < least)
            assert found.rest[number, column] == rest
            height += rest
        assert found.total[column] == height == after[event]
    assert drawn == expected


def test_neighbouring_columns_at_one_height_are_one_run():
    lives = lives_of([(-1, 9, 5), (2, 5, 3), (3, 9, 7)])
    found = stacked(lives, np.zeros(3, np.int64), 1, np.arange(9), 1)
    runs = list(zip(found.life, found.first, found.last, found.offset, strict=True))
    assert runs == [(0, 0, 8, 0), (1, 2, 4, 5), (2, 3, 4, 8), (2, 5, 8, 5)]


def test_too_many_to_lay_out_are_summed_up_and_the_least_size_says_so(monkeypatch):
    monkeypatch.setattr(stacking, "MAX_PAIRS", 20)
    lives = lives_of([(-1, 10, size) for size in range(1, 11)])
    found = stacked(lives, np.zeros(10, np.int64), 1, np.arange(10), 0)
    assert found.min_bytes > 8
    assert set(lives.size[found.life]) == {
        s for s in range(1, 11) if s >= found.min_bytes
    }
    assert found.total.tolist() == [55] * 10
    assert (
        found.rest[0].tolist()
        == [sum(s for s in range(1, 11) if s < found.min_bytes)] * 10
    )


@pytest.mark.parametrize("num_groups", [1, 4])
def test_nothing_alive_is_an_empty_picture(num_groups):
    empty = np.empty(0, np.int64)
    for at in (empty, np.arange(3)):
        found = stacked(lives_of([]), empty, num_groups, at, 1)
        assert len(found.life) == 0
        assert found.rest.shape == (num_groups, len(at))
        assert found.total.tolist() == [0] * len(at)
