"""Rounds without marks, and which lines keep memory from one to the next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator.lifetimes import BEFORE
from memboard.tb_plugin.analysis.allocator.rounds import (
    rounds_by_memory,
    rounds_by_steps,
)
from memboard.tb_plugin.analysis.oom.growth_until_error import (
    MAX_LOOKS,
    growth_of_sites,
)
from tests.tb_plugin.analysis.snapshots import lives_of

MIB = 1 << 20
FOR_EVER = 1 << 40

PARAM, LAYER, LEAK, CACHE, AHEAD, SMALL = range(6)
"""Lines of the training below."""


class Training:
    """Allocations of a small training, made event by event."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.events = 0

    def alloc(self, size: int, line: int) -> int:
        self.rows.append([size, line, self.events, FOR_EVER])
        self.events += 1
        return len(self.rows) - 1

    def before(self, size: int, line: int) -> None:
        self.rows.append([size, line, BEFORE, FOR_EVER])

    def free(self, row: int) -> None:
        self.rows[row][3] = self.events
        self.events += 1

    def step(self, *, layers: int = 8, scale: int = 1) -> None:
        """Forward keeps an activation per layer, backward lets go of them."""
        held = []
        for _ in range(layers):
            passing = self.alloc(MIB, SMALL)
            held.append(self.alloc(10 * scale * MIB, LAYER))
            self.free(passing)
        for row in reversed(held):
            self.free(row)

    @property
    def lives(self):
        rows = sorted(self.rows, key=lambda row: row[2])
        return lives_of(
            [
                (born, min(gone, self.events), size, stack)
                for size, stack, born, gone in rows
            ]
        )

    @property
    def moment(self) -> int:
        return self.events - 1


def grown_lines(training: Training) -> dict[int, int]:
    found = rounds_by_memory(training.lives, training.moment)
    grown = growth_of_sites(
        training.lives, training.lives.stack, found, training.moment
    )
    return dict(zip(grown.group.tolist(), grown.kept_bytes.tolist(), strict=True))


def forward(training: Training) -> None:
    """The step that the error cuts off."""
    for _ in range(8):
        training.alloc(10 * MIB, LAYER)


def test_rounds_are_the_steps():
    training = Training()
    training.alloc(50 * MIB, PARAM)
    for _ in range(6):
        training.step()
    forward(training)
    found = rounds_by_memory(training.lives, training.moment)
    assert found.by == "memory"
    # Six whole ones, and the one that was cut off.
    assert len(found) == 7
    assert np.all(np.diff(found.start) > 20)


def test_steps_are_rounds_where_they_are_known():
    training = Training()
    for _ in range(5):
        training.step()
    step = np.arange(training.events) // 10
    step[:3] = -1
    found = rounds_by_steps(step[: training.moment + 1])
    assert found.by == "steps"
    assert found.start.tolist() == [3, *range(10, training.events, 10)]


def test_layers_of_one_forward_are_no_rounds():
    training = Training()
    for _ in range(30):
        passing = training.alloc(MIB, SMALL)
        training.alloc(20 * MIB, LAYER)
        training.free(passing)
    found = rounds_by_memory(training.lives, training.moment)
    assert found.by == "nothing"
    assert grown_lines(training) == {}


def test_layers_that_allocate_much_in_passing_are_no_rounds_either():
    """Nothing is allocated outside modules: all of it is one forward."""
    training = Training()
    training.alloc(MIB, PARAM)
    for _ in range(10):
        passing = training.alloc(30 * MIB, SMALL)
        training.alloc(20 * MIB, LAYER)
        training.free(passing)
    lives, moment = training.lives, training.moment
    assert rounds_by_memory(lives, moment).by == "memory"
    batch = np.array([0])
    assert rounds_by_memory(lives, moment, batch).by == "nothing"
    every = np.arange(moment)
    assert rounds_by_memory(lives, moment, every).by == "memory"


