"""Lines up to 16 ranks, bands and outliers above; exact values; marks."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.columns import Column
from memboard.tb_plugin.analysis.ranks.spread import spread
from memboard.tb_plugin.analysis.series.rows import Rows
from tests.builders import START_NS, STEP_NS, RunBuilder, age, peak_of
from tests.tb_plugin.client import Page, refresh

SERIES = "step/allocated_peak_bytes"


def timeline(logdir, **query):
    return Page(logdir).of_run("/timeline", "exp", **query)


def test_few_ranks_have_a_line_each_with_exact_values(run, tmp_path):
    run.simple(3, 200)
    found = timeline(tmp_path)
    assert found["series"]["key"] == SERIES
    assert found["band"] is None
    assert found["rows_per_point"] == 1
    assert [line["rank"] for line in found["lines"]] == [0, 1, 2]
    for line in found["lines"]:
        assert line["why"] == "selected"
        assert line["x"].tolist() == list(range(200))
        assert line["y"].tolist() == peak_of(line["rank"], np.arange(200)).tolist()
        assert line["y_low"].tolist() == line["y"].tolist()
    assert (found["x_low"], found["x_high"]) == (0, 199)
    assert (found["capacity_bytes"], found["capacity_kind"]) == (80 << 30, "device")


def test_many_ranks_have_bands_that_equal_numpy_and_few_lines(run, tmp_path):
    num_ranks, num_steps = 40, 120
    run.simple(num_ranks, num_steps)
    found = timeline(tmp_path, pinned="20-21")
    values = np.array(
        [peak_of(rank, np.arange(num_steps)) for rank in range(num_ranks)]
    )
    band = found["band"]
    assert band["num_ranks"] == num_ranks
    assert band["x"].tolist() == list(range(num_steps))
    for name, percent in [
        ("low", 0),
        ("p5", 5),
        ("median", 50),
        ("p95", 95),
        ("high", 100),
    ]:
        np.testing.assert_allclose(band[name], np.percentile(values, percent, axis=0))
    assert band["high_rank"].tolist() == values.argmax(axis=0).tolist()
    lines = {line["rank"]: line["why"] for line in found["lines"]}
    assert lines == {
        20: "pinned",
        21: "pinned",
        39: "high",
        38: "high",
        37: "high",
        0: "low",
    }


def test_however_many_are_pinned_at_most_32_lines_are_drawn(run, tmp_path):
    run.simple(60, 10)
    assert len(timeline(tmp_path, pinned="0-59")["lines"]) == 32


def test_ranks_are_chosen_by_rank_and_by_range(run, tmp_path):
    run.simple(20, 10)
    page = Page(tmp_path)
    one = page.of_run("/timeline", "exp", rank=7)
    assert [line["rank"] for line in one["lines"]] == [7]
    some = page.of_run("/timeline", "exp", ranks="0-2,19")
    assert [line["rank"] for line in some["lines"]] == [0, 1, 2, 19]


@pytest.mark.parametrize("px", [50, 300])
def test_merged_points_keep_every_peak_of_a_long_run(run, tmp_path, px):
    rank = run.rank()
    num_steps = 5000
    values = np.full(num_steps, 1000)
    values[[17, 2501, 4999]] = 9000, 8000, 7000
    values[333] = 5
    rank.steps(range(num_steps), allocated_peak_bytes=values)
    rank.close()
    (line,) = timeline(tmp_path, px=px)["lines"]
    assert len(line["x"]) <= 2 * px + 2
    peaks = dict(zip(line["x"], line["y"], strict=True))
    assert (peaks[17], peaks[2501], peaks[4999]) == (9000, 8000, 7000)
    assert line["y_low"].min() == 5
    assert np.all(np.diff(line["x"]) > 0)


def test_zooming_in_shows_the_rows_themselves(run, tmp_path):
    rank = run.rank()
    rank.steps(range(5000), allocated_peak_bytes=peak_of(0, np.arange(5000)))
    rank.close()
    found = timeline(tmp_path, x0=2000, x1=2100, px=800)
    assert found["rows_per_point"] == 1
    assert (found["x_low"], found["x_high"]) == (0, 4999)
    (line,) = found["lines"]
    inside = (line["x"] >= 2000) & (line["x"] <= 2100)
    assert line["x"][inside].tolist() == list(range(2000, 2101))
    assert line["y"][inside].tolist() == peak_of(0, np.arange(2000, 2101)).tolist()


def test_the_rollups_picture_has_the_peaks_of_the_rows(run, tmp_path, monkeypatch):
    """Where rows are too dear, buckets give the same peaks, at most a bucket off."""
    monkeypatch.setattr(
        "memboard.tb_plugin.formats.recording.series.SECONDS_PER_CHUNK", 1e6
    )
    rank = run.rank()
    rng = np.random.default_rng(3)
    values = rng.integers(0, 1 << 40, 4096 * 2)
    rank.steps(range(len(values)), allocated_peak_bytes=values)
    rank.close()
    (line,) = timeline(tmp_path, px=64)["lines"]
    assert line["y"].max() == values.max()
    for x, y in zip(line["x"], line["y"], strict=True):
        assert y in values[int(x) : int(x) + 8]


def test_absent_values_are_gaps_and_never_zero(run, tmp_path):
    rank = run.rank()
    rank.steps(range(6), allocated_peak_bytes=[5, None, None, 7, 0, None])
    rank.close()
    (line,) = timeline(tmp_path)["lines"]
    assert np.array_equal(line["y"], [5, np.nan, np.nan, 7, 0, np.nan], equal_nan=True)


def test_infinite_values_read_as_not_recorded(run, tmp_path):
    rank = run.rank()
    rank.steps(range(4), step_time_seconds=[0.5, np.inf, -np.inf, 0.25])
    (line,) = timeline(tmp_path, series="step/step_time_seconds")["lines"]
    assert np.array_equal(line["y"], [0.5, np.nan, np.nan, 0.25], equal_nan=True)


def restarted(run: RunBuilder) -> None:
    first = run.rank(job="a")
    first.steps(range(100), allocated_peak_bytes=[1000 + s for s in range(100)])
    second = run.rank(job="b", attempt=1)
    second.steps(
        range(60, 150), allocated_peak_bytes=[2000 + s for s in range(60, 150)]
    )
    second.close()


def test_on_the_step_axis_a_restart_replaces_what_it_ran_again(run, tmp_path):
    restarted(run)
    age(tmp_path)
    found = timeline(tmp_path)
    (line,) = found["lines"]
    assert line["x"].tolist() == list(range(150))
    expected = [1000 + s for s in range(60)] + [2000 + s for s in range(60, 150)]
    assert line["y"].tolist() == expected
    assert [(m["kind"], m["x"], m["label"]) for m in found["marks"]] == [
        ("attempt", 60, "2")
    ]
    (zoomed,) = timeline(tmp_path, x0=55, x1=65)["lines"]
    inside = (zoomed["x"] >= 55) & (zoomed["x"] <= 65)
    assert zoomed["y"][inside].tolist() == expected[55:66]


@pytest.mark.parametrize("kind", ["wall", "relative"])
def test_on_time_axes_all_rows_of_all_attempts_stay(run, tmp_path, kind):
    restarted(run)
    found = timeline(tmp_path, x=kind)
    (line,) = found["lines"]
    assert len(line["x"]) == 190
    assert np.all(np.diff(line["x"]) > 0)
    (seam,) = found["marks"]
    if kind == "wall":
        assert line["x"][0] == (START_NS + STEP_NS) / 1e6
        assert seam["x"] == (START_NS + 86_400 * 10**9) / 1e6
    else:
        # 100 s of the first attempt, then the second goes on.
        assert line["x"][0] == pytest.approx(1000)
        assert line["x"][-1] == pytest.approx((100 + 90) * 1000)
        assert seam["x"] == pytest.approx(100_000)


def test_a_step_that_goes_back_within_a_file_is_handled_the_same_way(run, tmp_path):
    rank = run.rank()
    rank.steps(range(50), allocated_peak_bytes=[1] * 50)
    rank.steps(range(20, 60), allocated_peak_bytes=[2] * 40)
    rank.close()
    (line,) = timeline(tmp_path)["lines"]
    assert line["x"].tolist() == list(range(60))
    assert line["y"].tolist() == [1] * 20 + [2] * 40


def test_phases_are_separate_and_training_comes_first(run, tmp_path):
    rank = run.rank()
    rank.steps(range(4), phase="val", allocated_peak_bytes=[9, 9, 9, 9])
    rank.steps(range(6), allocated_peak_bytes=[1] * 6)
    rank.note("phase", 5, phase="val")
    found = timeline(tmp_path)
    assert found["phases"] == ["train", "val"]
    assert found["lines"][0]["y"].tolist() == [1] * 6
    val = timeline(tmp_path, phase="val")
    assert val["lines"][0]["y"].tolist() == [9] * 4
    assert [(m["kind"], m["x"], m["label"]) for m in val["marks"]] == [
        ("phase", 5, "val")
    ]


@pytest.mark.parametrize("digest", [True, False])
@pytest.mark.parametrize(("noted", "shown"), [(6, 6), (0, 6), (40, 6), (None, None)])
def test_a_phase_stands_where_the_training_stood(run, tmp_path, digest, noted, shown):
    rank = run.rank()
    rank.steps(range(6), allocated_peak_bytes=[1] * 6)
    rank.note("phase", noted, time_ns=rank._next_ns + 1, phase="val")
    rank.steps(range(40, 43), phase="val", allocated_peak_bytes=[9] * 3)
    rank.steps(range(6, 12), allocated_peak_bytes=[1] * 6)
    if digest:
        rank.close()
    marks = [m["x"] for m in timeline(tmp_path)["marks"] if m["kind"] == "phase"]
    assert marks == ([] if shown is None else [shown])
    (wall,) = [
        m["x"] for m in timeline(tmp_path, x="wall")["marks"] if m["kind"] == "phase"
    ]
    assert wall == (START_NS + 6 * STEP_NS + 1) / 1e6


def test_marks_name_epochs_drops_oom_and_the_users_own(run, tmp_path):
    rank = run.rank(2)
    rank.steps(range(5), allocated_peak_bytes=[1] * 5, num_ooms=[0, 0, 1, 1, 3])
    rank.note("epoch", 2, epoch=7, length=10)
    rank.note("mark", 3, label="<b>lr</b>")
    rank.note("dropped", 4, table="step", num_rows=12, reason="queue full")
    rank.close()
    marks = {
        (m["kind"], m["x"], m["rank"], m["label"]) for m in timeline(tmp_path)["marks"]
    }
    assert marks == {
        ("oom", 2, 2, "1"),
        ("oom", 4, 2, "2"),
        ("epoch", 2, None, "7"),
        ("user", 3, None, "<b>lr</b>"),
        ("dropped", 4, 2, "12"),
    }


def test_a_rank_that_ran_out_of_memory_has_a_line_among_many(run, tmp_path):
    run.simple(30, 10)
    rank = run.rank(11, attempt=1, world_size=30)
    rank.steps(range(3), allocated_peak_bytes=[1] * 3, num_ooms=[0, 0, 1])
    lines = {line["rank"]: line["why"] for line in timeline(tmp_path)["lines"]}
    assert lines[11] == "oom"


def test_timed_tables_have_several_rows_per_step(run, tmp_path):
    rank = run.rank()
    rank.steps(range(3), allocated_peak_bytes=[1, 2, 3])
    rank.rows("memory", [0, 0, 1, 1, 2], memory_used_bytes=[10, 30, 20, 5, 7])
    (line,) = timeline(tmp_path, series="memory/memory_used_bytes")["lines"]
    assert line["x"].tolist() == [0, 1, 2]
    assert line["y"].tolist() == [30, 20, 7]
    assert line["y_low"].tolist() == [10, 5, 7]
    (on_time,) = timeline(tmp_path, series="memory/memory_used_bytes", x="wall")[
        "lines"
    ]
    assert on_time["y"].tolist() == [10, 30, 20, 5, 7]


def test_columns_unknown_to_this_version_are_drawn(run, tmp_path):
    column = Column(name="flux", unit="tesla", group="stars", dtype="f4")
    rank = run.rank()
    rank.rows("invention", range(3), extra=[column], flux=[1.0, 2.0, 4.0])
    found = timeline(tmp_path, series="invention/flux")
    assert found["series"]["unit"] == "count"
    assert found["lines"][0]["y"].tolist() == [1, 2, 4]


def test_columns_that_change_midway_are_one_series(run, tmp_path):
    rank = run.rank()
    rank.steps(range(5), allocated_peak_bytes=[1] * 5)
    rank.steps(range(5, 9), allocated_peak_bytes=[2] * 4, num_ooms=[0] * 4)
    rank.steps(range(9, 12), allocated_peak_bytes=[3] * 3)
    rank.close()
    (line,) = timeline(tmp_path)["lines"]
    assert line["x"].tolist() == list(range(12))
    assert line["y"].tolist() == [1] * 5 + [2] * 4 + [3] * 3


def test_a_series_of_another_run_gives_the_default(run, tmp_path):
    run.simple(1, 5)
    assert timeline(tmp_path, series="no/such", phase="none")["series"]["key"] == SERIES


def test_a_run_with_nothing_to_draw_says_why(run, tmp_path):
    rank = run.rank()
    rank.source("device", "absent", "no accelerator", "Run on a GPU.")
    rank.source("rss", "off", "rss: false", "Set rss: true")
    found = timeline(tmp_path)
    assert found["series"] is None
    assert found["lines"] == []
    assert {(a["source"], a["group"], a["reason"]) for a in found["absent"]} == {
        ("device", "device", "no accelerator"),
        ("rss", "process", "rss: false"),
    }


def test_rows_appear_as_they_are_written(run, tmp_path):
    rank = run.rank()
    rank.steps(range(10), allocated_peak_bytes=[1] * 10)
    page = Page(tmp_path)
    assert len(page.of_run("/timeline", "exp")["lines"][0]["x"]) == 10
    rank.steps(range(10, 15), allocated_peak_bytes=[2] * 5)
    refresh(page)
    assert (
        page.of_run("/timeline", "exp")["lines"][0]["y"].tolist() == [1] * 10 + [2] * 5
    )


def test_a_finer_line_does_not_cost_the_band_again(run, tmp_path, monkeypatch):
    """Lines get finer from poll to poll; what thousands of ranks cost is paid once."""
    num_spreads = 0

    def counted(*values):
        nonlocal num_spreads
        num_spreads += 1
        return spread(*values)

    monkeypatch.setattr("memboard.tb_plugin.facts.series.bands.spread", counted)
    monkeypatch.setattr("memboard.tb_plugin.pages.timeline.timeline._LINE_SECONDS", 0.0)
    ranks = run.simple(20, 5000)
    page = Page(tmp_path)
    first = page.of_run("/timeline", "exp")
    for _ in range(3):
        again = page.of_run("/timeline", "exp")
        assert again["band"]["high"].tolist() == first["band"]["high"].tolist()
    assert num_spreads == 1
    for other in ({"pinned": "3"}, {"x0": 100.0}, {"x": "wall"}, {"ranks": "0-17"}):
        page.of_run("/timeline", "exp", **other)
    assert num_spreads == 5
    ranks[7].steps([5000], allocated_peak_bytes=[1 << 40])
    refresh(page)
    grown = page.of_run("/timeline", "exp")["band"]
    assert (grown["high"].max(), num_spreads) == (1 << 40, 6)


def test_whether_series_are_flat_is_judged_once_for_each_state_of_a_file(
    tmp_path, monkeypatch
):
    num_judged = 0
    is_flat = Rows.is_flat.fget

    def counted(rows):
        nonlocal num_judged
        num_judged += 1
        return is_flat(rows)

    monkeypatch.setattr(Rows, "is_flat", property(counted))
    rank = RunBuilder(tmp_path / "exp").rank()
    rank.steps(range(20), allocated_peak_bytes=[5] * 20, rss_bytes=range(20))
    page = Page(tmp_path)

    def flat() -> dict[str, bool]:
        series = page.of_run("/timeline", "exp", rank=0)["available"]
        return {one["key"].partition("/")[2]: one["is_flat"] for one in series}

    first, num_first = flat(), num_judged
    assert (first["allocated_peak_bytes"], first["rss_bytes"]) == (True, False)
    assert flat() == first
    assert num_judged == num_first
    rank.steps(range(20, 40), allocated_peak_bytes=[6] * 20, rss_bytes=range(20))
    refresh(page)
    assert not flat()["allocated_peak_bytes"]
