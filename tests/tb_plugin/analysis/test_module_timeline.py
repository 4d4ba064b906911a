"""One window as a picture: every column against a walk over its moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.modules import timeline as module_timeline
from memboard.tb_plugin.analysis.modules.capture import module_log
from tests.tb_plugin.analysis.module_logs import LogBuilder, Replay, random_log

DEVICES = ["cuda:0", "cpu"]


def sawtooth() -> LogBuilder:
    """Holds 100 bytes; a peak of 900 in the last microsecond of each ten."""
    log = LogBuilder()
    root = log.module("Net")
    log.alloc(100, "param", root)
    for _ in range(10):
        log.tick(9)
        log.alloc(800, "temp", root)
        log.alloc(-800, "temp", root)
        log.tick()
    return log


def test_no_peak_vanishes_however_wide_a_column_is():
    log = module_log(sawtooth().tables(), DEVICES)
    low, high = module_timeline.extent(log, "time")
    assert (low, high) == (0, 99)
    for px in (1, 3, 10):
        columns = module_timeline.columns(log, 0, "time", low, high, px)
        assert columns.total_bytes.tolist() == [900] * px
        assert columns.held[log.categories.index("temp")].tolist() == [800] * px
    columns = module_timeline.columns(log, 0, "time", 0, 99, 99)
    assert np.flatnonzero(columns.total_bytes == 900).tolist() == [
        *range(9, 99, 10), 98,
    ]  # fmt: skip


def test_columns_without_events_carry_what_is_held():
    log = module_log(sawtooth().tables(), DEVICES)
    columns = module_timeline.columns(log, 0, "time", 2, 8, 40)
    assert columns.total_bytes.tolist() == [100] * 40
    assert columns.peak_x.tolist() == (2 + columns.width * np.arange(40)).tolist()


@given(
    seed=st.integers(0, 300),
    axis=st.sampled_from(["time", "event"]),
    px=st.integers(1, 70),
    begin=st.floats(0, 1),
    end=st.floats(0, 1),
)
def test_columns_equal_a_walk_over_their_moments(seed, axis, px, begin, end):
    built = random_log(seed, 5, 1)
    log = module_log(built.tables(), DEVICES)
    replay = Replay(built)
    low, high = module_timeline.extent(log, axis)
    x0, x1 = sorted((low + begin * (high - low), low + end * (high - low)))
    columns = module_timeline.columns(log, 0, axis, x0, x1, px)
    times = [event[0] for event in built.events]
    num = len(times)
    for index, shown in enumerate(columns.total_bytes):
        left = columns.x0 + index * columns.width
        right = columns.x0 + (index + 1) * columns.width
        if index == len(columns.total_bytes) - 1:
            right = max(right, np.nextafter(x1, np.inf))
        if axis == "time":
            first = sum(time < left for time in times)
            moments = range(first, sum(time < right for time in times) + 1)
        else:
            moments = [m for m in range(num + 1) if int(left) <= m < right]
        sizes = [sum(replay.held(m).values()) for m in moments]
        assert shown == max(sizes)
        assert columns.held[:, index].sum() == shown
        assert left <= columns.peak_x[index] <= right


def test_spans_are_calls_of_modules_outer_first():
    built = random_log(3, 6, 2)
    log = module_log(built.tables(), DEVICES)
    low, high = module_timeline.extent(log, "event")
    spans = module_timeline.spans(log, "event", low, high, 0, 1000)
    assert len(spans.module) + spans.num_left_out == 6 * 2 * 2
    assert {module_timeline.SPAN_KINDS[k] for k in spans.kind} == {
        "forward",
        "backward",
    }
    replay = Replay(built)
    modules = np.array([log.tree.fqn.index(name) for name in spans.modules])
    for index in range(len(spans.module)):
        module, call = modules[spans.module[index]], int(spans.call[index])
        kind = module_timeline.SPAN_KINDS[spans.kind[index]]
        assert spans.x0[index] == replay.moments(module, f"before_pre_{kind}")[call]
        assert spans.x1[index] == replay.moments(module, f"after_post_{kind}")[call]
        parent = built.modules[module][1]
        if spans.x1[index] > spans.x0[index] and parent >= 0:
            same = (modules[spans.module] == parent) & (spans.call == call)
            same &= spans.kind == spans.kind[index]
            assert spans.depth[index] > spans.depth[same].max()


@given(
    seed=st.integers(0, 300),
    most=st.integers(0, 20),
    axis=st.sampled_from(["time", "event"]),
)
def test_spans_of_one_row_never_overlap(seed, most, axis):
    log = module_log(random_log(seed, 8, 2).tables(), DEVICES)
    low, high = module_timeline.extent(log, axis)
    spans = module_timeline.spans(log, axis, low, high, 1, most)
    assert len(spans.module) <= most
    for row in set(spans.depth.tolist()):
        mine = spans.depth == row
        order = np.argsort(spans.x0[mine], kind="stable")
        begin, end = spans.x0[mine][order], spans.x1[mine][order]
        assert (end[:-1] <= begin[1:]).all()


def test_narrow_spans_are_left_out_and_counted():
    log = module_log(random_log(5, 8, 1).tables(), DEVICES)
    low, high = module_timeline.extent(log, "event")
    every = module_timeline.spans(log, "event", low, high, 0, 1000)
    wide = module_timeline.spans(log, "event", low, high, 8, 1000)
    assert 0 < len(wide.module) < len(every.module)
    assert (wide.x1 - wide.x0 >= 8).all()
    total = len(every.module) + every.num_left_out
    assert len(wide.module) + wide.num_left_out == total


@pytest.mark.parametrize("axis", ["time", "event"])
def test_an_empty_log_has_one_empty_picture(axis):
    log = module_log(LogBuilder().tables(), DEVICES)
    low, high = module_timeline.extent(log, axis)
    columns = module_timeline.columns(log, 0, axis, low, high, 100)
    assert not columns.total_bytes.any()
    assert not len(module_timeline.spans(log, axis, low, high, 0, 10).module)
