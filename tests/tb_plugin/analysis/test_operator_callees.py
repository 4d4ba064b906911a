"""Callees of chosen calls, of traces made by hand."""

from __future__ import annotations

import numpy as np

from memboard.tb_plugin.analysis.operators import operators
from memboard.tb_plugin.analysis.operators.operators import callees
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.traces_builder import MadeTrace


def found(made: MadeTrace, name: str, most: int = 100):
    trace = made.build()
    times = TraceProfile(trace).times
    chosen = [
        row for row in np.flatnonzero(times.is_operator) if trace.name_of(row) == name
    ]
    rows = callees(times, np.array(chosen, dtype=np.int64), most)
    return {tuple(trace.strings[at] for at in one.path): one[1:] for one in rows}


def trained() -> MadeTrace:
    """Two calls of linear, one in a frame: addmm launches, and so does linear itself."""
    made = MadeTrace()
    for number, at in enumerate((0, 1000)):
        if number:
            made.slice("main", "train.py(3): main", at, 900, "python_function")
        made.slice("main", "aten::linear", at + 10, 100)
        made.slice("main", "aten::t", at + 15, 5)
        made.slice("main", "aten::addmm", at + 30, 50)
        made.kernel(at + 40, at + 100, 33)
    return made


def test_paths_are_merged_whatever_frames_lie_around():
    assert found(trained(), "aten::linear") == {
        (): (2, 2 * (100 - 5 - 50), 0),
        ("aten::t",): (2, 10, 0),
        ("aten::addmm",): (2, 2 * (50 - 1), 66),
        ("aten::addmm", "cudaLaunchKernel"): (2, 2, 0),
    }
    assert found(trained(), "aten::t") == {(): (2, 10, 0)}


def test_what_is_not_kept_counts_for_what_is_around_it():
    assert found(trained(), "aten::linear", 2) == {
        (): (2, 100, 0),
        ("aten::addmm",): (2, 100, 66),
    }
    assert found(trained(), "aten::linear", 1) == {(): (2, 200, 66)}


def test_a_call_inside_another_is_a_part_of_it():
    made = MadeTrace()
    made.slice("main", "f", 0, 100)
    made.slice("main", "g", 10, 50)
    made.slice("main", "f", 20, 10)
    assert found(made, "f") == {
        (): (1, 50, 0),
        ("g",): (1, 40, 0),
        ("g", "f"): (1, 10, 0),
    }


def test_what_lies_very_deep_counts_for_the_last_level(monkeypatch):
    monkeypatch.setattr(operators, "MAX_DEPTH", 3)
    made = MadeTrace()
    for depth in range(9):
        made.slice("main", f"f{depth}", depth, 100 - 2 * depth)
    rows = found(made, "f0")
    assert max(map(len, rows)) == 3
    assert rows["f1", "f2", "f3"] == (6, 94, 0)
    assert sum(host for _, host, _ in rows.values()) == 100


def test_nothing_is_called_by_no_calls():
    assert found(trained(), "no such operator") == {(): (0, 0, 0)}
