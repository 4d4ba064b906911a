"""The peak of a rank is one number in every place, and the step that fails is part of it."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memboard.collector.format import oom
from memboard.tb_plugin.cli import main
from tests.builders import RunBuilder, age
from tests.oom_reports import GIB, add_report
from tests.tb_plugin.client import Page, answered

if TYPE_CHECKING:
    from pathlib import Path

CAPACITY = 80 * GIB
SIZES = st.integers(1, 60)
ATTEMPTS = st.lists(
    st.tuples(
        st.lists(SIZES, max_size=6), st.lists(st.tuples(SIZES, SIZES), max_size=2)
    ),
    min_size=1,
    max_size=3,
)
"""Of each attempt the peaks of its steps; allocated at each error, and most since."""


def written(folder: Path, attempts: list[Any]) -> int:
    """A rank of these attempts; returns its peak, 0 for none."""
    builder, peaks = RunBuilder(folder / "run"), [0]
    for number, (steps, errors) in enumerate(attempts):
        rank = builder.rank(
            0,
            attempt=number,
            device_type="cuda",
            device_index=0,
            device_total_bytes=CAPACITY,
        )
        sizes = [one * GIB for one in steps]
        if sizes:
            rank.steps(
                range(len(sizes)),
                allocated_peak_bytes=sizes,
                reserved_peak_bytes=[one + GIB for one in sizes],
            )
        for at, (allocated, most) in enumerate(errors, start=1):
            memory = {
                "allocated_bytes": allocated * GIB,
                "allocated_peak_bytes": max(allocated, most) * GIB,
                "reserved_bytes": (max(allocated, most) + 1) * GIB,
            }
            add_report(
                rank,
                number=at,
                step=len(sizes),
                memory={**dict.fromkeys(oom.MEMORY), **memory},
                device_free_bytes=CAPACITY - memory["reserved_bytes"],
                holders={"live_bytes": 0, "num_blocks": 0, "source": ""},
            )
            rank.note("oom", step=len(sizes), message="out of memory", report=at)
            sizes.append(memory["allocated_peak_bytes"])
        rank.close(how="exception")
        peaks += sizes
    age(folder)
    return max(peaks)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(attempts=ATTEMPTS)
def test_a_peak_is_of_all_steps_and_errors_in_every_place(tmp_path_factory, attempts):
    folder = tmp_path_factory.mktemp("peaks")
    peak = written(folder, attempts) or None
    page = Page(folder)
    overview = page.of_run("/overview", "run")
    numbers = {one["key"]: one["value"] for one in overview["headlines"]}
    (standing,) = answered(
        lambda: page.get("/runs")["standings"], lambda got: got[0]["status"] is not None
    )
    assert standing["peak_bytes"] == peak
    if peak is None:
        return
    assert overview["strip"]["peak_bytes"].tolist() == [peak]
    assert overview["strip"]["median_peak_bytes"] == peak
    assert numbers["peak_allocated"] == peak
    assert numbers["peak_reserved"] == peak + GIB
    assert numbers["headroom"] == CAPACITY - peak - GIB
    assert numbers["fragmentation"] == GIB
    if any(steps for steps, _ in attempts):  # else there is no series
        series = "step/allocated_peak_bytes"
        (line,) = page.of_run("/timeline", "run", series=series, x="wall")["lines"]
        assert line["y"].max() == peak
        assert np.all(np.diff(line["x"]) >= 0)
        _, errors = attempts[-1]
        if errors:  # on steps, the last attempt has replaced what it ran again
            (line,) = page.of_run("/timeline", "run", series=series)["lines"]
            assert line["y"].max() >= max(map(max, errors)) * GIB
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["report", "--json", str(folder)]) == 0
    (run,) = json.loads(said.getvalue())["runs"]
    assert run["overview"]["strip"]["peak_bytes"] == [peak]


def test_a_run_that_fails_in_its_first_step_has_the_peak_of_the_error(tmp_path):
    rank = RunBuilder(tmp_path / "run").rank(0, device_total_bytes=CAPACITY)
    rank.steps([0], allocated_peak_bytes=[4096])
    add_report(rank, step=1)
    rank.close(how="exception")
    overview = Page(tmp_path).of_run("/overview", "run")
    (peak,) = (one for one in overview["headlines"] if one["key"] == "peak_allocated")
    assert (peak["value"], peak["step"]) == (77 * GIB, 1)


def test_an_error_of_another_device_is_not_of_the_rank_s_peak(tmp_path):
    rank = RunBuilder(tmp_path / "run").rank(
        0, device_index=1, device_total_bytes=CAPACITY
    )
    rank.steps(range(3), allocated_peak_bytes=[GIB] * 3)
    add_report(rank, device=0)
    rank.close(how="exception")
    overview = Page(tmp_path).of_run("/overview", "run")
    assert overview["strip"]["peak_bytes"] == pytest.approx([GIB])


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    steps=st.lists(SIZES, min_size=1, max_size=6),
    at_error=st.none() | SIZES,
    device=st.sampled_from((None, 5)),
)
def test_a_process_s_peak_includes_what_it_held_at_an_error(
    tmp_path_factory, steps, at_error, device
):
    folder = tmp_path_factory.mktemp("peaks")
    rank = RunBuilder(folder / "run").rank(0, memory_total_bytes=CAPACITY)
    sizes = [one * GIB for one in steps]
    rank.steps(range(len(sizes)), rss_bytes=sizes)
    rss = None if at_error is None else at_error * GIB
    nothing = dict.fromkeys(("device_free_bytes", "device_total_bytes", "memory"))
    host = {**dict.fromkeys(oom.HOST), "rss_bytes": rss}
    add_report(rank, step=len(sizes), device=device, host=host, **nothing)
    rank.close(how="exception")
    age(folder)
    peak = max([*sizes, rss or 0])
    page = Page(folder)
    overview = page.of_run("/overview", "run")
    numbers = {one["key"]: one["value"] for one in overview["headlines"]}
    assert (numbers["rss_peak"], numbers["rss_headroom"]) == (peak, CAPACITY - peak)
    figures = page.of_run("/compare_runs", "run")["figures"]
    columns = {one["key"]: one for one in figures["columns"]}
    row = columns["name"]["texts"].index("Peak RSS")
    assert columns["a"]["numbers"][row] == peak
