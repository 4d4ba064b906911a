"""Recorded snapshots through the routes: the figures they are known for."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.tb_plugin.analysis.snapshots import (
    EXPECTED,
    INCONSISTENT,
    REAL,
    named,
    needs_real,
)
from tests.tb_plugin.pages.history_runs import Asked


def asked_of(tmp_path, name: str) -> Asked:
    folder = tmp_path / "job"
    folder.mkdir()
    shutil.copy(REAL / name, folder / name)
    return Asked(tmp_path, "job")


@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if name not in INCONSISTENT]
)
def test_recorded_snapshots_show_the_figures_they_are_known_for(tmp_path, name):
    asked = asked_of(tmp_path, name)
    found = asked.opened()
    assert found["state"] == "ready", found["problem"]
    shown = {device["device"]: device for device in found["facts"]["devices"]}
    for number, figures in enumerate(EXPECTED[name]["devices"]):
        if not figures["num_events"] and not figures["num_segments"]:
            assert number not in shown
            continue
        device = shown[number]
        for key in ("num_events", "reserved_bytes", "allocated_bytes", "active_bytes"):
            assert device[key] == figures[key]
        peak = device["peaks"][0]
        assert peak["moment"] == figures["peak_active_event"]
        drawn_bytes = peak["bytes"] - device["rounding_bytes"]
        for query in ({}, {"axis": "time"}, {"order": "allocation", "colour": "stack"}):
            tile = asked.get("allocations", device=number, px=300, **query)
            columns = tile["columns"]
            (column,) = np.flatnonzero(columns["moment"] == peak["moment"])[:1]
            assert columns["active"][column] == drawn_bytes
            assert tile["peak_bytes"] == peak["bytes"]
            held = asked.get("allocation_holders", device=number, px=300, **query)
            changes = np.zeros(len(held["moment"]))
            np.add.at(changes, held["column"], held["change"])
            assert (changes.cumsum() == tile["columns"]["active"]).all()
        live = asked.get("allocation_live", device=number)
        assert live["active_bytes"] == drawn_bytes
        card = asked.get("allocation_block", device=number, life=0)
        assert card["address"].startswith("0x")
    asked.get("stacks")


@needs_real
def test_the_real_error_opens_where_it_happened(tmp_path):
    asked = asked_of(tmp_path, named("Constructor-Sun"))
    facts = asked.opened()["facts"]
    assert facts["default_device"] == 1
    device = next(one for one in facts["devices"] if one["device"] == 1)
    marks = device["marks"]
    (at,) = np.flatnonzero(marks["kind"] == marks["kinds"].index("oom"))
    assert marks["bytes"][at] == 5308694528
    assert marks["device_free"][at] == 95682560
    moment = int(marks["moment"][at])
    live = asked.get("allocation_live", moment=moment)
    assert live["device"] == 1
    assert live["active_bytes"] / 2**30 == pytest.approx(78.29, abs=0.005)
    # 94.8 % of it is of four lines of one file.
    stacks = asked.get("stacks")
    strings, by_line = stacks["strings"], {}
    for stack, num_bytes in zip(live["stack"], live["stack_bytes"], strict=True):
        frame = stacks["user_frame"][stack]
        key = (strings[stacks["filename"][frame]], int(stacks["line"][frame]))
        by_line[key] = by_line.get(key, 0) + num_bytes
    top = sorted(by_line.items(), key=lambda item: -item[1])[:4]
    assert {filename.rpartition("/")[2] for (filename, _), _ in top} == {"models.py"}
    share = sum(num_bytes for _, num_bytes in top) / live["active_bytes"]
    assert share == pytest.approx(0.948, abs=0.001)


@needs_real
@pytest.mark.parametrize("name", INCONSISTENT)
def test_those_made_by_hand_are_drawn_too(tmp_path, name):
    asked = asked_of(tmp_path, name)
    found = asked.opened()
    assert found["state"] == "ready"
    tile = asked.get("allocations")
    assert tile["columns"]["active"].max() > 0
