"""The text report: character by character what torch's own trackers print."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from collector.cli import main
from collector.cli.export_report import Layout, report_text, window_report
from collector.format.memory import CATEGORIES, TORCH_STATES
from tb_plugin.analysis.module_states import ALL_STATES, ModuleStates
from tb_plugin.analysis.module_tree import tree_of_names
from tb_plugin.readers.memprofiler.report import read_report

RULE = "-" * 80


def as_recorded(states: ModuleStates, *, fsdp: bool) -> ModuleStates:
    """States as if recorded: the tree knows which modules are sharded."""
    flags = np.full(len(states.tree), fsdp)
    return replace(states, tree=replace(states.tree, is_fsdp=flags))


@pytest.mark.parametrize("units", ["B", "KiB", "MiB"])
@pytest.mark.parametrize("tabulate", [False, True])
@pytest.mark.parametrize("tracker", ["fsdp", "plain"])
def test_the_text_is_what_torch_prints(torch_reports, tracker, tabulate, units):
    folder, truth = torch_reports
    style = "tables" if tabulate else "lines"
    printed = (folder / f"{tracker}.{style}.{units}").read_text()
    exact = read_report((folder / f"{tracker}.lines.B").read_bytes()).states
    fsdp = tracker == "fsdp"
    report = window_report(as_recorded(exact, fsdp=fsdp), fsdp=fsdp)
    assert report.plain() == truth[tracker]
    layout = Layout(depth=9, units=units, tabulate=tabulate)
    text = report_text(report, "fit", 3, layout)
    peak, modules = (
        printed[: printed.index("Module:")],
        printed[printed.index("Module:") :],
    )
    expected = (
        f"Iteration 3 fit Peak FSDP memory stats: \n{RULE}\n{peak}"
        f"{RULE}\nIteration 3 fit Modulewise FSDP memory stats: \n{RULE}\n{modules}{RULE}\n"
    )
    assert text == expected


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


@pytest.mark.parametrize("tabulate", [False, True])
def test_the_text_reads_back_as_the_states_it_was_made_of(tabulate):
    report = window_report(states_of(ROWS), fsdp=False)
    text = report_text(report, "fit", 2, Layout(depth=3, units="B", tabulate=tabulate))
    again = read_report(text.encode())
    assert not again.is_cut
    assert again.left_out == ()
    back = window_report(again.states, fsdp=False)
    # The batch is other in MemTracker's words, so it stays that.
    assert back == report
    assert report.peak[1] == ("cpu", {**dict.fromkeys(report.peak[1][1], 0), "Other": 3 << 20, "Total": 3 << 20})  # fmt: skip


def test_depth_counts_the_parts_of_a_name():
    report = window_report(states_of(ROWS), fsdp=False)
    for depth in (1, 2, 3):
        text = report_text(report, "fit", 2, Layout(depth=depth))
        assert text.count("Module:") == depth


def test_numbers_in_names_sort_as_numbers():
    rows = [
        (f"Net.layers.{n}", "before_pre_forward", 0, "cpu", {"param": 1})
        for n in (10, 9, 1)
    ]
    names = [m.fqn for m in window_report(states_of(rows), fsdp=False).modules]
    assert names == ["Net.layers.1", "Net.layers.9", "Net.layers.10"]


def test_what_fsdp_has_no_word_for_is_told_in_the_words_of_plain_modules():
    states = as_recorded(states_of(ROWS), fsdp=True)
    (peak, _) = window_report(states, fsdp=True).peak
    assert peak[1]["Parameter"] == 1 << 20
    assert peak[1]["Other"] == 1 << 20
    assert peak[1]["Sharded Param"] == 0
    assert list(peak[1])[-1] == "Total"


def test_nothing_tracked_says_so():
    report = window_report(
        states_of([("Net", "peak_forward", 0, "cpu", {})]), fsdp=True
    )
    assert "No memory tracked." in report_text(report, "f", 1, Layout())


def test_a_tracked_step_exports_as_torch_prints_its_own(fsdp_on_cpu, tmp_path):
    """The whole way: tracked, written, read, summed up, printed."""
    program = Path(__file__).with_name("tracked.py")
    subprocess.run(
        [sys.executable, program, tmp_path],
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    for name in ("fsdp", "plain"):
        out = tmp_path / f"{name}_out"
        arguments = ["--fsdp-report", "--units", "B", "--depth", "99", "-o", str(out)]
        assert main(["export", str(tmp_path / name), *arguments]) == 0
        (written,) = out.glob("*.log")
        ours = sections(written.read_text())
        theirs = sections((tmp_path / f"{name}.log").read_text())
        assert ours.keys() == theirs.keys()
        assert len(ours) > 20
        for place, lines in theirs.items():
            if name == "fsdp" and place[1] == "After Post-Backward":
                # torch's own wrapper keeps one whole gradient alive until later.
                differing = {
                    line.partition(":")[0].strip()
                    for line in set(lines) ^ set(ours[place])
                }
                assert differing <= {"Unsharded Grad", "Total"}
            else:
                assert ours[place] == lines, place


def sections(text: str) -> dict[tuple[str, str], list[str]]:
    """Lines by module and state; the peak's stand before the first module."""
    found: dict[tuple[str, str], list[str]] = {}
    module = state = ""
    for line in text.splitlines():
        if line.startswith("Module:"):
            module, state = line, ""
        elif line in TORCH_STATES:
            state = line
        elif line.startswith(("\t", "#", "Device:")):
            found.setdefault((module, state), []).append(line)
    return found
