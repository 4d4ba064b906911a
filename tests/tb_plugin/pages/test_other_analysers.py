"""Tables that other analysers made of public traces are those of our pages."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.pages.profiled import columns_of

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "/nowhere"))
MORE = Path(os.environ.get("MEMBOARD_MORE_TRACES", "/nowhere"))
HTA = REAL / "kineto" / "hta_nccl_two_ranks_sampled"
TRACELENS = sorted(MORE.glob("*/tracelens/gpu_timeline.csv"))


@pytest.fixture
def asked(tmp_path):
    """Asks a route about a folder of traces, once all of it is read."""

    def ask(folder: Path, *routes: str):
        shutil.copytree(folder, tmp_path / "run")
        page = Page(tmp_path)
        run = page.run_id("run")  # a folder of captures may be another
        is_read = lambda answer: answer["choice"]["state"] == "ready"  # noqa: E731
        answered(lambda: page.get("/profile", run=run), is_read)
        return [page.get(route, run=run) for route in routes]

    return ask


def rows_of(table: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(table.read_text().splitlines()))


@pytest.mark.skipif(not TRACELENS, reason="MEMBOARD_MORE_TRACES holds none")
@pytest.mark.parametrize("table", TRACELENS, ids=lambda path: path.parts[-3])
def test_devices_are_busy_and_idle_as_tracelens_says(asked, table):
    theirs = {row["type"]: float(row["time ms"]) for row in rows_of(table)}
    profile, idle = asked(table.parents[1], "/profile", "/trace_idle")
    device = columns_of(idle["table"])
    assert device["span_ms"][0] == pytest.approx(theirs["total_time"], abs=1e-3)
    assert device["idle_ms"][0] == pytest.approx(theirs["idle_time"], abs=1e-3)
    ours = {part["role"]: sum(part["ms"]) for part in profile["parts"]}
    near = {"abs": 1e-3}
    assert ours["kernel"] == pytest.approx(theirs["computation_time"], **near)
    assert ours.get("memcpy", 0.0) == pytest.approx(
        theirs["exposed_memcpy_time"], **near
    )


@pytest.mark.skipif(not TRACELENS, reason="MEMBOARD_MORE_TRACES holds none")
@pytest.mark.parametrize("table", TRACELENS, ids=lambda path: path.parts[-3])
def test_operators_ran_on_the_device_as_long_as_tracelens_says(asked, table):
    (operators,) = asked(table.parents[1], "/operators")
    columns = columns_of(operators["table"])
    ours = dict(zip(columns["name"], columns["device_self_ms"], strict=True))
    theirs: dict[str, float] = {}
    for row in rows_of(table.with_name("ops_summary.csv")):
        direct = float(row["total_direct_kernel_time_ms"])
        theirs[row["name"]] = theirs.get(row["name"], 0.0) + direct
    assert len(theirs) >= 6
    assert {name: ours.get(name) for name in theirs} == pytest.approx(theirs, abs=1e-3)


@pytest.mark.skipif(not HTA.exists(), reason="MEMBOARD_REAL_DATA holds none")
def test_the_parts_of_a_step_are_those_of_holistic_trace_analysis(asked):
    said = json.loads((HTA / "hta_expected.json").read_text())
    (theirs, _) = said["get_temporal_breakdown"]
    (profile,) = asked(HTA, "/profile")
    place = profile["step"].tolist().index(int(said["get_profiler_steps"][0]))
    ours = {part["role"]: part["ms"][place] for part in profile["parts"]}
    assert ours["kernel"] == pytest.approx(theirs["compute_time(us)"] / 1e3)
    not_computing = ours["memcpy"] + ours["memset"] + ours["communication"]
    assert not_computing == pytest.approx(theirs["non_compute_time(us)"] / 1e3)
