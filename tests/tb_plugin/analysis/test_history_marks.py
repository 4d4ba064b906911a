"""Spans of the program's own tags, and of steps; which of very many are chosen."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.snapshots.tags import tag_text
from memboard.tb_plugin.analysis.snapshots.marks import (
    KINDS,
    Marks,
    _merged,
    _steps,
    _tags,
)
from memboard.tb_plugin.analysis.snapshots.steps import Steps

TEXTS = ("warm up", "eval", tag_text(step=3, phase="train", function="step"))


def test_tags_that_follow_each_other_are_one_span():
    found = _tags(np.array([-1, 0, -1, 0, 1, 2, 2, 0, -1]), TEXTS)
    labels = [found.labels[row] for row in found.label]
    assert labels == ["warm up", "eval", "warm up"]
    assert found.moment.tolist() == [0, 3, 6]
    assert found.end.tolist() == [3, 4, 7]
    assert len(_tags(np.full(4, -1), TEXTS)) == 0
    assert len(_tags(np.full(4, 2), TEXTS)) == 0


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=40))
def test_a_step_lasts_until_another_begins_or_none_is_known(made):
    step = np.array(made)
    nothing = np.full(len(made), -1)
    marks = _steps(Steps(step, nothing, (), "profiler"), len(made))
    covered = np.full(len(made), -1)
    for row in range(len(marks)):
        assert KINDS[marks.kind[row]] == "step"
        number = int(marks.labels[marks.label[row]].split()[1])
        inside = slice(marks.moment[row] + 1, marks.end[row] + 1)
        assert (step[inside] == number).all()
        assert (covered[inside] == -1).all()
        covered[inside] = number
    gaps = np.flatnonzero(covered != step)
    # Where a step goes on after a gap it is the same mark's: nothing new began.
    assert all(made[at] in made[:at] for at in gaps)


def made_of(rows: list[tuple[int, int, int]]) -> Marks:
    """Marks by kind, moment and length."""
    kind, moment, length = np.array(rows, np.int64).reshape(-1, 3).T
    length = np.where(kind < 2, 0, length)
    unknown = np.full(len(kind), np.nan)
    label = np.zeros(len(kind), np.int64)
    return _merged(
        [Marks(kind, moment, moment + length, label, unknown, unknown, unknown, ("x",))]
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(-1, 999), st.integers(1, 300)),
        max_size=120,
    ),
    st.integers(0, 999),
    st.integers(1, 999),
    st.integers(1, 60),
)
def test_marks_of_a_window_touch_it_and_errors_go_first(rows, start, width, most):
    marks, stop = made_of(rows), start + width
    found = marks.within(start, stop, most)
    touching = [
        (kind, moment)
        for kind, moment, end in zip(marks.kind, marks.moment, marks.end, strict=True)
        if end >= start - 1 and moment < stop
    ]
    chosen = list(zip(found.kind, found.moment, strict=True))
    assert set(chosen) <= set(touching)
    assert len(chosen) == min(most, len(touching))
    errors = sum(kind == 0 for kind, _ in touching)
    assert sum(kind == 0 for kind, _ in chosen) == min(most, errors)
    assert (np.diff(found.moment) >= 0).all()


def test_long_spans_at_one_end_do_not_push_out_the_other():
    rows = [(3, at, 100) for at in range(0, 50_000, 100)]
    rows += [(3, at, 10) for at in range(50_000, 100_000, 10)]
    found = made_of(rows).within(0, 100_000, 400)
    assert len(found) == 400
    right = found.moment >= 50_000
    assert right.sum() >= 100  # one of each of 200 parts, and then the longest
    assert np.diff(found.moment[right]).max() <= 1000
