"""Bands against numpy, cells against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memboard.tb_plugin.analysis.ranks.spread import spread
from memboard.tb_plugin.analysis.series.heatmap import (
    pooled_ranks,
    quantized,
    step_edges,
)

MATRIX = arrays(
    float,
    st.tuples(st.integers(1, 30), st.integers(1, 12)),
    elements=st.floats(0, 1e12) | st.just(float("nan")),
)


@given(MATRIX)
def test_bands_equal_numpys_percentiles(matrix):
    ranks = range(100, 100 + len(matrix))
    bands = spread(matrix, ranks, np.arange(matrix.shape[1], dtype=float))
    is_recorded = ~np.isnan(matrix)
    assert bands.num_ranks == is_recorded.any(axis=1).sum()
    assert bands.x.tolist() == np.flatnonzero(is_recorded.any(axis=0)).tolist()
    for column, x in enumerate(bands.x.astype(int)):
        values = matrix[:, x]
        present = values[~np.isnan(values)]
        found = [bands.low, bands.p5, bands.median, bands.p95, bands.high]
        expected = np.percentile(present, [0, 5, 50, 95, 100])
        np.testing.assert_allclose(
            [line[column] for line in found], expected, rtol=1e-9, atol=1e-300
        )
        assert values[ranks.index(bands.high_rank[column])] == present.max()


@given(MATRIX, st.integers(1, 40))
def test_pooled_ranks_are_the_highest_of_each_group(matrix, per_row):
    pooled = pooled_ranks(matrix, per_row)
    assert len(pooled) == -(-len(matrix) // per_row)
    for row in range(len(pooled)):
        group = matrix[row * per_row : (row + 1) * per_row]
        for column in range(matrix.shape[1]):
            present = group[:, column][~np.isnan(group[:, column])]
            if len(present):
                assert pooled[row, column] == present.max()
            else:
                assert np.isnan(pooled[row, column])


@given(MATRIX)
def test_cells_come_back_within_half_a_step_and_absence_stays(matrix):
    cells = quantized(matrix)
    absent = np.isnan(matrix)
    assert np.array_equal(cells.values == 0, absent)
    if absent.all():
        return
    back = cells.low + (cells.values - 1.0) * (cells.high - cells.low) / 65534
    error = np.abs(back - matrix)[~absent]
    assert error.max() <= (cells.high - cells.low) / 65534 / 2 * 1.001 + 1e-3
    assert cells.values[matrix == cells.low].tolist() == [1] * np.count_nonzero(
        matrix == cells.low
    )
    if cells.high > cells.low:
        assert np.all(cells.values[matrix == cells.high] == 65535)


@pytest.mark.parametrize(
    ("low", "high", "px", "per_column", "num_columns"),
    [
        (0, 99, 100, 1, 100),
        (0, 99, 1000, 1, 100),
        (0, 9999, 1200, 9, 1112),
        (7, 7, 100, 1, 1),
    ],
)
def test_columns_hold_whole_steps_and_fit_the_width(
    low, high, px, per_column, num_columns
):
    edges, steps = step_edges(low, high, px)
    assert steps == per_column
    assert len(edges) - 1 == num_columns <= px
    assert edges[0] == low
    assert edges[-1] > high
    assert np.all(np.diff(edges) == per_column)
