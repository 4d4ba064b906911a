"""Reserved bytes over time, by pool and by stream, and which span each life was in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator import segment_spans as cutting
from memboard.tb_plugin.analysis.allocator.live import live_rows, live_totals
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.allocator.segment_spans import (
    SpanIndex,
    reserved,
    segment_spans,
)
from memboard.tb_plugin.analysis.arrays import NOTHING
from tests.tb_plugin.analysis.snapshots import (
    INCONSISTENT,
    Modelled,
    models,
    real,
    real_devices,
    replay_of,
)


@given(models)
def test_pools_and_streams_add_up_to_the_whole(model):
    replay = replay_of(model)
    whole = np.concatenate(
        [[replay.reserved.levels.first], replay.reserved.levels.after]
    )
    streams = replay.reserved_by_stream()
    total = np.zeros(len(whole), np.int64)
    for row in range(len(model.snapshot.streams)):
        at, after = streams.levels(row)
        curve = np.concatenate([[streams.first[row]], np.zeros(replay.num_events)])
        curve[at + 1] = np.diff(after, prepend=streams.first[row])
        curve = np.cumsum(curve)
        assert (curve >= 0).all()
        total += curve.astype(np.int64)
    assert (total == whole).all()
    pools = replay.reserved_by_pool()
    for moment in range(replay.num_events):
        state = replay.at(moment)
        for row in range(len(model.snapshot.pools)):
            at, after = pools.levels(row)
            upto = int(np.searchsorted(at, moment, "right"))
            level = int(after[upto - 1]) if upto else int(pools.first[row])
            own = state.segments.pool == row
            assert level == int(state.segments.total_size[own].sum())


@given(models)
def test_every_life_knows_its_span_stream_and_pool(model):
    replay = replay_of(model)
    lives, spans, events = replay.lives, replay.spans, replay.device.events
    for row in range(len(lives)):
        span = replay.span[row]
        assert span != NOTHING
        assert spans.opened[span] <= lives.born[row] < spans.closed[span]
        start = spans.address[span]
        assert start <= lives.addr[row] < start + spans.size[span]
        assert replay.stream[row] == spans.stream[span]
        if lives.born[row] >= 0 and events.pool[lives.born[row]] >= 0:
            assert replay.pool[row] == events.pool[lives.born[row]]
        assert replay.pool[row] in (NOTHING, *range(len(model.snapshot.pools)))


@given(models, st.data())
def test_an_address_is_in_the_span_that_was_there(model, data):
    num = len(model.device.events)
    spans = segment_spans(model.device)
    index = SpanIndex(spans, num)
    assert index.is_complete
    address = data.draw(st.sampled_from(spans.address.tolist() or [512]))
    address += data.draw(st.integers(-600, 1 << 24))
    moments = np.arange(-1, num)
    found = index.rows(np.full(len(moments), address), moments)
    for moment, row in zip(moments.tolist(), found.tolist(), strict=True):
        expected = [
            r
            for r in spans.at(moment).tolist()
            if spans.address[r] <= address < spans.address[r] + spans.size[r]
        ]
        assert ([] if row == NOTHING else [row]) == expected


def test_maps_too_many_to_follow_leave_the_end_as_it_is(monkeypatch):
    made = [("allocate", 30 << 20, 0), ("free", 0, 0), ("empty_cache", 0, 0)]
    made += [("allocate", 60 << 20, 0)]
    model = Modelled(made, "expandable_segments:True")
    monkeypatch.setattr(cutting, "MAX_PIECES", 2)
    spans = segment_spans(model.device)
    assert spans.num_lost > 0
    last = len(model.device.events) - 1
    assert int(spans.size[spans.at(last)].sum()) == model.device.reserved_bytes
    index = SpanIndex(spans, last + 1)
    assert index.rows(spans.address, np.full(len(spans), last)).tolist() == [0]


def test_more_given_back_than_there_was_is_counted():
    model = Modelled([("allocate", 3 << 20, 0), ("free", 0, 0), ("empty_cache", 0, 0)])
    events = model.device.events
    grown = np.where(events.action == cutting.SEGMENT_ALLOC, 1, events.size)
    events.size[:] = grown
    found = reserved(model.device)
    assert found.num_below_zero == 0  # then it was there before
    events.size[:] = np.where(events.action == cutting.SEGMENT_FREE, 0, 1 << 40)
    assert reserved(model.device).num_below_zero == 1


@pytest.mark.parametrize(("name", "place", "figures"), real_devices())
def test_recorded_devices_never_held_less_than_what_lived(name, place, figures):
    replay = Replay(real(name), real(name).device(place))
    levels = replay.reserved.levels
    assert replay.reserved.num_below_zero == 0
    assert levels.peak[0] >= figures["reserved_bytes"]
    if name not in INCONSISTENT:
        for moment in np.linspace(-1, replay.num_events - 1, 50).astype(int).tolist():
            rows = live_rows(replay.lives, moment)
            level = levels.after[moment] if moment >= 0 else levels.first
            totals = live_totals(replay.lives, rows, moment)
            assert totals.active_bytes <= level
    assert real(name).device(99) is None
