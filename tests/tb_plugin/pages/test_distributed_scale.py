"""Ranks beside each other: 1,024 of them in answers of at most 300 KB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from memboard.tb_plugin.analysis.ranks.collectives import RankCollectives
from memboard.tb_plugin.analysis.series.heatmap import farthest_ranks
from memboard.tb_plugin.formats.recording.rank_summaries import (
    RankSummaries,
    RankSummary,
)
from tests.kineto_files import trained
from tests.tb_plugin.client import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_BYTES = 300_000


def summary(rank: int, num_steps: int, num_calls: int, group: str = "g") -> RankSummary:
    """Rank 700 comes last in every collective, and its step 30 takes four times as long."""
    kinds = ("all_gather", "reduce_scatter", "all_reduce")
    calls = np.arange(num_calls)
    took = np.where(rank == 700, 10_000, 5_000_000 + 100 * ((rank * 7 + calls) % 90))
    duration = np.full(num_steps, 100_000_000)
    if rank == 700:
        duration[30] *= 4
    return RankSummary(
        rank=rank,
        step=np.arange(num_steps),
        start_ns=100_000_000 * np.arange(num_steps),
        duration_ns=duration,
        computation_ns=np.full(num_steps, 60_000_000) + rank,
        communication_ns=np.full(num_steps, 30_000_000) + 10 * rank,
        overlap_ns=np.full(num_steps, 5_000_000) + rank,
        loading_ns=np.zeros(num_steps, np.int64),
        collectives=RankCollectives(
            row=calls,
            kind=tuple(kinds[at % 3] for at in range(num_calls)),
            group=tuple(f"{group}{at % 4}" for at in range(num_calls)),
            start_ns=1_000_000 * calls,
            duration_ns=took,
            num_bytes=np.full(num_calls, 4_000_000),
            group_size=np.full(num_calls, 1024),
            sequence=calls,
        ),
    )


@pytest.fixture
def page_of(tmp_path, monkeypatch) -> Callable[[Sequence[RankSummary]], Page]:
    """The page of a run whose traces hold these ranks."""
    trained().write(tmp_path / "exp" / "host_0.1.pt.trace.json")

    def page(ranks: Sequence[RankSummary]) -> Page:
        monkeypatch.setattr(RankSummaries, "summaries", lambda *_: (ranks, ()))
        return Page(tmp_path)

    return page


def small(page: Page, route: str, **query):
    """The answer, which is not large."""
    assert len(page.raw(route, run=page.run_id("exp"), **query).data) <= MOST_BYTES
    return page.of_run(route, "exp", **query)


def cells_of(page: Page, **query) -> tuple[np.ndarray, dict]:
    cells = small(page, "/distributed_heatmap", **query)
    return cells["values"].reshape(cells["num_rows"], -1), cells


@pytest.mark.parametrize(
    "group", ["", "a name that is far longer than any name is " * 6]
)
def test_the_answers_stay_small_and_name_the_rank_that_is_last(page_of, group):
    page = page_of([summary(rank, 60, 120, group) for rank in range(1024)])
    answer = small(page, "/distributed")
    assert answer["collectives"]["num_all"] == 1024 * 12
    assert answer["groups"]["num_all"] == 12
    (finding,) = answer["findings"]
    assert finding["sentence"].startswith("The other 1,023 ranks wait for rank 700: ")
    values, _ = cells_of(page, part="step", px=2000, rows=1024)
    assert values.shape == (1024, 60)
    assert np.argwhere(values > 60_000).tolist() == [[700, 30]]


def test_of_very_many_ranks_and_steps_the_worst_stay_in_sight(page_of):
    page = page_of([summary(rank, 4_000, 1) for rank in range(1024)])
    values, cells = cells_of(page, part="step", px=8000, rows=1024)
    ((row, column),) = np.argwhere(values > 60_000).tolist()
    first = cells["row_rank"][row]
    assert first <= 700 < first + cells["ranks_per_row"]
    assert column == 30 // cells["steps_per_column"]


def test_of_pooled_ranks_the_one_that_differs_most_is_shown():
    nan = np.nan
    values = np.array([[5, 5], [1, 5], [5, nan], [5, 9], [6, nan]], dtype=float)
    np.testing.assert_array_equal(farthest_ranks(values, 2), [[1, 5], [5, 9], [6, nan]])
    assert farthest_ranks(values, 1) is values
    assert farthest_ranks(np.empty((0, 3)), 2).shape == (0, 3)
    nothing = np.full((3, 2), nan)
    assert np.isnan(farthest_ranks(nothing, 2)).all()


def test_who_waits_least_is_seen_among_a_thousand(page_of):
    """In 300 rows for 1,024 ranks: the longest of four would hide it."""
    ranks = [summary(rank, 40, 3) for rank in range(1024)]
    ranks[700].communication_ns[:] = 1_000_000
    ranks[700].overlap_ns[:] = 0
    values, cells = cells_of(page_of(ranks), px=900, rows=300)
    row = 700 // cells["ranks_per_row"]
    assert len(values) <= 300
    assert (values[row] == 1).all()
    assert (np.delete(values, row, axis=0) > 1).all()