def test_a_leak_is_found_and_nothing_else():
    training = Training()
    training.alloc(50 * MIB, PARAM)
    ahead = training.alloc(5 * MIB, AHEAD)
    for number in range(8):
        training.step(scale=1 + number % 2)
        training.alloc(2 * MIB, LEAK)
        if number == 0:
            training.alloc(90 * MIB, CACHE)
        fetched = training.alloc((4 + number % 3) * MIB, AHEAD)
        training.free(ahead)
        ahead = fetched
    forward(training)
    assert set(grown_lines(training)) == {LEAK}
    # All but the last, which may as well belong to the round under way.
    assert grown_lines(training)[LEAK] == 14 * MIB


def test_a_buffer_that_is_made_anew_and_larger_grows():
    training = Training()
    buffer = None
    for number in range(8):
        training.step()
        larger = training.alloc((number + 1) * 4 * MIB, CACHE)
        if buffer is not None:
            training.free(buffer)
        buffer = larger
    forward(training)
    assert set(grown_lines(training)) == {CACHE}


def test_what_was_freed_since_the_last_round_began_is_not_kept():
    training = Training()
    pieces = []
    for _ in range(8):
        training.step()
        pieces.append(training.alloc(23 * MIB, LEAK))
        training.alloc(6 * MIB, LEAK)
    forward(training)
    assert grown_lines(training)[LEAK] >= 7 * 29 * MIB
    rounds = rounds_by_memory(training.lives, training.moment)
    for piece in pieces:
        training.free(piece)
    lives = training.lives
    grown = growth_of_sites(lives, lives.stack, rounds, training.moment)
    assert grown.total_bytes == 8 * 6 * MIB
    assert grown.rise_bytes.sum() <= grown.total_bytes


def test_a_leak_of_every_second_round_is_found():
    training = Training()
    for number in range(12):
        training.step()
        if number % 2:
            training.alloc(2 * MIB, LEAK)
    forward(training)
    assert set(grown_lines(training)) == {LEAK}


def test_what_leaked_before_the_recording_counts_with_its_line():
    training = Training()
    for _ in range(20):
        training.before(2 * MIB, LEAK)
    for _ in range(6):
        training.step()
        training.alloc(2 * MIB, LEAK)
    forward(training)
    found = rounds_by_memory(training.lives, training.moment)
    grown = growth_of_sites(
        training.lives, training.lives.stack, found, training.moment
    )
    assert grown.group.tolist() == [LEAK]
    assert grown.before_bytes.tolist() == [40 * MIB]
    assert grown.total_bytes == (40 + 5 * 2) * MIB


@pytest.mark.parametrize("num_rounds", [0, 1, 2])
def test_few_rounds_tell_nothing(num_rounds):
    training = Training()
    training.alloc(MIB, PARAM)
    for _ in range(num_rounds):
        training.step()
        training.alloc(20 * MIB, LEAK)
    assert grown_lines(training) == {}


def test_many_rounds_are_looked_at_now_and_then():
    training = Training()
    for _ in range(5 * MAX_LOOKS):
        training.step(layers=2)
        training.alloc(64, LEAK)
    forward(training)
    found = rounds_by_memory(training.lives, training.moment)
    grown = growth_of_sites(
        training.lives, training.lives.stack, found, training.moment
    )
    assert grown.num_rounds == MAX_LOOKS
    assert grown.group.tolist() == [LEAK]
    assert grown.bytes_per_round == pytest.approx(64, rel=0.05)


@given(
    st.lists(
        st.tuples(st.integers(-1, 60), st.integers(0, 60), st.integers(0, 1 << 40)),
        max_size=60,
    ),
    st.integers(0, 60),
)
def test_any_lives_are_looked_through(rows, moment):
    """Ends before beginnings, moments past the end: nothing but numbers come out."""
    lives = lives_of([(*row, at % 3 - 1) for at, row in enumerate(sorted(rows))])
    found = rounds_by_memory(lives, moment)
    assert np.all(np.diff(found.start) >= 0)
    grown = growth_of_sites(lives, lives.stack, found, moment)
    assert np.all(grown.kept_bytes >= 0)
