"""The routes about steps: sums, the slowest step of each column, levels of detail."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.collector.format.columns import Column
from tests.builders import START_NS, RunBuilder
from tests.tb_plugin.client import Page, decode
from tests.tb_plugin.pages.profiled import columns_of
from tests.tb_plugin.pages.test_heatmap import cells
from tests.tb_plugin.step_runs import CONFIG, MS, PARTS, REST, Story, write

MOST_BYTES = 300_000


def story(tmp_path, told, **more) -> Page:
    write(tmp_path / "exp", told, **more)
    return Page(tmp_path)


def parts_of(found) -> dict[str, np.ndarray]:
    return {part["name"]: part["seconds"] for part in found["parts"]}


# /steps


@pytest.mark.parametrize("x", ["step", "relative", "wall"])
def test_parts_of_one_rank_are_what_was_recorded(tmp_path, x):
    told = Story(1, 120, more=lambda r, s: {"eval": 40.0} if s == 77 else {}).tell()
    found = story(tmp_path, told).of_run("/steps", "exp", x=x)
    assert (found["of"], found["rank"], found["exact"]) == ("rank", 0, True)
    assert found["steps_per_column"] == 1
    parts = parts_of(found)
    assert list(parts) == [*PARTS, "other"]
    for name in PARTS:
        expected = np.array(told.parts[name][0], float) * MS
        np.testing.assert_allclose(parts[name], expected, rtol=1e-6)
    np.testing.assert_allclose(parts["other"], REST * MS, atol=1e-6)
    np.testing.assert_allclose(sum(parts.values()), found["seconds"], rtol=1e-9)
    ends = np.cumsum(np.array(told.total[0]) * MS)
    edges = found["edges"]
    if x == "step":
        assert edges.tolist() == [step - 0.5 for step in range(121)]
        assert (found["x_low"], found["x_high"]) == (0, 119)
    else:
        origin = START_NS / 1e6 if x == "wall" else 0.0
        np.testing.assert_allclose(edges[1:], origin + ends * 1e3, atol=0.01)
        np.testing.assert_allclose(edges[0], origin, atol=0.01)


@pytest.mark.parametrize("of", ["worst", "median"])
def test_of_each_step_the_slowest_or_the_middle_rank_is_shown(tmp_path, of):
    told = Story(7, 90, noise=0.4).tell()
    found = story(tmp_path, told).of_run("/steps", "exp", of=of)
    totals = np.array(told.total)
    order = np.argsort(totals, axis=0)
    expected = order[-1] if of == "worst" else order[3]
    assert found["column_rank"].tolist() == expected.tolist()
    rows = np.arange(90)
    np.testing.assert_allclose(found["seconds"], totals[expected, rows] * MS, rtol=1e-6)
    forward = np.array(told.parts["forward"])[expected, rows] * MS
    np.testing.assert_allclose(parts_of(found)["forward"], forward, rtol=1e-6)


@pytest.mark.parametrize("num_steps", [700, 5000])
@pytest.mark.parametrize("num_ranks", [1, 4])
@pytest.mark.parametrize("px", [40, 333])
def test_a_column_never_hides_the_slowest_step(tmp_path, num_steps, num_ranks, px):
    """One step of one rank, of thousands; buckets of long runs hold eight steps."""
    rank, step = num_ranks - 1, num_steps - 123
    told = Story(
        num_ranks,
        num_steps,
        more=lambda r, s: {"checkpoint": 5000.0} if (r, s) == (rank, step) else {},
    ).tell()
    found = story(tmp_path, told).of_run("/steps", "exp", px=px)
    assert len(found["seconds"]) <= px
    column = int(found["seconds"].argmax())
    total = told.total[rank][step]
    assert found["seconds"][column] == pytest.approx(total * MS, rel=1e-6)
    assert found["column_rank"][column] == rank
    assert found["first_step"][column] <= step
    assert step < found["first_step"][column] + found["steps_per_column"]
    parts = parts_of(found)
    wrote = told.parts["checkpoint"][rank][step]
    assert parts["checkpoint"][column] == pytest.approx(wrote * MS, rel=0.01)
    np.testing.assert_allclose(sum(parts.values()), found["seconds"], rtol=1e-6)


def test_buckets_are_told_apart_from_steps_and_zooming_brings_the_steps(
    tmp_path, monkeypatch
):
    told = Story(1, 4000, noise=0.3).tell()
    page = story(tmp_path, told)
    monkeypatch.setattr(
        "memboard.tb_plugin.formats.recording.series.SECONDS_PER_CHUNK", 1e6
    )
    coarse = page.of_run("/steps", "exp", px=400)
    assert coarse["exact"] is False
    parts = parts_of(coarse)
    np.testing.assert_allclose(sum(parts.values()), coarse["seconds"], rtol=1e-6)
    monkeypatch.undo()
    fine = page.of_run("/steps", "exp", x0=1000, x1=1040)
    assert fine["exact"] is True
    assert fine["first_step"].tolist() == list(range(1000, 1041))
    expected = np.array(told.parts["backward"][0][1000:1041]) * MS
    np.testing.assert_allclose(parts_of(fine)["backward"], expected, rtol=1e-6)


def test_what_was_not_recorded_says_which_setting_records_it(tmp_path):
    told = Story(2, 50, absent=("dataloader", "checkpoint")).tell()
    found = story(tmp_path, told).of_run("/steps", "exp")
    assert "dataloader" not in parts_of(found)
    absent = {one["name"]: one for one in found["absent"]}
    assert set(absent) == {"dataloader", "checkpoint"}
    assert "rec.loader" in absent["dataloader"]["remedy"]


@pytest.mark.parametrize("name", ["enabled", "automatic"])
def test_where_spans_are_off_that_is_said(tmp_path, name):
    told = Story(2, 50, absent=PARTS).tell()
    config = {"spans": {**CONFIG["spans"], name: False}}
    found = story(tmp_path, told, config=config).of_run("/steps", "exp")
    assert found["parts"] == []
    assert found["seconds"].min() > 0
    assert len(found["absent"]) == len(PARTS)
    assert found["absent"][0]["reason"] == f"spans.{name} is off"


def test_a_restart_replaces_the_steps_it_runs_again(tmp_path):
    run = RunBuilder(tmp_path / "exp")
    for attempt, first, seconds in [(0, 0, 0.1), (1, 60, 0.2)]:
        file = run.rank(attempt=attempt, config=CONFIG)
        file.steps(range(first, 100), step_time_seconds=[seconds] * (100 - first))
        file.close()
    for x in ("step", "relative", "wall"):
        found = Page(tmp_path).of_run("/steps", "exp", x=x)
        assert found["first_step"].tolist() == list(range(100))
        expected = [0.1] * 60 + [0.2] * 40
        np.testing.assert_allclose(found["seconds"], expected, rtol=1e-6)
        assert (np.diff(found["edges"]) >= 0).all()


# /step_heatmap


def test_cells_are_per_cent_beyond_the_rank_in_the_middle(tmp_path):
    told = Story(5, 60, noise=0.3).tell()
    page = story(tmp_path, told)
    totals = np.array(told.total)
    middle = np.sort(totals, axis=0)[2]
    found = page.of_run("/step_heatmap", "exp")
    tolerance = (found["value_high"] - found["value_low"]) / 65534 + 1e-3
    expected = 100 * (totals - middle) / middle
    np.testing.assert_allclose(cells(found), expected, atol=tolerance)
    loader = np.array(told.parts["dataloader"])
    expected = 100 * (loader - np.sort(loader, axis=0)[2]) / middle
    found = page.of_run("/step_heatmap", "exp", part="dataloader")
    np.testing.assert_allclose(cells(found), expected, atol=1e-3)
    assert found["series"]["key"] == "step/dataloader_seconds"


def test_many_ranks_share_rows_and_the_furthest_behind_is_seen(tmp_path):
    told = Story(
        60, 40, more=lambda r, s: {"forward": 500.0} if (r, s) == (41, 17) else {}
    ).tell()
    found = story(tmp_path, told).of_run("/step_heatmap", "exp", rows=7, px=9)
    values = cells(found)
    assert values.shape[0] <= 7
    assert values.shape[1] <= 9
    row, column = np.unravel_index(np.nanargmax(values), values.shape)
    assert (
        found["row_rank"][row] <= 41 < found["row_rank"][row] + found["ranks_per_row"]
    )
    assert column == 17 // found["steps_per_column"]
    assert values.max() > 400


# /stragglers


def test_the_table_and_the_findings(tmp_path):
    def more(rank, step):
        late = {"dataloader": 38.0} if rank == 12 else {}
        return {**late, "checkpoint": 400.0} if step % 20 == 19 else late

    told = Story(16, 200, in_step=True, more=more).tell()
    found = story(tmp_path, told).of_run("/stragglers", "exp")
    rows = columns_of(found["ranks"])
    first = {key: values[0] for key, values in rows.items()}
    assert (first["rank"], first["host"], first["part"]) == (12, "host1", "dataloader")
    assert first["words"].startswith("rank 12: dataloader +38.")
    assert found["ranks"]["columns"][0]["notes"][:2] == ["late", ""]
    assert found["ranks"]["summary"] == "1 of 16 ranks stands out."
    assert found["sentence"].startswith("A step takes ")
    assert " on the median rank: backward " in found["sentence"]
    assert found["part"] == "dataloader"
    keys = [one["key"] for one in found["findings"]]
    assert keys == ["straggler", "slow_every_n"]
    assert "Rank 12 on host1" in found["findings"][0]["sentence"]
    assert "One step in 20" in found["findings"][1]["sentence"]
    assert all(one["evidence"] for one in found["findings"])
    shares = {part["name"]: part["share"] for part in found["parts"]}
    assert sum(shares.values()) == pytest.approx(1.0)
    took = np.array(told.parts["forward"]).sum() / np.array(told.total).sum()
    assert shares["forward"] == pytest.approx(took, rel=1e-5)
    for of, whole in (
        ("usual", found["step_seconds"]),
        ("of_first", np.median(told.total[12][20:]) * MS),  # behind the warm-up
        ("seconds", np.mean(told.total) * MS),
    ):
        assert sum(part[of] for part in found["parts"]) == pytest.approx(
            whole, rel=1e-5
        )


def summed(found) -> tuple[int, int]:
    (tokens,) = [one for one in found["rates"] if one["key"] == "tokens"]
    return (found["num_summed"] if len(tokens["summed"]) else 0, 0)


@pytest.mark.parametrize(
    ("route", "seconds", "counts", "short", "whole"),
    [
        ("/stragglers", "server.views.run.REQUEST_SECONDS",
         lambda found: (found["num_ranks"], found["num_left_out"]), (0, 6), (6, 0)),
        ("/steps", "facts.steps.rates._SUM_SECONDS", summed, (0, 0), (6, 0)),
    ],
)  # fmt: skip
def test_ranks_that_were_not_read_in_time_come_later(
    tmp_path, monkeypatch, route, seconds, counts, short, whole
):
    page = story(tmp_path, Story(6, 60).tell(), counters={"tokens": 64})
    # The list of runs would have compared the ranks already.
    monkeypatch.setattr("memboard.tb_plugin.server.state.STANDING_SECONDS", -1.0)
    run = page.run_id("exp")
    monkeypatch.setattr(f"memboard.tb_plugin.{seconds}", -1)
    first = page.raw(route, run=run)
    assert counts(decode(first)) == short
    monkeypatch.undo()
    tag = {"If-None-Match": first.headers["ETag"]}
    again = page.raw(route, run=run, headers=tag)
    assert again.status_code == 200
    assert counts(decode(again)) == whole


def test_a_healthy_run_has_no_findings(tmp_path):
    told = Story(16, 200, noise=0.1).tell()
    found = story(tmp_path, told).of_run("/stragglers", "exp")
    assert found["findings"] == []
    assert found["late"] == []
    assert found["ranks"]["summary"] == "no rank of 16 stands out."
    assert found["part"] == "step"


def test_two_kinds_of_ranks_are_no_stragglers(tmp_path):
    """The last stage of a pipeline has more to do on every one of its ranks."""
    told = Story(16, 100, more=lambda r, s: {"forward": 40.0} if r >= 8 else {}).tell()
    found = story(tmp_path, told).of_run("/stragglers", "exp")
    assert "straggler" not in {one["key"] for one in found["findings"]}


# /step


def test_one_step_on_every_rank(tmp_path):
    told = Story(6, 80, noise=0.3).tell()
    page = story(tmp_path, told, peak=lambda r, s: 1000 * r + s)
    found = page.of_run("/step", "exp", step=33)
    totals = np.array(told.total)[:, 33]
    order = np.argsort(-totals)
    rows = columns_of(found["ranks"])
    assert rows["rank"].tolist() == order.tolist()
    np.testing.assert_allclose(rows["seconds"], totals[order] * MS, rtol=1e-6)
    backward = np.array(told.parts["backward"])[order, 33] * MS
    np.testing.assert_allclose(rows["backward_seconds"], backward, rtol=1e-6)
    assert rows["allocated_peak_bytes"].tolist() == (1000 * order + 33).tolist()
    took = (rows["end_ms"] - rows["start_ms"]) / 1e3
    np.testing.assert_allclose(took, rows["seconds"], atol=1e-6)
    assert set(rows["host"]) == {"host0"}


def test_one_step_of_a_long_run(tmp_path):
    told = Story(2, 5000, noise=0.3).tell()
    found = story(tmp_path, told).of_run("/step", "exp", step=4321)
    totals = sorted((row[4321] for row in told.total), reverse=True)
    seconds = columns_of(found["ranks"])["seconds"]
    np.testing.assert_allclose(seconds, np.array(totals) * MS, rtol=1e-6)


@pytest.mark.parametrize(
    "query", [{}, {"step": 10**11}, {"step": ""}, {"step": "-1"}], ids=str
)
def test_a_step_that_is_not_there_is_said(tmp_path, query):
    page = story(tmp_path, Story(2, 20).tell())
    response = page.raw("/step", run=page.run_id("exp"), **query)
    assert response.status_code in (400, 404)
    assert b"step" in response.data


# Bounds


@pytest.mark.parametrize(
    "query",
    [
        {"x0": -1e17, "x1": 1e17},
        {"x0": 1e17, "x1": 1e18},
        {"x0": 50, "x1": 50},
        {"x0": 50.2, "x1": 50.4},
        {"x0": 90, "x1": 10},
        {"px": 1},
        {"px": 8192, "rows": 8192},
        {"phase": "nonsense"},
    ],
    ids=str,
)
@pytest.mark.parametrize("x", ["step", "relative", "wall"])
def test_any_range_gives_an_answer(tmp_path, query, x):
    page = story(tmp_path, Story(3, 100).tell())
    for route in ("/steps", "/step_heatmap", "/stragglers"):
        found = page.of_run(route, "exp", x=x, **query)
        if route == "/steps":
            assert len(found["edges"]) == len(found["seconds"]) + 1


@pytest.mark.parametrize("route", ["/steps", "/step_heatmap", "/stragglers"])
def test_a_run_without_step_times_gives_an_empty_answer(run, tmp_path, route):
    run.simple(3, 20)
    found = Page(tmp_path).of_run(route, "exp")
    assert found.get("rows", []) == []
    assert found.get("series") is None
    if route == "/steps":
        assert found["absent"]


def test_rows_that_hold_anything_do_no_harm(tmp_path):
    """Negative, absent and endless times, a step that repeats, a clock that goes back."""
    run = RunBuilder(tmp_path / "exp")
    forward = Column(
        name="forward_seconds",
        unit="seconds",
        group="timing",
        dtype="f4",
        headline=True,
    )
    for rank in range(3):
        file = run.rank(rank, config=CONFIG)
        file.steps(
            [5, 5, 3, 4, 9, 10],
            times=[START_NS + at for at in (7, 3, 3, 9, 2, 10**18)],
            step_time_seconds=[-1.0, np.inf, None, 1e30, 0.0, np.nan],
            extra=[forward],
            forward_seconds=[np.inf, -5.0, 1e30, None, np.nan, 2.0],
        )
    page = Page(tmp_path)
    for x in ("step", "relative", "wall"):
        for route in ("/steps", "/step_heatmap", "/stragglers"):
            for of in ("worst", "median"):
                answer = page.of_run(route, "exp", x=x, of=of, part="forward")
                assert answer["run"]["name"] == "exp"
    assert page.of_run("/step", "exp", step=4)["num_ranks"] == 3


def test_no_answer_is_ever_larger_than_300_kb(tmp_path):
    told = Story(8, 1200).tell()
    page = story(
        tmp_path,
        told,
        counters={"samples": 8, "tokens": 64},
        flops=1e9,
        peak=lambda r, s: s,
    )
    run = page.run_id("exp")
    for route in ("/steps", "/step", "/step_heatmap", "/stragglers"):
        found = page.raw(route, run=run, px=8192, rows=8192, step=3)
        assert found.status_code == 200
        assert len(found.data) <= MOST_BYTES, route
