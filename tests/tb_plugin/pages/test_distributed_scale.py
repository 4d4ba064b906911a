"""Ranks beside each other: 1,024 of them in answers of at most 300 KB."""

from __future__ import annotations

import numpy as np
import pytest

from tb_plugin.analysis.ranks.collectives import RankCollectives
from tb_plugin.analysis.ranks.distributed import compared
from tb_plugin.analysis.series.heatmap import farthest_ranks
from tb_plugin.api.base import RunSummary
from tb_plugin.contract.wire import envelope
from tb_plugin.formats.recording.profiles import RankSummary
from tb_plugin.pages.distributed.distributed import (
    Cycle,
    DistributedHeatmapQuery,
    DistributedQuery,
    distributed,
    distributed_heatmap,
)

MOST_BYTES = 300_000
RUN = RunSummary(
    id="r",
    name="run",
    num_ranks=1024,
    world_size=1024,
    num_attempts=1,
    first_ms=0.0,
    last_ms=0.0,
    last_step=None,
    live=False,
    virtual_gpu="",
    simulated=False,
    imported=True,
    made_of="traces",
    device_type="cuda",
    num_problems=0,
)


def summary(rank: int, num_steps: int, num_calls: int, group: str) -> RankSummary:
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


@pytest.mark.parametrize(
    "group", ["", "a name that is far longer than any name is " * 6]
)
def test_the_answers_stay_small_and_name_the_rank_that_is_last(group):
    summaries = [summary(rank, 60, 120, group) for rank in range(1024)]
    cycle = Cycle((1,), 1, 1024, summaries, ())
    together = compared({one.rank: one.collectives for one in summaries})
    query = DistributedQuery(run="r")
    answer = distributed(RUN, cycle, together, query)
    assert len(envelope(answer)) <= MOST_BYTES
    assert answer.num_collectives == 1024 * 12
    assert answer.num_matched == 120
    (finding,) = answer.findings
    assert finding.sentence.startswith("Rank 700 comes last")
    heatmap = distributed_heatmap(
        RUN, cycle, DistributedHeatmapQuery(part="step", px=2000, rows=1024)
    )
    assert len(envelope(heatmap)) <= MOST_BYTES
    cells = np.frombuffer(heatmap.cells.values.data, "<u2").reshape(1024, 60)
    assert np.argwhere(cells > 60_000).tolist() == [[700, 30]]


def test_of_very_many_ranks_and_steps_the_worst_stay_in_sight():
    summaries = [summary(rank, 4_000, 1, "") for rank in range(1024)]
    cycle = Cycle((1,), 1, 1024, summaries, ())
    query = DistributedHeatmapQuery(part="step", px=8000, rows=1024)
    answer = distributed_heatmap(RUN, cycle, query)
    assert len(envelope(answer)) <= MOST_BYTES
    cells = answer.cells
    values = np.frombuffer(cells.values.data, "<u2")
    values = values.reshape(cells.num_rows, cells.num_columns)
    ((row, column),) = np.argwhere(values > 60_000).tolist()
    first = np.frombuffer(cells.row_rank.data, "<i4")[row]
    assert first <= 700 < first + cells.ranks_per_row
    assert column == 30 // cells.steps_per_column


def test_of_pooled_ranks_the_one_that_differs_most_is_shown():
    nan = np.nan
    values = np.array([[5, 5], [1, 5], [5, nan], [5, 9], [6, nan]], dtype=float)
    np.testing.assert_array_equal(farthest_ranks(values, 2), [[1, 5], [5, 9], [6, nan]])
    assert farthest_ranks(values, 1) is values
    assert farthest_ranks(np.empty((0, 3)), 2).shape == (0, 3)
    nothing = np.full((3, 2), nan)
    assert np.isnan(farthest_ranks(nothing, 2)).all()


def test_who_waits_least_is_seen_among_a_thousand():
    """In 300 rows for 1,024 ranks: the longest of four would hide it."""
    ranks = tuple(summary(rank, 40, 3, "g") for rank in range(1024))
    ranks[700].communication_ns[:] = 1_000_000
    ranks[700].overlap_ns[:] = 0
    cycle = Cycle((1,), 1, 1024, ranks, ())
    query = DistributedHeatmapQuery(px=900, rows=300)
    cells = distributed_heatmap(RUN, cycle, query).cells
    shown = np.frombuffer(cells.values.data, "<u2").reshape(cells.num_rows, -1)
    row = 700 // cells.ranks_per_row
    assert cells.num_rows <= 300
    assert (shown[row] == 1).all()
    assert (np.delete(shown, row, axis=0) > 1).all()
