"""Module memory as rows: the labels and sizes of torch's own trackers."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.modules.states import ALL_STATES, ModuleStates
from memboard.tb_plugin.analysis.modules.tree import tree_of_names
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.cli.export.module_report import TableFormat, report_of
from memboard.tb_plugin.cli.export.module_table import COLUMNS, WindowTable
from memboard.tb_plugin.formats.memprofiler.report import read_report
from tests import programs


def as_recorded(states: ModuleStates, *, fsdp: bool) -> ModuleStates:
    """States as if recorded: the tree knows which modules are sharded."""
    flags = np.full(len(states.tree), fsdp)
    return replace(states, tree=replace(states.tree, is_fsdp=flags))


@pytest.mark.parametrize("tracker", ["fsdp", "plain"])
def test_labels_and_sizes_are_those_that_torch_prints(torch_reports, tracker):
    folder, truth = torch_reports
    exact = read_report((folder / f"{tracker}.lines.B").read_bytes()).states
    fsdp = tracker == "fsdp"
    table = WindowTable(as_recorded(exact, fsdp=fsdp), is_fsdp=fsdp)
    assert table.nested() == truth[tracker]
    assert mapped(rows_of(table)) == truth[tracker]


@pytest.mark.parametrize("units", ["B", "KiB", "MiB"])
@pytest.mark.parametrize("tracker", ["fsdp", "plain"])
def test_a_report_is_torchs_own_table_and_reads_back(torch_reports, tracker, units):
    folder, _ = torch_reports
    exact = read_report((folder / f"{tracker}.lines.B").read_bytes()).states
    is_fsdp = tracker == "fsdp"
    table = WindowTable(as_recorded(exact, fsdp=is_fsdp), is_fsdp=is_fsdp)
    text = report_of("training_step", 2, table, TableFormat(9, units))
    printed = (folder / f"{tracker}.tables.{units}").read_text()
    own = ("Iteration 2 training_step ", "-" * 80)
    lines = [line for line in text.splitlines() if not line.startswith(own)]
    assert lines == printed.splitlines()
    read = read_report(text.encode())
    assert not read.is_cut
    assert not read.left_out.num
    again = WindowTable(as_recorded(read.states, fsdp=is_fsdp), is_fsdp=is_fsdp)
    assert len(rows_of(again)) == len(rows_of(table))
    if units == "B":
        assert rows_of(again) == rows_of(table)


@pytest.mark.parametrize(
    ("depth", "modules"),
    [(1, ["Net"]), (2, ["Net", "Net.a"]), (9, ["Net", "Net.a", "Net.a.b"])],
)
def test_a_report_goes_as_deep_as_it_is_asked_to(depth, modules):
    table = WindowTable(states_of(ROWS), is_fsdp=False)
    text = report_of("step", 3, table, TableFormat(depth, "MiB"))
    named = [line[9:] for line in text.splitlines() if line.startswith("Module:  ")]
    assert named == modules
    assert text.startswith("Iteration 3 step Peak memory stats: \n")
    assert "2.0 MiB" in text


def test_a_call_in_which_nothing_was_tracked_says_so():
    states = states_of([("Net", "peak_forward", 0, "cpu", {})])
    text = report_of(
        "step", 3, WindowTable(states, is_fsdp=True), TableFormat(2, "MiB")
    )
    assert "No memory tracked." in text


def rows_of(table: WindowTable) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in table.rows]


def mapped(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows of the table as torch's trackers hold their facts."""
    found: dict[str, Any] = {"peak": {}, "modules": {}}
    for row in rows:
        assert int(row["depth"]) == len([*filter(None, row["module"].split("."))])
        if row["module"]:
            states = found["modules"].setdefault(row["module"], {})
            calls = states.setdefault(row["state"], [])
            calls += [{} for _ in range(int(row["call"]) - len(calls))]
            devices = calls[int(row["call"]) - 1]
        else:
            assert row["state"] == "Peak"
            devices = found["peak"]
        devices.setdefault(row["device"], {})[row["category"]] = int(row["bytes"])
    return found


