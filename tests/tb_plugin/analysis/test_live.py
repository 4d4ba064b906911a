"""Live memory and its holders, against sums one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator import live as holding
from memboard.tb_plugin.analysis.allocator.live import (
    born_in,
    by_stack,
    holders,
    live_rows,
    live_totals,
    range_sums,
    siblings,
    summed,
    versions,
)
from tests.tb_plugin.analysis.snapshots import held_at, lives_of

NUM_EVENTS = 30


def row_of(born: int, until: int, after: int, size: int, stack: int) -> tuple[int, ...]:
    """Of the events until it is freed, and from then until it is gone."""
    freed = min(born + 1 + until, NUM_EVENTS)
    return born, min(freed + after, NUM_EVENTS), size, stack, freed


rows = st.lists(
    st.builds(
        row_of,
        st.integers(-1, NUM_EVENTS - 1),
        st.integers(0, 20),
        st.integers(0, 6),
        st.integers(1, 60),
        st.integers(-1, 3),
    ),
    max_size=25,
).map(sorted)
moments = st.integers(-1, NUM_EVENTS - 1)


def alive(lives, moment: int) -> list[int]:
    return [
        row for row in range(len(lives)) if lives.born[row] <= moment < lives.gone[row]
    ]


@given(rows, moments)
def test_totals_of_a_moment(made, moment):
    lives = lives_of(made)
    found = live_rows(lives, moment)
    assert found.tolist() == alive(lives, moment)
    totals = live_totals(lives, found, moment)
    pending = [row for row in found if lives.freed[row] <= moment]
    assert totals.num == len(found)
    assert totals.active_bytes == sum(lives.size[found])
    not_gone = totals.active_bytes - totals.allocated_bytes
    assert not_gone == sum(lives.size[pending])


@given(rows, moments)
def test_sums_by_stack_and_by_any_group(made, moment):
    lives = lives_of(made)
    found = live_rows(lives, moment)
    expected: Counter[int] = Counter()
    for row in found:
        expected[int(lives.stack[row])] += int(lives.size[row])
    sums = by_stack(lives, found)
    assert (
        dict(zip(sums.stack.tolist(), sums.num_bytes.tolist(), strict=True)) == expected
    )
    assert (np.diff(sums.num_bytes) <= 0).all()
    assert int(sums.num.sum()) == len(found)
    grouped = summed(lives, found, lives.stack + 1, 5)
    assert grouped.num_bytes.tolist() == [expected[group - 1] for group in range(5)]
    assert int(grouped.num.sum()) == len(found)


@given(rows, moments, moments)
def test_a_range_says_what_became_of_its_allocations(made, one, other):
    lives = lives_of(made)
    first, last = sorted((one, other))
    found = range_sums(lives, first, last, lives.stack + 1, 5)
    inside = [
        row for row in range(len(lives)) if max(first, 0) <= lives.born[row] <= last
    ]
    assert born_in(lives, first, last).tolist() == inside
    gone = [row for row in inside if lives.gone[row] <= last]
    for sums, chosen in (
        (found.allocated, inside),
        (found.freed, gone),
        (found.live, [row for row in inside if row not in gone]),
    ):
        assert int(sums.num.sum()) == len(chosen)
        for group in range(5):
            own = [row for row in chosen if lives.stack[row] + 1 == group]
            assert sums.num_bytes[group] == lives.size[own].sum()


@given(rows, moments)
def test_the_siblings(made, moment):
    lives = lives_of(made)
    found = live_rows(lives, moment)
    for row in found.tolist():
        same = siblings(lives, row, moment)
        own = [r for r in range(len(lives)) if lives.stack[r] == lives.stack[row]]
        now = [r for r in own if r in found]
        assert same.num_ever == len(own)
        assert same.num == len(now)
        assert same.num_bytes == lives.size[now].sum()


@given(rows, st.lists(moments.filter(lambda m: m >= 0), unique=True), st.integers(1, 4))
def test_holders_add_up_to_what_lives_in_every_column(made, at, most):
    lives = lives_of(made)
    columns = np.array(sorted(at), np.int64)
    found = holders(lives, lives.stack, 4, columns, most)
    peaks: Counter[int] = Counter()
    for place, moment in enumerate(columns.tolist()):
        held: Counter[int] = Counter()
        for row in alive(lives, moment):
            held[int(lives.stack[row])] += int(lives.size[row])
        told = held_at(found, place)
        assert int(told.sum()) == found.total[place] == sum(held.values())
        for slot, group in enumerate(found.group.tolist()):
            assert told[slot] == held[group]
        for group in range(4):
            peaks[group] = max(peaks[group], held[group])
    kept = sorted(peaks[group] for group in found.group.tolist())
    assert kept == sorted(sorted(filter(None, peaks.values()))[-most:])
    assert -1 not in found.group
    assert (np.diff(found.column) >= 0).all()
    pairs = list(zip(found.column.tolist(), found.slot.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert (found.delta != 0).all()


def test_of_too_many_groups_the_least_are_among_the_others(monkeypatch):
    monkeypatch.setattr(holding, "MAX_CELLS", 6)
    lives = lives_of([(-1, 20, size, size) for size in range(1, 10)])
    found = holders(lives, lives.stack, 10, np.arange(2), 3)
    assert found.group.tolist() == [9, 8, 7]
    assert held_at(found, 1).tolist() == [9, 8, 7, 21]


@pytest.mark.parametrize("most", [0, 1])
def test_nothing_alive_is_held_by_nobody(most):
    found = holders(lives_of([]), np.empty(0, np.int64), 0, np.arange(3), most)
    assert found.total.tolist() == [0, 0, 0]
    assert held_at(found, 2).tolist() == [0]


addresses = st.lists(
    st.sampled_from([0, 512, -512, 2**63 - 512, -(2**63)]), max_size=40
)


@given(addresses, st.data())
def test_each_row_counts_the_earlier_ones_at_its_address(addr, data):
    rows = data.draw(st.lists(st.integers(0, max(0, len(addr) - 1)), max_size=10))
    rows = rows if addr else []
    lives = lives_of([(at, at + 1) for at in range(len(addr))])
    lives = replace(lives, addr=np.array(addr, np.int64))
    found = versions(lives, np.array(rows, np.int64))
    assert found.tolist() == [addr[:row].count(addr[row]) for row in rows]
