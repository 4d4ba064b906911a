"""Calls that the training thread makes per step and span, counted instead of timed.

A call costs a few dozen nanoseconds while it is warm, and a cache miss or three where
training has just thrown everything out: the number of them is what can be held to.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import memboard as mb
from tests.collector.recordings import read_only_file

if TYPE_CHECKING:
    from collections.abc import Callable

# What garbage of other tests would call as it is collected is not the call's.
pytestmark = pytest.mark.usefixtures("no_garbage")

NUM_CALLS = 50


def python_calls(function: Callable[[], object]) -> tuple[float, Counter[str]]:
    """Python functions that one call enters on this thread, itself left out."""
    names: Counter[str] = Counter()

    def note(frame, event, _):
        if event == "call":
            names[frame.f_code.co_name] += 1

    for _ in range(5):
        function()
    sys.setprofile(note)
    try:
        for _ in range(NUM_CALLS):
            function()
    finally:
        sys.setprofile(None)
    return sum(names.values()) / NUM_CALLS - 1, names


def test_a_step_at_the_default_sources(tmp_path):
    with mb.record(tmp_path / "run") as rec:
        rec.step()
        time.sleep(0.1)  # all timed sources are opening or open
        number, names = python_calls(rec.step)
        assert number <= 29, names.most_common()
    assert read_only_file(tmp_path / "run").steps() == list(range(NUM_CALLS + 6))


@pytest.mark.parametrize("category", ["user", "mine", "optimizer"])
def test_a_span_with_args(tmp_path, category):
    with mb.record(tmp_path / "run", schedule={"warmup": 0, "active": 0}) as rec:
        rec.step()

        def one():
            with rec.span("x", category=category, args={"n": 1}):
                pass

        number, names = python_calls(one)
        assert number <= 13, names.most_common()