def states_of(rows: list[tuple[str, str, int, str, dict[str, int]]]) -> ModuleStates:
    """States from (fqn, state, call, device, bytes by category)."""
    fqns = tuple(dict.fromkeys(row[0] for row in rows if row[0]))
    devices = tuple(dict.fromkeys(row[3] for row in rows))
    present = [c for c in CATEGORIES if any(c in row[4] for row in rows)]
    tree = tree_of_names(fqns)
    at = {fqn: row for row, fqn in enumerate(tree.fqn)}
    return ModuleStates(
        tree=tree,
        devices=devices,
        categories=tuple(present),
        module=np.array([at.get(row[0], -1) for row in rows]),
        state=np.array([ALL_STATES.index(row[1]) for row in rows]),
        call=np.array([row[2] for row in rows]),
        device=np.array([devices.index(row[3]) for row in rows]),
        bytes=np.array([[row[4].get(c, np.nan) for c in present] for row in rows]),
        total_bytes=np.array([float(sum(row[4].values())) for row in rows]),
    )


ROWS = [
    ("", "window_peak", 0, "cuda:0", {"param": 1 << 20, "other": 1 << 20}),
    ("", "window_peak", 0, "cpu", {"input": 3 << 20}),
    ("Net", "before_pre_forward", 0, "cuda:0", {"param": 1 << 20}),
    ("Net", "before_pre_forward", 1, "cuda:0", {"param": 2 << 20}),
    ("Net", "before_pre_forward", 1, "cpu", {"input": 3 << 20}),
    ("Net.a", "after_post_forward", 0, "cuda:0", {"param": 1 << 20}),
    ("Net.a.b", "after_post_forward", 0, "cuda:0", {"param": 1 << 20}),
]


def test_rows_hold_what_the_states_did():
    table = WindowTable(states_of(ROWS), is_fsdp=False)
    found = table.nested()
    assert mapped(rows_of(table)) == found
    sizes = {label: size for label, size in found["peak"]["cpu"].items() if size}
    assert sizes == {"Other": 3 << 20, "Total": 3 << 20}


def test_numbers_in_names_sort_as_numbers():
    rows = [
        (f"Net.layers.{n}", "before_pre_forward", 0, "cpu", {"param": 1})
        for n in (10, 9, 1)
    ]
    names = WindowTable(states_of(rows), is_fsdp=False).nested()["modules"]
    assert list(names) == ["Net.layers.1", "Net.layers.9", "Net.layers.10"]


def test_what_fsdp_has_no_word_for_is_told_in_the_words_of_plain_modules():
    states = as_recorded(states_of(ROWS), fsdp=True)
    peak = WindowTable(states, is_fsdp=True).nested()["peak"]["cuda:0"]
    assert peak["Parameter"] == 1 << 20
    assert peak["Other"] == 1 << 20
    assert peak["Sharded Param"] == 0
    assert list(peak)[-1] == "Total"


def test_nothing_tracked_is_no_row():
    states = states_of([("Net", "peak_forward", 0, "cpu", {})])
    assert rows_of(WindowTable(states, is_fsdp=True)) == []


def test_a_tracked_step_exports_as_torch_tracks_its_own(fsdp_on_cpu, tmp_path):
    """The whole way: tracked, written, read, summed up, exported."""
    program = Path(__file__).with_name("tracked.py")
    programs.run_script(program, tmp_path)
    for name in ("fsdp", "plain"):
        out = tmp_path / f"{name}_out"
        assert main(["export", str(tmp_path / name), "--modules", "-o", str(out)]) == 0
        with (out / "rank_0_modules.csv").open(newline="") as file:
            ours = sections(mapped(list(csv.DictReader(file))))
        printed = read_report((tmp_path / f"{name}.log").read_bytes()).states
        fsdp = name == "fsdp"
        table = WindowTable(as_recorded(printed, fsdp=fsdp), is_fsdp=fsdp)
        theirs = sections(table.nested())
        assert len(ours) > 20
        for place, sizes in theirs.items():
            if fsdp and place[1] == "After Post-Backward":
                # torch's own wrapper keeps one whole gradient alive until later.
                differing = {k for k, v in sizes.items() if ours[place][k] != v}
                assert differing <= {"Unsharded Grad", "Total"}
            else:
                assert ours[place] == sizes, place
        # torch prints no device that holds nothing.
        assert all(not ours[place]["Total"] for place in ours.keys() - theirs.keys())


def sections(found: dict[str, Any]) -> dict[tuple[str, str, int, str], dict[str, int]]:
    """Sizes by module, state, call and device; the peak's stand at no module."""
    sizes = {("", "Peak", 0, device): held for device, held in found["peak"].items()}
    for module, states in found["modules"].items():
        for state, calls in states.items():
            for call, devices in enumerate(calls):
                for device, held in devices.items():
                    sizes[module, state, call, device] = held
    return sizes
