"""The ledger against an oracle that remembers every value there ever was."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.sources.device.accelerator import Device
from memboard.collector.sources.device.peaks import KEYS, PeakLedger, peaks_of, picked
from tests.collector.sources.conftest import opened

SIZES = st.integers(1, 3 * 2**20)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("alloc"), SIZES),
        st.tuples(st.just("free"), st.integers(0, 50)),
        st.tuples(st.just("step"), st.none()),
        st.tuples(st.just("open"), st.none()),
        st.tuples(st.just("close"), st.integers(0, 50)),
        st.tuples(st.just("user_reset"), st.none()),
        st.tuples(st.just("user_read"), st.none()),
    ),
    max_size=60,
)


class Oracle:
    """Every value of every statistic since the beginning; a peak is a maximum."""

    def __init__(self, allocator):
        self.allocator = allocator
        self.history = [self.now()]

    def now(self):
        return picked(self.allocator.stats(), "current")

    def note(self):
        self.history.append(self.now())

    def here(self):
        return len(self.history) - 1

    def peak_since(self, moment):
        return tuple(map(max, zip(*self.history[moment:], strict=True)))


@given(actions=ACTIONS)
def test_no_reset_falsifies_anybodys_peak(fakes, actions):
    """Steps, spans that nest and overlap, and the user see their own peaks, exactly."""
    backend = fakes.Backend()
    allocator = backend.devices[0]
    source = backend.source()
    ledger = source._device.ledger
    oracle = Oracle(allocator)
    blocks, spans = [], []
    step_began = user_began = 0
    for action, value in actions:
        if action == "alloc":
            blocks.append(value)
            allocator.move(value)
            oracle.note()
        elif action == "free" and blocks:
            allocator.move(-blocks.pop(value % len(blocks)))
            oracle.note()
        elif action == "step":
            row = source.sample()
            assert tuple(row[1:-2:2]) == oracle.peak_since(step_began)
            assert tuple(row[0:-2:2]) == oracle.now()
            step_began = oracle.here()
        elif action == "open":
            spans.append((ledger.open(), oracle.here()))
        elif action == "close" and spans:
            scope, began = spans.pop(value % len(spans))
            assert ledger.close(scope).peaks == oracle.peak_since(began)
        elif action == "user_reset":
            backend.user_reset()
            user_began = oracle.here()
        elif action == "user_read":
            seen = peaks_of(backend.user_stats())
            assert seen == oracle.peak_since(user_began)
    source.close()
    assert peaks_of(backend.user_stats()) == oracle.peak_since(user_began)
    backend.user_reset()
    assert not backend.wrapped()


def test_counters_that_start_late_lose_nothing(fakes):
    """A span opened before the process first uses its device covers all of its use."""
    backend = fakes.Backend()
    backend.initialized = False
    source = backend.source()
    span = source._device.ledger.open()
    assert set(source.sample()) == {None}
    assert source._device.ledger.close(source._device.ledger.open()) is None
    assert backend.calls == []
    backend.initialized = True
    backend.spike(500)
    assert source.sample()[1] == 500
    assert source._device.ledger.close(span).peaks[0] == 500


def test_without_resets_peaks_run_on_until_the_user_resets(fakes):
    backend = fakes.Backend()
    source = opened("device", Device(backend, 0), device_peaks="run")
    assert not backend.wrapped()
    kinds = {column.name: column.kind for column in source.columns}
    assert kinds["allocated_peak_bytes"] == "cumulative_peak"
    assert kinds["allocated_bytes"] == "gauge"
    backend.spike(700)
    assert [source.sample()[1], source.sample()[1]] == [700, 700]
    backend.user_reset()
    assert source.sample()[1] == 0
    assert "reset" not in backend.calls


def test_a_recorder_without_resets_sees_the_users_peaks_beside_one_with(fakes):
    backend = fakes.Backend()
    plain = backend.source(resets=False)
    stepping = backend.source()
    backend.spike(700)
    assert stepping.sample()[1] == 700
    assert stepping.sample()[1] == 0
    assert plain.sample()[1] == 700


def test_a_statistic_the_device_lacks_is_none_not_zero(fakes):
    stats = fakes.Allocator().stats()
    del stats["requested_bytes"], stats["inactive_split_bytes"]["small_pool"]
    by_key = dict(zip(KEYS, peaks_of(stats), strict=True))
    missing = {key for key, value in by_key.items() if value is None}
    assert missing == {
        ("requested_bytes", "all"),
        ("requested_bytes", "small_pool"),
        ("requested_bytes", "large_pool"),
        ("inactive_split_bytes", "small_pool"),
    }


def test_a_lacking_statistic_survives_folding(fakes):
    allocator = fakes.Allocator()

    class Lacking:
        def stats(self):
            stats = allocator.stats()
            del stats["requested_bytes"]
            return stats

        reset_peaks = allocator.reset_peaks

    ledger = PeakLedger(Lacking())
    span, inner = ledger.open(), ledger.open()
    allocator.move(90)
    allocator.move(-90)
    ledger.cut(inner)
    peaks = dict(zip(KEYS, ledger.close(span).peaks, strict=True))
    assert peaks["allocated_bytes", "all"] == 90
    assert peaks["requested_bytes", "all"] is None


def test_threads_open_and_close_spans_while_others_step_and_reset(fakes):
    """Bounds that hold under any interleaving, and nobody waits for ever."""
    allocator = fakes.Allocator()
    ledger = PeakLedger(allocator)
    problems: list[str] = []
    num_threads, rounds, size = 6, 200, 1000

    def spans():
        for _ in range(rounds):
            scope = ledger.open()
            allocator.move(size)
            peak = ledger.close(scope).peaks[0]
            allocator.move(-size)
            if not size <= peak <= num_threads * size:
                problems.append(f"a span's peak is {peak}")

    def steps():
        scope = ledger.open()
        for _ in range(rounds):
            reading = ledger.cut(scope)
            now = reading.stats["allocated_bytes"]["all"]["current"]
            if not now <= reading.peaks[0] <= num_threads * size:
                problems.append(f"a step's peak is {reading.peaks[0]}, now {now}")
            ledger.user_reset(allocator.reset_peaks)
            ledger.user_stats(allocator.stats())
        ledger.close(scope)

    targets = [spans] * num_threads + [steps] * 2
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads)
    assert problems == []
    assert ledger._scopes == set()


def test_closing_a_scope_twice_is_harmless(fakes):
    ledger = PeakLedger(fakes.Allocator())
    scope = ledger.open()
    assert ledger.close(scope) == ledger.close(scope)


@given(actions=ACTIONS)
def test_a_full_scope_has_every_statistics_own_peak(fakes, actions):
    """Opened and closed anywhere, whoever resets meanwhile; of counts and pools too."""
    backend = fakes.Backend()
    allocator = backend.devices[0]
    source = backend.source()
    ledger = source._device.ledger
    blocks, scopes = [], []

    def now():
        return {
            (stat, pool): allocator.stats()[stat][pool]["current"]
            for stat, pools in allocator.stats().items()
            if isinstance(pools, dict) and "all" in pools
            for pool in pools
        }

    def note():
        for _, highest in scopes:
            for key, value in now().items():
                highest[key] = max(highest[key], value)

    for action, value in actions:
        if action == "alloc":
            blocks.append(value)
            allocator.move(value)
        elif action == "free" and blocks:
            allocator.move(-blocks.pop(value % len(blocks)))
        elif action == "step":
            source.sample()
        elif action == "open":
            scopes.append((ledger.open_full()[0], now()))
        elif action == "close" and scopes:
            scope, highest = scopes.pop(value % len(scopes))
            stats = ledger.close_full(scope)
            assert {k: stats[k[0]][k[1]]["peak"] for k in highest} == highest
        elif action == "user_reset":
            backend.user_reset()
        note()
    for scope, _ in scopes:
        ledger.close_full(scope)
    backend.end()
