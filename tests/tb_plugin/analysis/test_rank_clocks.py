"""Clocks by what recordings say of them, whatever they say."""

from __future__ import annotations

from types import SimpleNamespace

from memboard.collector.format.records import Note
from memboard.tb_plugin.analysis.ranks.clock_line import SAME
from memboard.tb_plugin.analysis.ranks.clocks import RankClock, recorded_clocks


def told(*notes, wall_ns=0, monotonic_ns=0):
    """A recording's header and notes."""
    started = SimpleNamespace(wall_ns=wall_ns, monotonic_ns=monotonic_ns)
    return SimpleNamespace(header=SimpleNamespace(started=started), notes=lambda: notes)


def note(time_ns, **data):
    return Note(kind="clock", time_ns=time_ns, step=None, data=data)


def compared(time_ns, offset_ns, **data):
    return note(
        time_ns,
        offset_ns=offset_ns,
        **{"error_ns": 5, "method": "distributed", "reference_rank": 0, **data},
    )


def test_clocks_are_interpolated_and_bad_notes_passed_over():
    notes = [
        compared(0, 100),
        compared(10_000, 300),
        compared(5_000, "far", error_ns=float("nan")),
        note(6_000, monotonic_ns=3),
    ]
    clock = recorded_clocks({0: told(), 1: told(*notes)})[1]
    found = clock.line.at(5_000)
    assert found.offset_ns == 200
    assert clock.method == "distributed"
    assert found.error_ns is not None


def test_of_a_clock_that_nobody_compared_nothing_is_known():
    for notes in ((), (compared(0, 1e300),), (compared(0, True),)):
        clock = recorded_clocks({0: told(), 1: told(*notes)})[1]
        assert clock.line.at(5) == (0, None)
        assert clock.method == "wall"


def test_rank_0_is_the_reference_whatever_it_says_of_the_true_time():
    clocks = recorded_clocks({0: told(note(0, offset_ns=30, method="wall"))})
    assert clocks == {0: RankClock(SAME, "reference")}


def test_how_far_the_wall_clock_is_ahead_holds_from_then_on():
    notes = [
        note(100, wall_ahead_ns=0),
        note(900, wall_ahead_ns=50),
        note(500, wall_ahead_ns=7),
    ]
    clock = recorded_clocks({0: told(*notes)})[0]
    assert [clock.ahead_ns(at) for at in (0, 100, 499, 500, 899, 900, 9_999)] == [
        0, 0, 0, 7, 7, 50, 50,
    ]  # fmt: skip
