"""The Modules page at the peak: rows are what modules hold, and add up to the total."""

from __future__ import annotations

import numpy as np
import pytest

from tb_plugin.analysis.modules.states import WINDOW_STATES
from tests.tb_plugin.analysis.module_logs import random_log
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.test_modules import columns, record


def test_the_page_opens_at_the_peak_with_what_each_module_holds(run, tmp_path):
    record(run)
    got = Page(tmp_path).of_run("/modules", "exp")
    assert (got["state"], got["measure"]) == ("window_peak", "held")
    assert got["held_bytes"].tolist() == [4800, 1800, 3000]
    assert got["own_bytes"].tolist() == [0, 1800, 3000]
    assert columns(got)["temp"] == [700, 700, 0]
    split = got["split"]
    assert (split["total_bytes"], split["held_bytes"]) == (4800, 4800)
    assert (split["unattributed_bytes"], split["unattributed"]) == (0, [])


def test_what_no_module_holds_is_a_figure_of_its_own(run, tmp_path):
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
def test_rows_and_the_rest_add_up_at_every_moment(run, tmp_path, seed: int):
    record(run, logs=(random_log(seed),))
    page = Page(tmp_path)
    states = page.of_run("/modules", "exp")["states"]
    for state in states:
        got = page.of_run("/modules", "exp", state=state)
        if state in WINDOW_STATES:
            assert_adds_up(got)
        else:
            assert got["split"] is None
