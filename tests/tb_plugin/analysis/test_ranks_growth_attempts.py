"""Outliers, growth and attempts on planted cases with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.analysis.ranks.attempts import Start, grouped
from memboard.tb_plugin.analysis.ranks.spread import extremes, outliers
from memboard.tb_plugin.analysis.series.growth import slope, trend

SECOND = 10**9


def test_a_rank_far_above_the_others_is_an_outlier_and_noise_is_not():
    rng = np.random.default_rng(1)
    peaks = 40e9 + rng.normal(0, 1e8, 1000)
    assert outliers(peaks) == ()
    peaks[[7, 500]] = 60e9, 50e9
    assert outliers(peaks) == (7, 500)


def test_ranks_that_agree_to_a_fraction_of_a_percent_have_no_outlier():
    peaks = np.full(64, 40e9)
    peaks[3] += 1e8
    assert outliers(peaks) == ()


def test_few_ranks_low_ranks_and_absent_ranks_are_no_outliers():
    assert outliers(np.array([1.0, 1.0, 100.0])) == ()
    peaks = np.full(16, 40e9)
    peaks[2] = 1e9
    peaks[3] = np.nan
    assert outliers(peaks) == ()


def test_extremes_name_each_rank_once():
    assert extremes(np.array([5.0, np.nan, 9.0, 1.0, 7.0]), 3, 1) == ([2, 4, 0], [3])
    assert extremes(np.array([5.0]), 3, 1) == ([0], [])


@pytest.mark.parametrize("num_rows", [30, 100, 5000])
def test_a_planted_leak_is_found_through_noise_and_spikes(num_rows):
    rng = np.random.default_rng(2)
    steps = np.arange(num_rows)
    values = 1e10 + 1e6 * steps + rng.normal(0, 2e5, num_rows)
    values[rng.integers(0, num_rows, num_rows // 12)] += 5e9
    values[: num_rows // 20] = 0
    assert slope(steps, values) == pytest.approx(1e6, rel=0.05)


def test_a_sawtooth_does_not_grow():
    steps = np.arange(2000)
    values = 1e10 + 1e8 * (steps % 10)
    assert abs(slope(steps, values)) < 1e3


def test_growth_is_per_step_whatever_the_distance_of_rows():
    steps = np.arange(0, 3000, 10)
    assert slope(steps, 5.0 * steps) == pytest.approx(5.0)


@pytest.mark.parametrize("num_rows", [120, 2000])
def test_growth_that_began_late_has_a_slope_of_its_own(num_rows):
    rng = np.random.default_rng(7)
    steps = np.arange(num_rows)
    late = np.maximum(0, steps - num_rows * 3 // 5)
    values = 3e10 + 1e7 * steps + 5e8 * late + rng.normal(0, 1e8, num_rows)
    found = trend(steps, values)
    assert found.slope < 4e8
    assert found.late == pytest.approx(5.1e8, rel=0.05)
    ended = 3e10 + 5e8 * np.minimum(steps, num_rows // 2)
    assert trend(steps, ended).late == pytest.approx(0.0, abs=1e3)


@pytest.mark.parametrize("seed", range(20))
def test_steady_growth_noise_and_sawteeth_have_no_other_slope_lately(seed):
    rng = np.random.default_rng(seed)
    steps = np.arange(600)
    for values in (
        3e10 + 1e6 * steps + rng.normal(0, 2e5, 600),
        3e10 + 1e6 * steps,
        np.full(600, 3e10),
    ):
        assert np.isnan(trend(steps, values).late)


def test_too_few_rows_have_no_slope():
    assert np.isnan(slope(np.arange(10), np.arange(10.0)))
    assert np.isnan(slope(np.arange(100), np.full(100, np.nan)))


def starts(*claims) -> list[Start]:
    return [Start(rank, at * SECOND, job, world) for rank, at, job, world in claims]


def test_files_of_one_job_are_one_attempt_whatever_their_order():
    found = grouped(
        starts((1, 5, "a", 2), (0, 0, "a", 2), (0, 100, "b", 2), (1, 90, "b", 2))
    )
    assert found == [[1, 0], [3, 2]]


def test_without_a_job_a_rank_seen_again_begins_a_new_attempt():
    claims = starts((0, 0, "", 2), (1, 1, "", 2), (1, 60, "", 2), (0, 61, "", 2))
    assert grouped(claims) == [[0, 1], [2, 3]]


def test_a_world_of_another_size_is_another_attempt():
    claims = starts((0, 0, "", 2), (1, 1, "", 2), (3, 60, "", 4), (0, 61, "", 4))
    assert grouped(claims) == [[0, 1], [2, 3]]


def test_the_same_rank_twice_in_one_job_is_two_attempts():
    claims = starts((0, 0, "a", 1), (0, 50, "a", 1))
    assert grouped(claims) == [[0], [1]]


def test_a_file_without_a_header_joins_the_attempt_that_lacks_it():
    claims = starts((0, 0, "a", 2), (0, 100, "b", 2), (1, 101, "", 0), (1, 2, "", 0))
    assert grouped(claims) == [[0, 3], [1, 2]]
