"""Each cell is the highest value inside it, whatever way it was read."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders import peak_of
from tests.tb_plugin.client import Page


def cells(found) -> np.ndarray:
    """Values of the cells; NaN where nothing was recorded."""
    codes = (
        found["values"].reshape(found["num_rows"], found["num_columns"]).astype(float)
    )
    scale = (found["value_high"] - found["value_low"]) / 65534
    values = found["value_low"] + (codes - 1) * scale
    values[codes == 0] = np.nan
    return values


def brute_force(values: np.ndarray, found) -> np.ndarray:
    per_row, per_column = found["ranks_per_row"], int(found["steps_per_column"])
    start = int(found["x0"])
    result = np.full((found["num_rows"], found["num_columns"]), np.nan)
    for row in range(found["num_rows"]):
        for column in range(found["num_columns"]):
            at = start + column * per_column
            part = values[row * per_row : (row + 1) * per_row, at : at + per_column]
            if part.size:
                result[row, column] = part.max()
    return result


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"px": 7},
        {"rows": 3},
        {"px": 13, "rows": 4},
        {"x0": 100, "x1": 180},
        {"x0": 100, "x1": 180, "px": 10, "rows": 5},
        {"x0": 299, "x1": 299},
    ],
    ids=str,
)
def test_cells_equal_a_plain_loop_over_the_rows(run, tmp_path, query):
    num_ranks, num_steps = 18, 300
    run.simple(num_ranks, num_steps)
    found = Page(tmp_path).of_run("/heatmap", "exp", **query)
    values = np.array(
        [peak_of(rank, np.arange(num_steps)) for rank in range(num_ranks)]
    )
    assert found["exact"] is True
    assert found["num_columns"] <= query.get("px", 1200)
    assert found["num_rows"] <= query.get("rows", 800)
    assert found["row_rank"].tolist() == list(
        range(0, num_ranks, found["ranks_per_row"])
    )
    expected = brute_force(values, found)
    tolerance = (found["value_high"] - found["value_low"]) / 65534
    np.testing.assert_allclose(cells(found), expected, atol=tolerance)


def test_a_long_run_is_exact_where_it_is_zoomed_and_says_where_it_is_not(
    run, tmp_path, monkeypatch
):
    rank = run.rank()
    rank.steps(range(5000), allocated_peak_bytes=peak_of(0, np.arange(5000)))
    rank.close()
    page = Page(tmp_path)
    zoomed = page.of_run("/heatmap", "exp", x0=1000, x1=1100)
    assert zoomed["exact"] is True
    expected = peak_of(0, np.arange(1000, 1101)).astype(float)
    np.testing.assert_allclose(cells(zoomed)[0], expected, atol=1)
    # Where decoding is too dear, buckets of 8 rows are painted over their steps.
    monkeypatch.setattr(
        "memboard.tb_plugin.formats.recording.series.SECONDS_PER_CHUNK", 1e6
    )
    coarse = Page(tmp_path).of_run("/heatmap", "exp", x0=1000, x1=1100)
    assert coarse["exact"] is False
    assert np.all(cells(coarse)[0] >= expected - 1)
    assert cells(coarse)[0].max() <= peak_of(0, np.arange(992, 1112)).max() + 1


def test_ranks_that_ended_early_or_never_recorded_are_empty_not_zero(run, tmp_path):
    run.simple(2, 10)
    late = run.rank(2, world_size=2)
    late.steps(range(5, 8), allocated_peak_bytes=[3, 4, 5])
    silent = run.rank(3, world_size=2)
    silent.steps(range(10), rss_bytes=[1] * 10)
    found = Page(tmp_path).of_run("/heatmap", "exp")
    grid = cells(found)
    assert found["num_rows"] == 4
    assert np.isnan(grid[2]).tolist() == [True] * 5 + [False] * 3 + [True] * 2
    assert np.isnan(grid[3]).all()


@pytest.mark.parametrize("query", [{}, {"ranks": "3,5"}, {"rows": 6}], ids=str)
def test_excess_is_beyond_the_median_of_all_ranks(run, tmp_path, query):
    num_ranks, num_steps = 18, 40
    run.simple(num_ranks, num_steps)
    found = Page(tmp_path).of_run("/heatmap", "exp", of="excess", **query)
    values = np.array(
        [peak_of(rank, np.arange(num_steps)) for rank in range(num_ranks)]
    )
    excess = values - np.median(values, axis=0)
    if "ranks" in query:  # what is in sight does not decide the median
        excess = excess[[3, 5]]
    if "rows" in query:  # of three ranks the one farthest from it, to either side
        parts = excess.reshape(6, 3, -1)
        place = np.abs(parts).argmax(axis=1, keepdims=True)
        excess = np.take_along_axis(parts, place, axis=1)[:, 0]
    tolerance = (found["value_high"] - found["value_low"]) / 65534
    assert cells(found) == pytest.approx(excess, abs=tolerance)
