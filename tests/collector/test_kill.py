"""`kill -9` at random moments; `tests/perf/kill_nine.py` does it 200 times."""

from __future__ import annotations

import pytest

from tests.perf.kill_nine import run


@pytest.mark.slow
def test_a_killed_recording_stays_readable_and_loses_at_most_two_seconds():
    rounds = run(20, longest_seconds=2.0, seed=9)
    assert len(rounds) == 20
    assert sum(r.kept for r in rounds) > 500
    assert any(r.lost_seconds > 0 for r in rounds)  # the kills did come in between
