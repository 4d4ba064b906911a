"""Sources that are open: as many as fit, those used last."""

from __future__ import annotations

import threading
from dataclasses import replace

from tb_plugin.jobs import trace_sources
from tb_plugin.jobs.trace_sources import FoundSource, Opening, TraceSources
from tests.traces_builder import MadeTrace

SECONDS = 60.0
"""No test waits so long; a hang ends."""


def source_of(name: str, num_slices: int = 100, gate: threading.Event | None = None):
    """A source whose trace has so many slices; opened once the gate is."""
    made = MadeTrace()
    for at in range(num_slices):
        made.slice("main", "aten::mm", at, 1)

    def load(_note):
        assert gate is None or gate.wait(SECONDS)
        return made.build()

    return FoundSource(name, "trace", f"{name}.json", 0, 1, 10, (name,), load)


def opened(sources: TraceSources, found: FoundSource) -> Opening:
    opening = sources.open("run", found)
    assert opening.wait(SECONDS)
    assert opening.state == "ready"
    return opening


def ready(sources: TraceSources, names: str) -> str:
    return "".join(one for one in names if sources.ready("run", one) is not None)


def test_those_used_longest_ago_are_closed_once_all_are_too_large(monkeypatch):
    found = {name: source_of(name) for name in "abcdef"}
    sources = TraceSources()
    one = opened(sources, found["a"]).source
    assert one is not None
    monkeypatch.setattr(trace_sources, "MAX_BYTES", 3 * one.trace.num_bytes)
    monkeypatch.setattr(trace_sources, "_MIN_OPEN", 2)
    for name in "bc":
        opened(sources, found[name])
    assert ready(sources, "abcdef") == "abc"
    opened(sources, found["a"])
    opened(sources, found["d"])
    assert ready(sources, "abcdef") == "acd"
    opened(sources, source_of("large", 10_000))
    assert ready(sources, "abcdef") == "d"
    assert sources.ready("run", "large") is not None
    # What one picture may need stays, whatever its size.
    assert sources.known("run", "a", ("a",)) is None


def test_a_source_that_was_let_go_while_it_was_opened_counts_again(monkeypatch):
    monkeypatch.setattr(trace_sources, "MAX_OPEN", 2)
    sources, gate = TraceSources(), threading.Event()
    slow = sources.open("run", source_of("s", gate=gate))
    for name in "ab":
        opened(sources, source_of(name))
    assert sources.known("run", "s", ("s",)) is None
    gate.set()
    assert slow.wait(SECONDS)
    assert ready(sources, "sab") == "sb"
    opened(sources, source_of("c"))
    opened(sources, source_of("d"))
    assert ready(sources, "sabcd") == "cd"


def test_what_another_process_reads_takes_nobodys_turn():
    sources, gate = TraceSources(), threading.Event()
    slow = [
        sources.open("run", replace(source_of(name), read=lambda _: gate.wait(SECONDS)))
        for name in "abcd"
    ]
    opened(sources, source_of("quick"))
    assert not any(one.wait(0) for one in slow)
    gate.set()
    assert all(one.wait(SECONDS) and one.state == "ready" for one in slow)


def test_bytes_of_a_trace_are_those_of_its_columns():
    made = MadeTrace()
    for at in range(1000):
        made.slice("main", "aten::mm", at, 1)
    trace = made.build()
    columns = vars(trace.slices).values()
    assert trace.num_bytes >= sum(column.nbytes for column in columns) >= 1000 * 8 * 4
