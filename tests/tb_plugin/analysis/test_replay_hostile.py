"""Histories that contradict themselves: every analysis still says something that adds up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS
from memboard.tb_plugin.analysis.allocator.live import (
    by_stack,
    holders,
    live_rows,
    live_totals,
    range_sums,
)
from memboard.tb_plugin.analysis.allocator.moment.arenas import arenas, free_sizes
from memboard.tb_plugin.analysis.allocator.moment.fit import fit
from memboard.tb_plugin.analysis.allocator.moment.ledger import RESERVED_KEYS, ledger
from memboard.tb_plugin.analysis.allocator.moment.pins import pins
from memboard.tb_plugin.analysis.categories.attribution import attribution
from memboard.tb_plugin.analysis.snapshots.steps import spans_of, steps_of
from tests.tb_plugin.analysis.snapshots import (
    SETTINGS,
    Modelled,
    held_at,
    operations,
    replay_of,
    unknown_share,
)


@given(
    st.integers(0, 2**32),
    st.sampled_from(SETTINGS),
    st.sampled_from(["shuffled", "lost", "wild"]),
)
def test_every_analysis_of_a_broken_history_adds_up(seed, text, how):
    model = Modelled(operations(seed, 60), text)
    if model.device is None:
        return
    random = np.random.default_rng(seed)
    events = model.device.events
    num = len(events)
    if how == "shuffled":
        order = random.permutation(num)
        for name in ("action", "addr", "size"):
            getattr(events, name)[:] = getattr(events, name)[order]
    elif how == "lost":
        events.action[random.random(num) < 0.3] = -1
    else:
        events.action[:] = random.integers(-1, len(ACTIONS), num)
        events.addr[:] = random.integers(-(2**62), 2**62, num)
        events.size[:] = random.integers(0, 1 << 47, num)
        if events.time_us is not None:
            events.time_us[:] = random.integers(0, 1 << 62, num)
    replay = replay_of(model)
    lives = replay.lives
    found = attribution(replay)
    stack = lives.stack + 1
    num_stacks = len(model.snapshot.stacks) + 1
    at = np.arange(0, num, 3)
    held = holders(lives, stack, num_stacks, at, 3)
    for column, event in enumerate(at.tolist()):
        rows = live_rows(lives, event)
        assert int(held_at(held, column).sum()) == int(lives.size[rows].sum())
    for moment in {-1, 0, num // 2, num - 1}:
        state = replay.at(moment)
        told = ledger(replay, moment)
        parts = [one.bytes for one in told.entries if one.key in RESERVED_KEYS]
        assert sum(parts) == state.reserved_bytes
        assert int(arenas(state).free_bytes.sum()) == state.segments.free_size.sum()
        histogram = free_sizes(state)
        whole = histogram.split_bytes.sum() + histogram.whole_bytes.sum()
        assert int(whole) == state.segments.free_size.sum()
        pins(state, lives.stack, 9)
        assert (
            fit(state, replay.rounding, 1 << 20).free <= state.segments.free_size.sum()
        )
        rows = live_rows(lives, moment)
        assert 0 <= unknown_share(found, replay, rows) <= 1
        totals = live_totals(lives, rows, moment)
        assert int(by_stack(lives, rows).num_bytes.sum()) == totals.active_bytes
    sums = range_sums(lives, 0, num - 1, stack, num_stacks)
    parts = sums.freed.num_bytes + sums.live.num_bytes
    assert (sums.allocated.num_bytes == parts).all()
    assert len(replay.stream) == len(replay.pool) == len(lives)
    assert len(steps_of(model.snapshot, model.device).step) == num
    assert len(spans_of(model.snapshot, model.device).first) >= 0
