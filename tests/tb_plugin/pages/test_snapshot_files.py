"""`/snapshot_files`: what each imported snapshot holds at its peak."""

from __future__ import annotations

import pickle

import pytest

from tests.made_snapshots import long_history
from tests.tb_plugin.client import Page, answered


def test_every_file_has_a_row_with_its_peak(tmp_path):
    folder = tmp_path / "exp"
    folder.mkdir()
    for name, size in (("a", 300), ("b", 500)):
        path = folder / f"{name}_memory_snapshot.pickle"
        path.write_bytes(pickle.dumps(long_history(size), 4))
    (folder / "c_memory_snapshot.pickle").write_bytes(b"\x80\x04not a pickle")
    page = Page(tmp_path)
    (before,) = page.get("/runs")["standings"]
    assert (before["status"], before["peak_bytes"]) == (None, None), "nothing is opened"
    found = answered(
        lambda: page.of_run("/snapshot_files", "exp"),
        lambda answer: not answer["still_reading"],
    )
    rows = {one["reference"]["path"][4]: one for one in found["files"]}
    for name in "ab":
        row = rows[name]
        assert row["state"] == "ready"
        history = page.of_run("/history", "exp", history=row["reference"]["id"])
        (device,) = history["facts"]["devices"]
        peaks = {one["level"]: one for one in device["peaks"]}
        assert row["peak_bytes"] == peaks["active"]["bytes"]
        assert row["moment"] == peaks["active"]["moment"]
        assert row["reserved_bytes"] <= peaks["reserved"]["bytes"]
        assert sum(one["bytes"] for one in row["categories"]) == row["peak_bytes"]
    # Of the peak's moment, as beside its composition; later more may be reserved.
    composition = page.of_run("/peak_composition", "exp")["composition"]
    if composition is not None:
        (fullest,) = (
            row for row in rows.values() if row["peak_bytes"] == composition["bytes"]
        )
        assert fullest["reserved_bytes"] == composition["reserved_bytes"]
    # The last file's figures may come a moment after its row.
    (after,) = answered(
        lambda: page.get("/runs")["standings"],
        lambda standings: standings[0]["peak_bytes"] is not None,
    )
    assert after["status"] is None, "one file could not be read"
    assert after["peak_bytes"] == max(one["peak_bytes"] or 0 for one in found["files"])
    if "c" in rows:
        assert rows["c"]["state"] == "failed"
        assert rows["c"]["problem"]


@pytest.mark.parametrize("has_history", [True, False])
def test_only_a_snapshot_with_a_history_can_be_fine(has_history, tmp_path):
    snapshot = long_history(300)
    if not has_history:
        snapshot["device_traces"] = [[]]
    (tmp_path / "a_memory_snapshot.pickle").write_bytes(pickle.dumps(snapshot, 4))
    page = Page(tmp_path)
    found = answered(
        lambda: page.of_run("/snapshot_files"),
        lambda answer: not answer["still_reading"],
    )
    (row,) = found["files"]
    (standing,) = page.get("/runs")["standings"]
    assert row["out_of_memory"] is (False if has_history else None)
    assert standing["status"] == ("fine" if has_history else None)
    assert standing["peak_bytes"] == row["peak_bytes"]


def test_a_recording_has_none(run, tmp_path):
    run.simple(1, 10)
    found = Page(tmp_path).of_run("/snapshot_files", "exp")
    assert found["files"] == []
    assert found["still_reading"] is False
