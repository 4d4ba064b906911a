"""Tiles of traces: nothing is lost, and nothing depends on where one looks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.trace.timeline import tiles as trace_tiles
from memboard.tb_plugin.analysis.trace.timeline.tiles import Lane, TraceTiles, zoom_of
from tests.traces_builder import trace_of

slices = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(-50, 3000),
        st.one_of(st.integers(0, 5), st.integers(0, 400)),
        st.sampled_from(["a", "b", "c"]),
    ),
    min_size=1,
    max_size=120,
)


def lanes(trace):
    return [
        Lane(index, level)
        for index, track in enumerate(trace.tracks)
        for level in range(track.num_levels)
        if track.num_slices
    ]


def tile(trace, zoom, start=None, end=None, **options):
    start = trace.start_ns if start is None else start
    end = trace.end_ns + 1 if end is None else end
    return TraceTiles(trace).tile(lanes(trace), start, end, zoom, **options)


def described(found):
    """The pieces, so that two tiles can be compared."""
    pieces = found.pieces
    columns = [getattr(pieces, name) for name in pieces.__slots__]
    return {
        (int(lane), *(int(column[at]) for column in columns))
        for lane in range(len(found.lane_start) - 1)
        for at in range(found.lane_start[lane], found.lane_start[lane + 1])
    }


@given(slices, st.integers(0, 14))
def test_no_slice_and_no_busy_time_is_lost_at_any_zoom(made, zoom):
    trace = trace_of(made, num_tracks=3)
    found = tile(trace, zoom)
    assert found.pieces.count.sum() == len(made)
    assert found.pieces.busy_ns.sum() == sum(length for _, _, length, _ in made)
    # Lane by lane too.
    for at, lane in enumerate(lanes(trace)):
        rows = trace.tracks[lane.track].level_rows
        own = slice(found.lane_start[at], found.lane_start[at + 1])
        assert found.pieces.count[own].sum() == rows[lane.level + 1] - rows[lane.level]
        assert (np.diff(found.pieces.start_ns[own]) >= 0).all()


@given(slices, st.integers(0, 10))
def test_slices_of_a_pixel_stand_by_themselves_and_blocks_hold_only_shorter(made, zoom):
    trace = trace_of(made, num_tracks=3)
    found = tile(trace, zoom)
    alone = set(found.pieces.longest[found.pieces.count == 1].tolist())
    length = trace.slices.duration_ns
    assert {row for row in range(len(length)) if length[row] >= 1 << zoom} <= alone
    blocks = found.pieces.count > 1
    assert (length[found.pieces.longest[blocks]] < 1 << zoom).all()
    assert (found.pieces.busy_ns <= found.pieces.end_ns - found.pieces.start_ns).all()


@given(slices, st.integers(0, 8), st.integers(-100, 3000), st.integers(1, 900))
def test_a_window_shows_what_all_of_the_trace_shows_there(made, zoom, start, width):
    trace = trace_of(made, num_tracks=3)
    end = start + width
    inside = {
        piece
        for piece in described(tile(trace, zoom))
        if piece[3] >= start and piece[2] < end
    }
    assert described(tile(trace, zoom, start, end)) == inside


@given(slices, st.integers(2, 10))
def test_zooms_kept_of_the_whole_trace_change_nothing(made, zoom):
    trace = trace_of(made, num_tracks=3)
    before = trace_tiles._MANY_ROWS
    plain = described(tile(trace, zoom))
    part = described(tile(trace, zoom, 500, 900))
    try:
        trace_tiles._MANY_ROWS = 0
        tiles = TraceTiles(trace)
        every = lanes(trace)
        for first in (2, zoom):  # the second is made of the first
            tiles.tile(every, trace.start_ns, trace.end_ns + 1, first)
        found = tiles.tile(every, trace.start_ns, trace.end_ns + 1, zoom)
        seen = tiles.tile(every, 500, 900, zoom)
    finally:
        trace_tiles._MANY_ROWS = before
    assert described(found) == plain
    assert described(seen) == part


def test_the_longest_stands_for_a_block():
    trace = trace_of([(0, 0, 3, "a"), (0, 4, 7, "b"), (0, 12, 7, "c"), (0, 20, 1, "d")])
    found = tile(trace, 3)
    assert found.pieces.count.tolist() == [4]
    assert trace.name_of(int(found.pieces.longest[0])) == "b"
    assert found.pieces.busy_ns.tolist() == [18]


def test_too_many_pieces_take_a_coarser_zoom():
    made = [(0, at * 64, 20, "a") for at in range(5000)]
    trace = trace_of(made)
    fine = tile(trace, 4)
    assert len(fine.pieces) == 5000
    coarse = tile(trace, 4, most=300)
    assert len(coarse.pieces) <= 300
    assert coarse.zoom > 4
    assert coarse.pieces.count.sum() == 5000


@pytest.mark.parametrize(
    ("span", "px", "zoom"),
    [(1000, 1000, 0), (1, 4000, 0), (4096, 1, 12), (1500, 1000, 0), (2000, 1000, 1)],
)
def test_a_piece_of_its_own_takes_between_half_a_pixel_and_one(span, px, zoom):
    assert zoom_of(span, px) == zoom
    assert zoom == 0 or 0.5 <= (1 << zoom) / (span / px) <= 1
