"""Segments and blocks at any moment, against what the allocator model really held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS, lifetimes
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.allocator.rounding import (
    block_sizes,
    rests,
    rounding_of,
)
from memboard.tb_plugin.analysis.allocator.segment_spans import reserved, segment_spans
from memboard.tb_plugin.analysis.allocator.segments import SegmentReplay
from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.snapshots.snapshot import STATES
from tests.tb_plugin.analysis.snapshots import (
    EXPECTED,
    INCONSISTENT,
    Modelled,
    models,
    real,
    real_devices,
    state_rows,
)


def replay_of(snapshot, device) -> SegmentReplay:
    return Replay(snapshot, device).segments


@given(models)
def test_a_moment_is_what_the_model_held(model):
    replay = replay_of(model.snapshot, model.device)
    known = model.torch != "2.1"  # else settings that change sizes are not recorded
    if ACTIONS.index("free_requested") not in model.device.events.action:
        return  # what was requested before the ring cannot be known of
    for moment, truth in model.states.items():
        state = replay.at(moment)
        segments, blocks = state_rows(state)
        assert segments == truth[0]
        assumed = state.oddities.get(
            "remainders of unknown blocks from before the recording"
        )
        if assumed is None and (
            known or model.text in ("", "expandable_segments:True")
        ):
            assert blocks == truth[1]
            assert not state.oddities
        else:
            # What is missing is at most the rest behind such a block.
            starts = {row[0] for row in truth[1] if row[2]}
            assert {row[0] for row in blocks if row[2]} == starts


@given(models)
def test_blocks_fill_their_segments_at_every_moment(model):
    replay = replay_of(model.snapshot, model.device)
    levels = reserved(model.device).levels
    for moment in range(-1, len(model.device.events)):
        state = replay.at(moment)
        assert "live blocks in no segment" not in state.oddities
        check(state)
        expected = levels.after[moment] if moment >= 0 else levels.first
        assert state.reserved_bytes == expected


@given(models)
def test_levels_are_the_sums_of_the_blocks_of_every_moment(model):
    replay = Replay(model.snapshot, model.device)
    for moment in range(-1, len(model.device.events)):
        assert_levels(replay, moment)


def assert_levels(replay: Replay, moment: int) -> None:
    """Lines, ledger and segments count each block with the same bytes."""
    segments = replay.at(moment).segments
    allocated = int(segments.allocated_size.sum())
    active = allocated + int(segments.pending_size.sum())
    at = np.array([moment])
    assert (int(replay.active.at(at)[0]), int(replay.allocated.at(at)[0])) == (
        active,
        allocated,
    )


def check(state) -> None:
    """What holds of any state, whatever the events said."""
    segments, blocks = state.segments, state.blocks
    ends = segments.address + segments.total_size
    assert (segments.address[1:] >= ends[:-1]).all()
    assert (blocks.size > 0).all()
    for row in range(len(segments)):
        own = np.flatnonzero(blocks.segment == row)
        assert own[0] == segments.first_block[row]
        behind = blocks.address[own] + blocks.size[own]
        assert blocks.address[own[0]] == segments.address[row]
        assert (blocks.address[own][1:] == behind[:-1]).all()
        assert behind[-1] == ends[row]
        free = blocks.state[own] == STATES.index("inactive")
        assert not (free[1:] & free[:-1]).any(), "free neighbours"
        assert segments.num_active[row] == np.count_nonzero(~free)
        assert segments.largest_free[row] == max(blocks.size[own][free], default=0)
    sums = segments.allocated_size + segments.pending_size + segments.free_size
    assert (sums == segments.total_size).all()
    assert state.reserved_bytes == int(blocks.size.sum())
    assert state.reserved_bytes == (
        state.segments.allocated_size.sum()
        + state.segments.pending_size.sum()
        + state.segments.free_size.sum()
    )
    assert ((blocks.life == NOTHING) == (blocks.state == 0)).all()


@pytest.mark.parametrize(("name", "place", "figures"), real_devices())
def test_the_last_moment_of_a_recorded_snapshot_is_its_end(name, place, figures):
    snapshot = real(name)
    device = snapshot.device(place)
    replay = replay_of(snapshot, device)
    state = replay.at(len(device.events) - 1)
    if name in INCONSISTENT:
        check(state)
        return
    assert not state.oddities
    assert_is_end(state, device)
    # And not because the end was looked up: its sizes follow from the events as well.
    lives = lifetimes(device.history(), device.active_blocks())
    without_blocks = replace(device, blocks=device.blocks.take(slice(0)))
    rounding = rounding_of(snapshot.settings)
    spans = segment_spans(device)
    rest = rests(device, lives, spans, rounding).of(np.arange(len(lives)))
    sizes = block_sizes(without_blocks, lives, rounding, rest)
    derived = SegmentReplay(lives, spans, sizes).at(len(device.events) - 1)
    assert_is_end(derived, device)
    assert len(derived.segments) == figures["num_segments"]
    assert len(derived.blocks) == figures["num_blocks"]
    assert derived.reserved_bytes == figures["reserved_bytes"]
    assert derived.segments.allocated_size.sum() == figures["allocated_bytes"]
    assert derived.segments.free_size.sum() == figures["inactive_bytes"]
    largest = int(derived.segments.largest_free.max(initial=0))
    assert largest == figures["largest_inactive_block_bytes"]
    assert int(state.segments.requested_size.sum()) == figures["requested_bytes_active"]


def assert_is_end(state, device) -> None:
    for name in ("address", "total_size", "stream", "pool", "is_large"):
        found = getattr(state.segments, name)
        assert found.tolist() == getattr(device.segments, name).tolist()
    for name in ("address", "size", "state", "segment"):
        found = getattr(state.blocks, name)
        assert found.tolist() == getattr(device.blocks, name).tolist()


@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if name not in INCONSISTENT]
)
def test_recorded_snapshots_fit_together_at_every_moment(name):
    snapshot = real(name)
    for device in snapshot.devices:
        whole = Replay(snapshot, device)
        replay, levels = whole.segments, whole.reserved.levels
        for moment in np.linspace(-1, len(device.events) - 1, 60).astype(int).tolist():
            state = replay.at(moment)
            check(state)
            assert not set(state.oddities) - {
                "remainders of unknown blocks from before the recording"
            }
            expected = levels.after[moment] if moment >= 0 else levels.first
            assert state.reserved_bytes == expected
            assert_levels(whole, moment)


@given(st.integers(0, 2**32), st.sampled_from([True, False]))
def test_events_that_contradict_themselves_are_drawn_without_overlap(seed, wild):
    random = np.random.default_rng(seed)
    model = Modelled([("allocate", 3 << 20, 0), ("free", 0, 0)] * 8)
    device = model.device
    num = len(device.events)
    columns = {
        "action": random.integers(-1, len(ACTIONS), num),
        "addr": random.choice(device.events.addr, num)
        + (random.integers(-(2**62), 2**62, num) if wild else 512),
        "size": random.integers(0, 1 << (47 if wild else 26), num),
    }
    for name, column in columns.items():
        getattr(device.events, name)[:] = column
    replay = replay_of(model.snapshot, device)
    for moment in range(-1, num):
        check(replay.at(moment))
