"""Sources on the common clock: as in the merged trace, start by start."""

from __future__ import annotations

from types import SimpleNamespace

from memboard.tb_plugin.analysis.ranks.clock_line import SAME, steady
from memboard.tb_plugin.analysis.ranks.clocks import RankClock
from memboard.tb_plugin.facts.traces.axis import RunClocks, placed

BASE_NS = 1_790_857_026_000_000_001
"""Odd: no float holds it."""

BEHIND = RankClock(
    steady(2_000, 10), "distributed", ahead=((BASE_NS, 0), (BASE_NS + 500, 70))
)
FIRST = RankClock(steady(-9, None), "wall")
CLOCKS = RunClocks(
    (
        (BASE_NS - 10_000, {0: RankClock(SAME, "reference"), 1: FIRST}),
        (BASE_NS - 100, {1: BEHIND}),
    )
)


def source(rank, *, kind="trace", base_ns=BASE_NS, start_ns=0, end_ns=100, wall=True):
    trace = SimpleNamespace(
        base_ns=base_ns, start_ns=start_ns, end_ns=end_ns, has_wall_clock=wall
    )
    return SimpleNamespace(trace=trace, found=SimpleNamespace(rank=rank, kind=kind))


def put(*sources):
    return [
        (one.zero_ns - one.trace.base_ns, one.clock.method, one.clock.error_ns)
        for one in placed(sources, CLOCKS, 5)
    ]


def test_each_rank_by_its_own_clock_to_the_nanosecond():
    assert put(source(0), source(1), source(7), source(None)) == [
        (0, "reference", 0.0),
        (2_000, "distributed", 10.0),
        (0, "wall", None),
        (0, "wall", None),
    ]


def test_every_start_of_the_job_has_clocks_of_its_own():
    early = source(1, base_ns=BASE_NS - 5_000)
    before = source(1, base_ns=BASE_NS - 50_000)
    assert put(early, before) == [(-9, "wall", None)] * 2


def test_what_the_wall_clock_was_ahead_counts_for_what_it_stamped_alone():
    late = {"start_ns": 600, "end_ns": 800}
    assert put(source(1, **late), source(1, kind="spans", **late)) == [
        (1_930, "distributed", 10.0),
        (2_000, "distributed", 10.0),
    ]


def test_without_a_wall_clock_one_begins_with_the_first_of_the_others():
    lost = source(0, base_ns=0, start_ns=40, wall=False)
    (_, found) = placed([source(1), lost], CLOCKS, 5)
    assert found.zero_ns == BASE_NS + 2_000 - 40
    assert (found.clock.method, found.clock.offset_ns) == ("none", 0.0)
    (alone,) = placed([lost], CLOCKS, 5)
    assert alone.zero_ns == 5 - 40


def test_a_ranks_own_numbers_go_by_its_last_clock():
    assert [CLOCKS.offset_ns(rank) for rank in (0, 1, 7)] == [0, 2_000, 0]
