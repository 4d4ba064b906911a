"""A picture drawn coarsely for want of time comes finer at the next polls, by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memboard.tb_plugin.budget import Budget
from tests.builders import RunBuilder, peak_of
from tests.tb_plugin.client import Page, answered, decode

NUM_STEPS = 8192
"""Enough to be rolled up: a bucket holds eight of them."""

ZOOMED = {"x0": 1000, "x1": 1400, "px": 40}
"""More buckets than pixels, so that lines stay coarse; more steps than buckets."""

DRAWN = [
    ("/timeline", "memboard.tb_plugin.pages.timeline.timeline.Budget"),
    ("/steps", "memboard.tb_plugin.facts.steps.step_columns.Budget"),
    ("/heatmap", "memboard.tb_plugin.facts.readers.Budget"),
    ("/step_heatmap", "memboard.tb_plugin.facts.readers.Budget"),
]
"""Routes, and the budget that is spent before anything was read."""


class Spent(Budget):
    """A budget that a busy machine has used up before any work began."""

    def __init__(self, seconds: float, part_of: Budget | None = None) -> None:
        super().__init__(seconds, part_of)
        self._deadline = -math.inf


@pytest.fixture
def page(run: RunBuilder, tmp_path) -> Page:
    for number in range(2):
        rank = run.rank(number, world_size=2)
        steps = np.arange(NUM_STEPS)
        rank.steps(
            steps,
            allocated_peak_bytes=peak_of(number, steps),
            step_time_seconds=0.1 + steps % 7 / 100,
        )
        rank.close()
    return Page(tmp_path)


def asked(page, route, tag=None):
    # Columns no narrower than a step, or buckets would be as good as the steps.
    px = ZOOMED["px"] if route == "/timeline" else 600
    query = {**ZOOMED, "run": page.run_id("exp"), "px": px}
    headers = None if tag is None else {"If-None-Match": tag}
    return page.raw(route, headers=headers, **query)


def is_fine(route, response):
    found = decode(response)
    if route == "/timeline":
        return all(
            (line["y"] == peak_of(line["rank"], line["x"].astype(np.int64))).all()
            for line in found["lines"]
        )
    return found["exact"]


@pytest.mark.parametrize(("route", "budget"), DRAWN)
def test_a_coarse_answer_of_a_run_at_rest_becomes_fine(
    page, monkeypatch, route, budget
):
    """The page asks with the tag it holds, as at each of its polls."""
    page.of_run("/timeline", "exp")  # opens the files, which is not what is cut short
    with monkeypatch.context() as busy:
        busy.setattr(budget, Spent)
        first = asked(page, route)
    assert not is_fine(route, first)
    held = first

    def poll():
        nonlocal held
        found = asked(page, route, held.headers["ETag"])
        held = held if found.status_code == 304 else found
        return found.status_code

    fine = answered(lambda: (poll(), is_fine(route, held)), lambda seen: seen[1])
    assert fine[0] == 200
    answered(poll, lambda status: status == 304)
    assert is_fine(route, held)


def test_what_no_budget_would_allow_is_not_asked_for_again():
    whole = Budget(60.0)
    part = Budget(30.0, whole)
    assert not part.allows(1e6)
    assert part.exhausted
    assert not part.put_off
    assert not whole.put_off
    late = Spent(30.0, whole)
    assert not late.allows(1.0)
    assert late.put_off
    assert whole.put_off
    assert not whole.exhausted
