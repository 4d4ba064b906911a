"""Lifetimes of allocations, against a small model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.allocator.lifetimes import (
    ACTIONS,
    BEFORE,
    Blocks,
    History,
    Lifetimes,
    levels,
    lifetimes,
)


def history_of(trace: list[dict[str, Any]]) -> History:
    known = {action: number for number, action in enumerate(ACTIONS)}
    return History(
        action=np.array([known.get(e["action"], -1) for e in trace], np.int64),
        addr=np.array([e.get("addr", 0) for e in trace], np.int64),
        size=np.array([e["size"] for e in trace], np.int64),
        stack=np.arange(len(trace)),
    )


def blocks_of(blocks: list[tuple[int, int, bool]]) -> Blocks:
    return Blocks(
        addr=np.array([addr for addr, _, _ in blocks], np.int64),
        size=np.array([size for _, size, _ in blocks], np.int64),
        is_allocated=np.array([whole for _, _, whole in blocks], np.bool_),
        stack=np.full(len(blocks), -1),
    )


class Model:
    """Addresses handed out and taken back, remembered the slow way."""

    def __init__(self) -> None:
        self.trace: list[dict[str, Any]] = []
        self.live: dict[int, tuple[int, int]] = {}
        """By address: bytes and a number that tells each allocation from all others."""
        self.waiting: list[int] = []
        self.moments: list[set[int]] = []
        """After each event: numbers of what is active."""
        self.sizes: dict[int, int] = {}

    def do(self, what: str, which: int, size: int) -> None:
        held = [addr for addr in sorted(self.live) if addr not in self.waiting]
        if what == "alloc":
            free = [512 * n for n in range(1, 40) if 512 * n not in self.live]
            addr, number = free[which % len(free)], len(self.sizes)
            self.live[addr] = (size, number)
            self.sizes[number] = size
            self._add("alloc", addr, size)
        elif what == "request" and held:
            addr = held[which % len(held)]
            self.waiting.append(addr)
            self._add("free_requested", addr, self.live[addr][0])
        elif what == "complete" and self.waiting:
            addr = self.waiting.pop(which % len(self.waiting))
            size, _ = self.live.pop(addr)
            self._add("free_completed", addr, size)
        elif what == "other":
            self._add("segment_alloc", 0, 2**21)

    def _add(self, action: str, addr: int, size: int) -> None:
        self.trace.append({"action": action, "addr": addr, "size": size})
        self.moments.append({number for _, number in self.live.values()})

    def blocks(self) -> Blocks:
        return blocks_of(
            [(a, size, a not in self.waiting) for a, (size, _) in self.live.items()]
        )


steps = st.lists(
    st.tuples(
        st.sampled_from(["alloc", "alloc", "request", "complete", "other"]),
        st.integers(0, 50),
        st.integers(1, 10_000),
    ),
    max_size=120,
)


def active_at(lives: Lifetimes, event: int) -> list[int]:
    alive = (lives.born <= event) & (lives.gone > event)
    return sorted(lives.size[alive].tolist())


@given(steps, st.integers(0, 119))
def test_what_is_alive_after_each_event_is_what_the_model_holds(done, lost):
    model = Model()
    for what, which, size in done:
        model.do(what, which, size)
    lost = min(lost, len(model.trace))  # a ring that overflowed forgot the beginning
    history, blocks = history_of(model.trace[lost:]), model.blocks()
    lives = lifetimes(history, blocks)
    assert lives.num_lost == 0
    for event, numbers in enumerate(model.moments[lost:]):
        assert active_at(lives, event) == sorted(model.sizes[n] for n in numbers)
    active = levels(lives, lives.size, len(history), active=True)
    totals = [sum(model.sizes[n] for n in m) for m in model.moments]
    assert active.after.tolist() == totals[lost:]
    assert active.first == (totals[lost - 1] if lost else 0)
    assert active.peak[0] == max([active.first, *totals[lost:]])
    allocated = levels(lives, lives.size, len(history), active=False)
    assert (allocated.after <= active.after).all()
    assert (lives.freed <= lives.gone).all()
    assert (lives.born < lives.gone).all()


def test_what_was_there_before_lies_below_and_the_longest_lived_lowest():
    trace = [
        {"action": "alloc", "addr": 1024, "size": 7},
        {"action": "free_requested", "addr": 512, "size": 5},
        {"action": "free_completed", "addr": 512, "size": 5},
    ]
    lives = lifetimes(
        history_of(trace), blocks_of([(1024, 512, True), (2048, 512, True)])
    )
    assert lives.addr.tolist() == [2048, 512, 1024]
    assert lives.born.tolist() == [BEFORE, BEFORE, 0]
    assert lives.gone.tolist() == [3, 2, 3]
    assert lives.size.tolist() == [512, 5, 7]


def test_a_free_of_what_is_free_is_counted_and_changes_nothing_else():
    trace = [{"action": "alloc", "addr": 512, "size": 5}]
    trace += [
        {"action": kind, "addr": 512, "size": 5}
        for kind in ("free_requested", "free_completed", "free_completed")
    ]
    lives = lifetimes(history_of(trace), blocks_of([]))
    assert lives.num_lost == 1
    assert (lives.born.tolist(), lives.gone.tolist()) == ([0], [2])


@pytest.mark.parametrize("only", ["free", "free_requested", "free_completed"])
def test_releases_that_know_one_kind_of_free_end_both_at_once(only):
    trace = [
        {"action": "alloc", "addr": 512, "size": 5},
        {"action": only, "addr": 512, "size": 5},
    ]
    history = history_of(trace)
    lives = lifetimes(history, blocks_of([]))
    assert lives.freed.tolist() == [1]
    assert lives.gone.tolist() == [1]
    for active in (True, False):
        assert levels(lives, lives.size, 2, active=active).after.tolist() == [5, 0]


def test_what_goes_without_a_request_was_requested_before_the_first_event():
    trace = [
        {"action": "free_completed", "addr": 512, "size": 5},
        {"action": "alloc", "addr": 1024, "size": 7},
        {"action": "free_requested", "addr": 1024, "size": 7},
        {"action": "free_completed", "addr": 1024, "size": 7},
    ]
    lives = lifetimes(history_of(trace), blocks_of([]))
    assert lives.freed.tolist() == [BEFORE, 2]
    assert lives.gone.tolist() == [0, 3]
    assert levels(lives, lives.size, 4, active=True).first == 5
    assert levels(lives, lives.size, 4, active=False).first == 0
