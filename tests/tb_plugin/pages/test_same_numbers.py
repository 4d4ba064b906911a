"""One name is one number: routes and the report, on all golden runs and on a real one.

Every answer is walked for peaks, growth and medians. Where two places carry the same name
for the same rank they must carry the same value; what is of a history, or of a tracked
step, has a name of its own and is held against the step table.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.collector.format.sizes import bytes_text
from memboard.collector.simulate import SimulatedRun, write_run
from memboard.tb_plugin.analysis.findings.text import duration_text
from tests.errors_found import errors_in
from tests.routes.inputs import INPUTS
from tests.tb_plugin.client import Page, answered, numbers_of
from tests.tb_plugin.pages.module_runs import assert_adds_up, fqns
from tests.tb_plugin.pages.profiled import reported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMPARED = re.compile(r"(.*peak.*_bytes|growth_bytes_per_step|capacity_bytes)")
COMPARED_HEADLINES = {
    "peak_allocated": "Peak",
    "peak_reserved": "Reserved peak",
    "rss_peak": "Peak RSS",
    "growth": "Growth per step",
    "rss_growth": "RSS growth per step",
    "step_time": "Step time (median)",
}
"""Headline numbers, and what a comparison calls them."""
QUIET_ROUTES = (
    "timeline",
    "heatmap",
    "host",
    "steps",
    "step_heatmap",
    "stragglers",
    "functions",
    "profile",
    "operators",
    "operator_memory",
    "distributed",
)
"""Routes that know all at once, beside those that are asked again and again."""
Place = tuple[str, int | None, str]
"""A name, its rank (None: all), and the history or window it is of; empty: the run."""


def figures(found: Any, rank: int | None = None, of: str = "") -> Iterator[Any]:
    """(place, value) of every figure in an answer."""
    if isinstance(found, list):
        for item in found:
            yield from figures(item, rank, of)
    if not isinstance(found, dict):
        return
    if isinstance(found.get("rank"), int):
        rank = found["rank"]
    for key in ("reference", "history"):
        if isinstance(found.get(key), dict):
            rank, of = found[key]["rank"], found[key]["id"]
    of = found["window"] if isinstance(found.get("window"), str) else of
    if isinstance(found.get("device"), int) and of:
        of = f"{of} on {found['device']}"
    if "level" in found:
        yield (f"peak_{found['level']}_bytes", rank, of), found["bytes"]
    ranks = found.get("rank")
    for name, value in found.items():
        if isinstance(value, (dict, list)):
            yield from figures(value, rank, of)
        elif not COMPARED.fullmatch(name) or value is None:
            continue
        elif isinstance(value, np.ndarray):
            if isinstance(ranks, np.ndarray) and len(ranks) == len(value):
                for at, one in zip(ranks.tolist(), value.tolist(), strict=True):
                    yield (name, at, of), one
        elif "median" in name:
            yield (name, None, of), value
        else:
            yield (name, rank, of), value


def collected(answers: dict[str, Any]) -> dict[Place, dict[str, float]]:
    """By place: what each answer says."""
    places: dict[Place, dict[str, float]] = {}
    for answer, found in answers.items():
        for place, value in figures(found):
            if value == value:  # a number
                known = places.setdefault(place, {})
                assert known.setdefault(answer, value) == value, (answer, place)
    return places


def answers_of(page: Page, name: str, reports: list[dict[str, Any]]) -> dict[str, Any]:
    """What every route and the report say, once nothing is being read any more."""
    all_ranks = page.of_run("/overview", name)
    found = {"overview": all_ranks}
    for rank in all_ranks["strip"]["rank"].tolist():
        found[f"overview of {rank}"] = page.of_run("/overview", name, rank=rank)
        found[f"modules of {rank}"] = page.of_run("/modules", name, rank=rank)
    histories = page.of_run("/histories", name)["histories"]
    for route in QUIET_ROUTES:
        found[route] = page.of_run(f"/{route}", name)
    waiting = ["findings", "snapshot_files", "compare_runs", "peak_composition"]
    for route in [*waiting, "rank_histories"] if histories else waiting:
        found[route] = answered(
            lambda route=route: page.of_run(f"/{route}", name),
            lambda got: not got["still_reading"],
        )
    for one in histories:
        reference = one["reference"]
        found[f"history {reference['id']}"] = answered(
            lambda reference=reference: page.of_run(
                "/history", name, history=reference["id"]
            ),
            # One that cannot be opened never has any facts.
            lambda got: got["state"] in ("ready", "failed"),
        )
    (found["report"],) = (one for one in reports if one["run"]["name"] == name)
    return found


def assert_composition_agrees(page: Page, run: str, answers: dict[str, Any]) -> bool:
    """What the peak is made of against the page that it leads to; whether there is one."""
    composition = answers["peak_composition"]["composition"]
    if composition is None:
        return False
    sizes = [part["bytes"] for part in composition["categories"]]
    assert sum(sizes) == composition["bytes"]
    assert sizes == sorted(sizes, reverse=True)
    holders = [part["bytes"] for part in composition["holders"]]
    assert sum(holders) <= composition["bytes"]
    place = composition["place"]
    if place["page"] == "modules":
        modules = page.of_run("/modules", run, rank=place["rank"])
        assert composition["bytes"] == modules["facts"]["window_peak_bytes"]
        return True
    moment = {name: place[name] for name in ("history", "device", "moment")}
    live = page.of_run("/allocation_live", run, **moment)
    labelled = {part["label"]: part["bytes"] for part in composition["categories"]}
    # Blocks have the sizes that were asked for.
    rounding = labelled.pop("rounding", 0)
    assert composition["bytes"] == live["active_bytes"] + rounding
    assert composition["reserved_bytes"] == live["reserved_bytes"]
    by_group = {category["key"]: category["bytes"] for category in live["categories"]}
    # The line with the most bytes of no category stands apart there.
    site = sum(size for key, size in by_group.items() if key not in labelled)
    by_group["unknown"] = by_group.get("unknown", 0) + site
    assert labelled == {key: by_group[key] for key in labelled}
    files = answers["snapshot_files"]["files"]
    assert not files or composition["bytes"] == max(
        file["peak_bytes"] for file in files if file["peak_bytes"] is not None
    )
    return True


def assert_step_times_agree(page: Page, run: str, answers: dict[str, Any]) -> None:
    """Of each rank on Steps, Overview and Compare; of the run in the report as well."""
    by_rank = {}
    for rank in answers["overview"]["strip"]["rank"].tolist():
        steps = page.of_run("/stragglers", run, rank=rank)
        compared = answered(
            lambda rank=rank: page.of_run("/compare_runs", run, rank=rank, b_rank=rank),
            lambda got: not got["still_reading"],
        )
        figures_of_rank = compared_figures(compared)
        headlines = page.of_run("/overview", run, rank=rank)["headlines"]
        told = [
            figures_of_rank.get("Step time (median)"),
            *(one["value"] for one in headlines if one["key"] == "step_time"),
        ]
        seconds = by_rank[rank] = steps["step_seconds"]
        assert all(value in (None, seconds) for value in told), (rank, told)
        if seconds is not None:
            assert told[0] == seconds
    reported_steps = answers["report"]["stragglers"]
    of_run = page.of_run("/stragglers", run)["step_seconds"]
    if reported_steps is None:
        assert of_run is None
        return
    assert reported_steps["step_seconds"] == of_run
    assert of_run == sorted(by_rank.values())[(len(by_rank) - 1) // 2]
    slowest = compared_figures(answers["compare_runs"])["Step time (median)"]
    assert slowest == max(by_rank.values())


def assert_parts_sum_to_steps(
    page: Page, run: str, answers: dict[str, Any], texts: list[str]
) -> None:
    """Wherever parts of a step are shown: of recorded steps, and of profiled ones."""
    for steps in (page.of_run("/stragglers", run), answers["report"]["stragglers"]):
        if steps is None or not steps["parts"]:
            continue
        first = int(rows_of(steps["ranks"])["rank"][0]) if steps["num_ranks"] > 1 else 0
        of_first = page.of_run("/stragglers", run, rank=first)["step_seconds"]
        for of, whole in (("usual", steps["step_seconds"]), ("of_first", of_first)):
            parts = [part[of] for part in steps["parts"] if part[of] is not None]
            assert not parts or sum(parts) == pytest.approx(whole), of
        assert sum(part["share"] for part in steps["parts"]) == pytest.approx(1.0)
        for part in steps["parts"]:
            if part["usual"] is not None:
                assert all(duration_text(part["usual"]) in text for text in texts)
    drawn = answers["steps"]
    if drawn["parts"]:
        total = np.nansum([part["seconds"] for part in drawn["parts"]], axis=0)
        has_parts = ~np.isnan(drawn["parts"][-1]["seconds"])
        assert total[has_parts] == pytest.approx(drawn["seconds"][has_parts], rel=1e-6)
        for step in sorted({int(step) for step in drawn["shown_step"]})[:4]:
            ranks = rows_of(page.of_run("/step", run, step=step)["ranks"])
            own = [ranks[f"{part['name']}_seconds"] for part in drawn["parts"]]
            has_parts = ~np.isnan(own[-1])
            total = np.nansum(own, axis=0)[has_parts]
            assert total == pytest.approx(ranks["seconds"][has_parts], rel=1e-6)
    profile = answered(
        lambda: page.of_run("/profile", run),
        lambda got: got["choice"]["state"] != "opening",
    )
    if profile["parts"]:
        total = np.sum([part["ms"] for part in profile["parts"]], axis=0)
        assert total == pytest.approx(profile["duration_ms"])
        roles = rows_of(profile["roles"])
        assert roles["ms"].sum() == pytest.approx(profile["mean_ms"])
        assert roles["share"].sum() == pytest.approx(1.0)
    ranks = rows_of(
        answered(
            lambda: page.of_run("/distributed", run),
            lambda got: not got["num_opening"],
        )["ranks"]
    )
    if len(ranks["rank"]):
        parts = ("computation", "overlap", "communication", "other")
        total = sum(ranks[f"{part}_ms"] for part in parts)
        assert total == pytest.approx(ranks["step_ms"], nan_ok=True)


def rows_of(table: dict[str, Any]) -> dict[str, Any]:
    """The columns of a table that is sent, by key."""
    return {column["key"]: column["numbers"] for column in table["columns"]}


def reported_runs(page: Page) -> list[dict[str, Any]]:
    """What the command says of each run of the page, as JSON."""
    runs: list[dict[str, Any]] = json.loads(reported(page, "--json"))["runs"]
    return runs


def compared_figures(answer: dict[str, Any], side: str = "a") -> dict[str, float]:
    """Figures of a side by their labels."""
    columns = {one["key"]: one for one in answer["figures"]["columns"]}
    values = columns[side]["numbers"].tolist()
    return dict(zip(columns["name"]["texts"], values, strict=True))


def assert_moments_agree(page: Page, run: str, answers: dict[str, Any]) -> int:
    """Of histories that opened: two sides of a comparison against Blocks; their number."""
    ready = [
        answer["reference"]
        for name, answer in answers.items()
        if name.startswith("history ")
        and answer["facts"]
        and answer["facts"]["devices"]
    ]
    for reference, other in zip(ready, [*ready[1:], *ready[:1]], strict=True):
        query = {"history": reference["id"], "b_history": other["id"]}
        compared = page.of_run("/compare", run, **query)
        for side, history in (("a", reference), ("b", other)):
            device = compared[side]["device"]
            live = page.of_run(
                "/allocation_live", run, history=history["id"], device=device
            )
            assert live["moment"] == compared[side]["moment"]["moment"]
            assert compared_figures(compared, side) == {
                "Live": live["active_bytes"],
                "Allocated": live["allocated_bytes"],
                "Reserved": live["reserved_bytes"],
                "Blocks": live["num_blocks"],
            }
            for table in compared["tables"]:
                columns = {one["key"]: one for one in table["rows"]["columns"]}
                total = np.nansum(columns[f"{side}_bytes"]["numbers"])
                assert total == live["active_bytes"], table["by"]
    return len(ready)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Path:
    logdir = tmp_path_factory.mktemp("simulated")
    write_run(SimulatedRun(num_ranks=8, num_steps=60), logdir / "sim")
    return logdir


@pytest.fixture(scope="module")
def answers(simulated: Path) -> tuple[Page, dict[str, Any]]:
    page = Page(simulated)
    return page, answers_of(page, "sim", reported_runs(page))


def step_table(page: Page, column: str) -> dict[int, dict[int, float]]:
    """By rank and step, as the timeline draws it."""
    got = page.of_run("/timeline", "sim", series=f"step/{column}", px=4000)
    assert got["rows_per_point"] == 1
    return {
        line["rank"]: dict(zip(line["x"].tolist(), line["y"].tolist(), strict=True))
        for line in got["lines"]
    }


@pytest.mark.parametrize("name", INPUTS)
def test_one_name_is_one_number_in_every_golden_run(tmp_path, name):
    INPUTS[name].make(tmp_path)
    page = Page(tmp_path)
    texts = [reported(page), reported(page, "--md")]
    reports = reported_runs(page)
    runs = page.get("/runs")["runs"]
    kinds = {run["made_of"] for run in runs}
    for run in runs:
        answers = answers_of(page, run["name"], reports)
        for place, values in collected(answers).items():
            assert len(set(values.values())) == 1, (place, values)
        assert_moments_agree(page, run["name"], answers)
        assert_composition_agrees(page, run["name"], answers)
        strip = answers["overview"]["strip"]
        peak_of = dict(zip(strip["rank"].tolist(), strip["peak_bytes"], strict=True))
        drawn = page.of_run("/timeline", run["name"], x="wall")
        for line in drawn["lines"]:  # of the series that peaks are of
            assert np.nanmax(line["y"]) == peak_of[line["rank"]], line["rank"]
        peaks = strip["peak_bytes"]
        peaks = peaks[~np.isnan(peaks)]
        for one in answers["overview"]["headlines"]:
            if one["value"] is None or one["unit"] != "bytes":
                continue
            if one["key"] in ("peak_allocated", "rss_peak"):
                assert one["value"] == peaks.max()
            if one["other_end"] is None:
                assert all(bytes_text(one["value"]) in text for text in texts), one
        figures_of_run = compared_figures(answers["compare_runs"])
        for one in answers["overview"]["headlines"]:
            label = COMPARED_HEADLINES.get(one["key"])
            if one["value"] is not None and label in figures_of_run:
                assert figures_of_run[label] == one["value"], label
        standings = answered(
            lambda: page.get("/runs")["standings"],
            lambda got: all(
                one["status"] is not None or "recording" not in kinds for one in got
            ),
        )
        (standing,) = (one for one in standings if one["run"] == run["id"])
        if run["made_of"] == "recording" and len(peaks):
            assert standing["peak_bytes"] == peaks.max()
        assert_step_times_agree(page, run["name"], answers)
        assert_parts_sum_to_steps(page, run["name"], answers, texts)


def test_same_names_are_same_numbers(answers):
    _, found = answers
    places = collected(found)
    for place, values in places.items():
        assert len(set(values.values())) == 1, (place, values)
    shared = {name for (name, _, _), values in places.items() if len(values) > 1}
    assert {
        "peak_bytes",
        "growth_bytes_per_step",
        "median_peak_bytes",
        "capacity_bytes",
        "window_peak_bytes",
    } <= shared
    strip = found["overview"]["strip"]
    for one in found["overview"]["headlines"]:
        at = strip["rank"].tolist().index(one["rank"])
        if one["key"] == "peak_allocated":
            assert one["value"] == strip["peak_bytes"][at]
        if one["key"] == "growth":
            assert one["value"] == strip["growth_bytes_per_step"][at]


def test_growth_per_step_is_one_number_beside_an_error(answers):
    _, found = answers
    (error,) = errors_in(found["findings"])
    assert error["key"] == "growth"
    assert error["analysed"]
    (rate,) = [e for e in error["evidence"] if e["key"] == "growth_per_round"]
    strip = found["overview"]["strip"]
    at = strip["rank"].tolist().index(error["rank"])
    assert rate["value"] == strip["growth_bytes_per_step"][at]
    # What was kept is what the peaks of its steps rose by, a quarter more or less.
    (kept,) = [e for e in error["evidence"] if e["key"] == "growth"]
    rise = strip["peak_bytes"][at] - strip["median_peak_bytes"]
    assert kept["value"] == pytest.approx(rise, rel=1 / 4)


def test_a_history_s_and_a_tracked_step_s_peak_are_those_of_the_step_table(answers):
    page, found = answers
    assert assert_moments_agree(page, "sim", found) >= 8
    by_rank = step_table(page, "allocated_peak_bytes")
    strip = found["overview"]["strip"]
    peak_of = dict(zip(strip["rank"].tolist(), strip["peak_bytes"], strict=True))
    num_histories = num_windows = 0
    for name, answer in found.items():
        if name.startswith("history"):
            reference, (device,) = answer["reference"], answer["facts"]["devices"]
            (peak,) = [p for p in device["peaks"] if p["level"] == "allocated"]
            steps = by_rank[reference["rank"]]
            step, is_oom = reference["step"], reference["label"] == "oom"
            back = 9 if is_oom else 2
            shown = [steps[at] for at in range(step - back, step + 1) if at in steps]
            if is_oom:  # the step that fails is in no table
                assert max(shown) <= peak["bytes"] <= 80 << 30
            else:
                assert peak["bytes"] == max(shown) <= peak_of[reference["rank"]]
            num_histories += 1
        elif name.startswith("modules") and answer["facts"] is not None:
            (window,) = [w for w in answer["windows"] if w["id"] == answer["window"]]
            step = by_rank[answer["rank"]][window["step"]]
            log = answer["facts"]["window_peak_bytes"]
            assert log == answer["split"]["total_bytes"]
            assert step == log
            num_windows += 1
    assert num_histories >= 8
    assert num_windows == 8
    assert assert_composition_agrees(page, "sim", found)


def test_nothing_is_said_of_all_ranks_before_all_are_read(simulated, monkeypatch):
    page = Page(simulated)
    within = page.plugin.state().facts.within
    routes = page.plugin.state()
    monkeypatch.setattr(
        routes.facts,
        "within",
        lambda file, budget: None if file.rank == 3 else within(file, budget),
    )
    part = page.of_run("/overview", "sim")
    strip = part["strip"]
    assert strip["num_unread"] == 1
    assert strip["median_peak_bytes"] is None
    assert strip["outliers"] == []
    for one in part["headlines"]:
        assert one["value"] is None
        assert "1 of 8 ranks" in one["absent_reason"]


def test_a_real_run_adds_up_and_has_one_number_for_one_name(tmp_path):
    torch = pytest.importorskip("torch")
    import memboard as mb
    from tests.collector.modules.models import Transformer

    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters())
    with mb.record(
        tmp_path / "job", model=model, optimizer=optimizer, modules=True
    ) as rec:
        for _ in range(20):
            optimizer.zero_grad()
            model(torch.randint(1024, (2, 64))).square().mean().backward()
            optimizer.step()
            rec.step()
    page = Page(tmp_path)
    (name,) = (one["name"] for one in page.get("/runs")["runs"])
    got = page.of_run("/modules", name)
    assert got["state"] == "window_peak"
    assert_adds_up(got)
    row = fqns(got["tree"]).index("Transformer.layers")  # a list: it never runs
    table = got["table"]
    own, calls = numbers_of(table, "own_bytes"), numbers_of(table, "num_calls")
    assert (own[row], calls[row]) == (0, 1)
    params, held = numbers_of(table, "own_param_bytes"), numbers_of(table, "held_bytes")
    assert held[row] > 3 * params[row + 1 :].max()
    norm = fqns(got["tree"]).index("Transformer.norm")
    assert held[norm] < 0.1 * got["split"]["total_bytes"]
    places = collected(answers_of(page, name, reported_runs(page)))
    assert {name for name, _, _ in places} >= {"peak_bytes", "window_peak_bytes"}
    for place, values in places.items():
        assert len(set(values.values())) == 1, (place, values)
