"""Spans that are open where one profiler of torch's ends and another begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import memboard as mb

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[3]

STRADDLING = """
import sys, torch, memboard as mb
net = torch.nn.Linear(8, 8)
with mb.record(sys.argv[1], scalars=False) as rec:
    for _ in range(40):
        spans = [rec.span(f"span {n}") for n in range(50)]
        with torch.profiler.profile():
            for span in spans:
                span.start()
            net(torch.randn(4, 8))
        junk = [bytes(64 + n) for n in range(1000)]
        with torch.profiler.profile():
            for span in reversed(spans):
                span.stop()
            net(torch.randn(4, 8))
"""


def test_a_span_across_two_profilers_does_not_kill_the_process(tmp_path):
    command = [sys.executable, "-c", STRADDLING, str(tmp_path / "run")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def ranges_of(profile) -> list[str]:
    events = profile.profiler.kineto_results.events()
    return [event.name() for event in events if event.name() in ("outer", "inner")]


def test_ranges_are_in_the_trace_in_which_they_began(tmp_path):
    with mb.record(tmp_path / "run", scalars=False) as rec:
        outer = rec.span("outer")
        with torch.profiler.profile() as first:
            outer.start()
            with rec.span("inner"):
                torch.ones(3).sum()
        with torch.profiler.profile() as second, rec.span("inner"):
            torch.ones(3).sum()
        outer.stop()
    assert sorted(ranges_of(first)) == ["inner", "outer"]
    assert ranges_of(second) == ["inner"]


def test_torch_is_left_as_it_was(tmp_path):
    from torch.autograd import profiler

    before = profiler._run_on_profiler_start
    with mb.record(tmp_path / "run", scalars=False):
        assert profiler._run_on_profiler_start is not before
    assert profiler._run_on_profiler_start is before
