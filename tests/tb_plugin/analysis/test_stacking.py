"""The picture of live allocations, against one that is drawn the slow way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator import stacking
from memboard.tb_plugin.analysis.allocator.stacking import (
    columns,
    seen,
    stacked,
    time_columns,
)
from tests.tb_plugin.analysis.snapshots import lives_of

NUM_EVENTS = 40
rows = st.lists(
    st.tuples(
        st.integers(-1, NUM_EVENTS - 2), st.integers(1, NUM_EVENTS), st.integers(1, 50)
    ),
    max_size=30,
).map(lambda made: sorted((b, max(g, b + 1), s) for b, g, s in made))


def slow_levels(lives) -> np.ndarray:
    return np.array(
        [
            lives.size[(lives.born <= e) & (lives.gone > e)].sum()
            for e in range(NUM_EVENTS)
        ],
        np.int64,
    )


def check_columns(after, found, stop: int) -> None:
    ends = [*found.start[1:].tolist(), stop][: len(found)]
    for at, low, high in zip(found.at, found.start, ends, strict=True):
        if low == high:  # nothing inside: the state goes on
            assert at == low - 1
            continue
        assert low <= at < high
        assert after[at] == after[low:high].max()
        assert (after[low:at] < after[at]).all()


@given(rows, st.integers(1, 60), st.integers(0, NUM_EVENTS), st.integers(0, NUM_EVENTS))
def test_a_column_stands_for_the_highest_event_in_it(made, width, one, other):
    after = slow_levels(lives_of(made))
    start, stop = sorted((one, other))
    found = columns(after, start, stop, width)
    if stop == start:
        assert found.at.tolist() == [start - 1]
        return
    assert len(found) == min(width, stop - start)
    assert found.edge.tolist() == [*found.start.tolist(), stop]
    check_columns(after, found, stop)
    assert after[found.at].max() == after[start:stop].max()


@given(
    rows,
    st.lists(st.integers(0, 90), min_size=NUM_EVENTS, max_size=NUM_EVENTS).map(sorted),
    st.integers(1, 60),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_columns_of_time_hold_the_events_of_their_time(made, times, width, one, other):
    after = slow_levels(lives_of(made))
    time_us = np.array(times)
    begin, end = sorted((one, other))
    found = time_columns(after, time_us, begin, end, width)
    assert len(found) == width
    assert found.edge[0] == begin
    assert found.edge[-1] == end
    inside = np.flatnonzero((time_us >= begin) & (time_us <= end))
    stop = int(np.searchsorted(time_us, end, "right"))
    check_columns(after, found, stop)
    shown = found.at[found.at >= found.start]
    if len(inside):
        assert after[inside].max() == after[shown].max()
    for at, left, right in zip(found.at, found.edge, found.edge[1:], strict=False):
        if at >= 0:
            assert time_us[at] <= right
            assert (
                time_us[at] >= left or not ((time_us >= left) & (time_us < right)).any()
            )


def test_without_events_one_column_shows_what_was_there_all_the_time():
    found = columns(np.empty(0, np.int64), 0, 100, 1200)
    assert found.at.tolist() == [-1]
    assert found.edge.tolist() == [0, 1]
    lives = lives_of([(-1, 1, 5), (-1, 1, 7)])
    picture = stacked(lives, np.array([1, 0]), 2, found.at, 1)
    assert picture.life.tolist() == [1, 0]
    assert picture.offset.tolist() == [0, 0]
    assert picture.band_bytes.tolist() == [[7], [5]]


def drawn_slowly(lives, band, num_bands, at, least):
    """Lower edge in all, by allocation and column; rests and totals by band and column."""
    heights: dict[tuple[int, int], int] = {}
    rest = np.zeros((num_bands, len(at)), np.int64)
    total = np.zeros((num_bands, len(at)), np.int64)
    for column, event in enumerate(at):
        height = 0
        for number in range(num_bands):
            alive = [
                row
                for row in range(len(lives))
                if lives.born[row] <= event < lives.gone[row] and band[row] == number
            ]
            for row in alive:
                if lives.size[row] >= least:
                    heights[row, column] = height
                    height += int(lives.size[row])
                else:
                    rest[number, column] += lives.size[row]
                total[number, column] += lives.size[row]
            height += int(rest[number, column])
    return heights, rest, total


def heights_of(found, band):
    """The same of a picture, whose runs must not meet."""
    base = np.cumsum(found.band_bytes, axis=0) - found.band_bytes
    heights: dict[tuple[int, int], int] = {}
    for life, first, last, offset in zip(
        found.life, found.first, found.last, found.offset, strict=True
    ):
        for column in range(first, last + 1):
            assert (int(life), column) not in heights
            heights[int(life), column] = int(offset + base[band[life], column])
    return heights


@given(rows, st.integers(1, 3), st.integers(0, 30), st.data())
def test_every_run_lies_where_it_lies_when_drawn_one_by_one(made, bands, least, data):
    lives = lives_of(made)
    band = np.array([data.draw(st.integers(-1, bands - 1)) for _ in made], np.int64)
    after = slow_levels(lives)
    at = columns(after, 0, NUM_EVENTS, 13).at
    found = stacked(lives, band, bands, at, least)
    heights, rest, total = drawn_slowly(lives, band, bands, at, least)
    assert heights_of(found, band) == heights
    assert (found.rest == rest).all()
    assert (found.band_bytes == total).all()
    assert (found.total == total.sum(axis=0)).all()
    assert found.min_bytes == least


@given(rows, st.integers(0, 200), st.integers(1, 200), st.data())
def test_zoomed_in_upwards_only_what_is_seen_is_there(made, bottom, height, data):
    lives = lives_of(made)
    band = np.array([data.draw(st.integers(0, 1)) for _ in made], np.int64)
    at = columns(slow_levels(lives), 0, NUM_EVENTS, 13).at
    whole = stacked(lives, band, 2, at, 3)
    found = stacked(lives, band, 2, at, 3, bottom=bottom, top=bottom + height)
    assert heights_of(found, band) == {
        (life, column): lower
        for (life, column), lower in heights_of(whole, band).items()
        if lower < bottom + height and lower + lives.size[life] > bottom
    }
    assert (found.band_bytes == whole.band_bytes).all()


def test_neighbouring_columns_at_one_height_are_one_run():
    lives = lives_of([(-1, 9, 5), (2, 5, 3), (3, 9, 7)])
    found = stacked(lives, np.zeros(3, np.int64), 1, np.arange(9), 1)
    runs = list(zip(found.life, found.first, found.last, found.offset, strict=True))
    assert runs == [(0, 0, 8, 0), (1, 2, 4, 5), (2, 3, 4, 8), (2, 5, 8, 5)]


def test_a_run_goes_on_where_another_band_grows():
    lives = lives_of([(-1, 9, 5), (2, 5, 3)])
    found = stacked(lives, np.array([1, 0]), 2, np.arange(9), 1)
    runs = list(zip(found.life, found.first, found.last, found.offset, strict=True))
    assert runs == [(1, 2, 4, 0), (0, 0, 8, 0)]


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


@pytest.mark.parametrize("num_bands", [1, 4])
def test_nothing_alive_is_an_empty_picture(num_bands):
    empty = np.empty(0, np.int64)
    found = stacked(lives_of([]), empty, num_bands, np.arange(3), 1)
    assert len(found.life) == 0
    assert found.rest.shape == found.band_bytes.shape == (num_bands, 3)
    assert found.total.tolist() == [0] * 3


@given(rows, st.lists(st.integers(-1, NUM_EVENTS - 1), max_size=12).map(sorted))
def test_seen_is_what_lives_at_a_column(made, at):
    found = seen(lives_of(made), np.array(at, np.int64))
    expected = []
    for row, (born, gone, _) in enumerate(made):
        inside = [column for column, event in enumerate(at) if born <= event < gone]
        if inside:
            expected.append((row, inside[0], inside[-1] + 1))
    columns = (found.rows.tolist(), found.first.tolist(), found.end.tolist())
    assert list(zip(*columns, strict=True)) == expected
