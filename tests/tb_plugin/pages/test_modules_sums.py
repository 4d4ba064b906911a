"""The Modules page at the peak: rows are what modules hold, and add up to the total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from collector.simulate import SimulatedRun, write_run
from tb_plugin.analysis.modules.states import WINDOW_STATES
from tests.tb_plugin.analysis.module_logs import random_log
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.test_modules import columns, fqns, record

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders import RunBuilder


def test_the_page_opens_at_the_peak_with_what_each_module_holds(
    run: RunBuilder, tmp_path: Path
):
    record(run)
    got = Page(tmp_path).of_run("/modules", "exp")
    assert (got["state"], got["measure"]) == ("window_peak", "held")
    assert got["held_bytes"].tolist() == [4800, 1800, 3000]
    assert got["own_bytes"].tolist() == [0, 1800, 3000]
    assert columns(got)["temp"] == [700, 700, 0]
    split = got["split"]
    assert (split["total_bytes"], split["held_bytes"]) == (4800, 4800)
    assert (split["unattributed_bytes"], split["unattributed"]) == (0, [])


def test_what_no_module_holds_is_a_figure_of_its_own(run: RunBuilder, tmp_path: Path):
    record(run)
    got = Page(tmp_path).of_run("/modules", "exp", state="after_optimizer")
    split = got["split"]
    assert (split["total_bytes"], split["held_bytes"]) == (4700, 4200)
    assert split["unattributed_bytes"] == 500
    (rest,) = split["unattributed"]
    assert rest == {"name": "optimizer", "group": "optimizer", "bytes": 500}


def assert_adds_up(got: dict) -> None:
    """Top-level rows and the rest are the moment's total; parents are sums."""
    split, parent = got["split"], got["tree"]["parent"]
    held, own = got["held_bytes"], got["own_bytes"]
    assert not np.isnan(held).any()
    assert held[parent < 0].sum() == split["held_bytes"]
    assert split["held_bytes"] + split["unattributed_bytes"] == split["total_bytes"]
    rest = sum(one["bytes"] for one in split["unattributed"])
    assert rest == split["unattributed_bytes"]
    for row in range(len(parent)):
        assert held[row] == own[row] + held[parent == row].sum()
    of_categories = np.sum([c["bytes"] for c in got["categories"]], axis=0)
    assert of_categories.tolist() == held.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_the_rest_add_up_at_every_moment(
    run: RunBuilder, tmp_path: Path, seed: int
):
    record(run, logs=(random_log(seed),))
    page = Page(tmp_path)
    states = page.of_run("/modules", "exp")["states"]
    for state in states:
        got = page.of_run("/modules", "exp", state=state)
        if state in WINDOW_STATES:
            assert_adds_up(got)
        else:
            assert got["split"] is None


def test_a_recorded_model_adds_up_and_its_containers_hold_their_layers(tmp_path: Path):
    torch = pytest.importorskip("torch")
    import collector
    from tests.collector.modules.models import Transformer

    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters())
    with collector.record(
        tmp_path / "job", model=model, optimizer=optimizer, modules=True
    ) as rec:
        for _ in range(3):
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
    assert (got["own_bytes"][row], got["num_calls"][row]) == (0, 1)
    params = got["tree"]["param_bytes"]
    assert got["held_bytes"][row] > 3 * params[row + 1 :].max()
    norm = fqns(got["tree"]).index("Transformer.norm")
    assert got["held_bytes"][norm] < 0.1 * got["split"]["total_bytes"]


def test_a_simulated_run_says_so_and_adds_up(tmp_path: Path):
    write_run(SimulatedRun(num_ranks=2, num_steps=20), tmp_path / "sim")
    page = Page(tmp_path)
    got = page.of_run("/modules", "sim")
    assert [w["step"] for w in got["windows"]] == [1, 10, 19]
    assert got["facts"]["source"] == "simulated"
    assert got["problems"] == []
    assert_adds_up(got)
    split = got["split"]
    # The batch, what the optimizer needs for a moment, and what faults hold is no one's.
    assert 0.7 * split["total_bytes"] < split["held_bytes"] < split["total_bytes"]
    assert split["total_bytes"] == got["facts"]["window_peak_bytes"]
