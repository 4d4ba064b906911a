"""`kill -9` at random moments.

`tests/perf/kill_nine.py` does it 200 times, and holds that no more than 2 s are lost; how
late a busy machine lets a thread write is nobody's promise.
"""

from __future__ import annotations

import pytest

from tests.perf.kill_nine import run


@pytest.mark.slow
@pytest.mark.parametrize("segments", [False, True])
def test_a_killed_recording_stays_readable_and_loses_its_last_steps_alone(segments):
    rounds = run(
        5,
        longest_seconds=1.0,
        seed=9,
        segments=segments,
        bound_seconds=300.0,
        with_steps=True,
    )
    assert len(rounds) == 5
    assert all(r.kept > 0 for r in rounds[1::2])
    assert any(r.kept < r.taken for r in rounds)  # the kills did come in between
