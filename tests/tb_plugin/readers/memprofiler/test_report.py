"""Memory reports: what torch prints is read back as what it printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.memory import TORCH_CATEGORIES, TORCH_STATES
from memboard.tb_plugin.analysis.modules.states import ALL_STATES
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.formats.memprofiler import rows as report_rows
from memboard.tb_plugin.formats.memprofiler.report import read_report
from memboard.tb_plugin.formats.memprofiler.rows import UNITS, size_of
from memboard.tb_plugin.formats.memprofiler.stats import UnreadableError
from tests.memprofiler_files import FSDP_LABELS as LABELS
from tests.memprofiler_files import RULE, printed_by_torch
from tests.tb_plugin.client import Page, numbers_of

if TYPE_CHECKING:
    from pathlib import Path

    from memboard.tb_plugin.formats.memprofiler.rows import Report

CUDA = (32769024, 131074048, 131072, 1024, 0, 67637760, 0, 65536000, 0, 2048, 0)
ENUMS = (
    "SHARDED_PARAM",
    "UNSHARDED_PARAM",
    "BUFFER",
    "SHARDED_GRAD",
    "UNSHARDED_GRAD",
    "ACT",
    "TEMP",
    "ALL_GATHER",
    "REDUCE_SCATTER",
    "OPT",
    "INP",
)
CPU = {"Sharded Param": 60039168, "Sharded Grad": 32768000, "Buffer": 16, "OptState": 65536008}  # fmt: skip


@pytest.fixture(scope="module")
def printed(fsdp_on_cpu, tmp_path_factory) -> tuple[Path, dict]:
    """What torch's own trackers print here, and what they held."""
    folder = tmp_path_factory.mktemp("torch")
    return folder, printed_by_torch(folder)


def held(report: Report) -> dict:
    """The report as {(fqn, state, call, device): {category: bytes}}; totals too."""
    states = report.states
    found = {}
    for row in range(len(states.state)):
        module = int(states.module[row])
        key = (
            states.tree.fqn[module] if module >= 0 else "",
            ALL_STATES[states.state[row]],
            int(states.call[row]),
            states.devices[states.device[row]],
        )
        values = dict(zip(states.categories, states.bytes[row].tolist(), strict=True))
        found[key] = {k: v for k, v in values.items() if not np.isnan(v)}
        found[key]["total"] = float(states.total_bytes[row])
    return found


def truth_of(tracked: dict, unit: int = 1) -> dict:
    """The same from torch's snapshots; devices that hold nothing are not printed."""

    def fine(sizes: dict) -> dict:
        def as_printed(size: int) -> float:
            return size if unit == 1 else round(size / unit, 2) * unit

        return {
            TORCH_CATEGORIES.get(label, "total"): as_printed(size)
            for label, size in sizes.items()
        }

    found = {}
    for device, sizes in tracked["peak"].items():
        if round(sizes["Total"] / unit, 2) > 0:
            found["", "window_peak", 0, device] = fine(sizes)
    for fqn, states in tracked["modules"].items():
        for state, calls in states.items():
            for call, devices in enumerate(calls):
                for device, sizes in devices.items():
                    if round(sizes["Total"] / unit, 2) > 0:
                        found[fqn, TORCH_STATES[state], call, device] = fine(sizes)
    return found


@pytest.mark.parametrize("units", ["B", "KiB", "MiB"])
@pytest.mark.parametrize("style", ["lines", "tables"])
@pytest.mark.parametrize("tracker", ["fsdp", "plain"])
def test_what_torch_prints_is_what_it_held(printed, tracker, style, units):
    folder, truth = printed
    report = read_report((folder / f"{tracker}.{style}.{units}").read_bytes())
    assert held(report) == truth_of(truth[tracker], UNITS[units])
    assert report.left_out.num == 0
    assert not report.is_cut
    assert report.rounding_bytes == (0 if units == "B" else UNITS[units] * 0.005)


def test_modules_of_a_report_form_a_tree(printed):
    folder, _ = printed
    tree = read_report((folder / "plain.lines.B").read_bytes()).states.tree
    root = tree.fqn.index("Sequential")
    assert tree.parent[root] == -1
    assert tree.fqn[tree.parent[tree.fqn.index("Sequential.2.0")]] == "Sequential.2"


def documented(labels: tuple[str, ...], *, tabulate: bool) -> bytes:
    """The report of MemProfiler's documentation: its figures, in its layout."""
    devices = {
        "cuda:0": CUDA,
        "cpu": tuple(CPU.get(label, 0) for label in LABELS),
    }
    head = [
        "Iteration 2 training_step Peak FSDP memory stats: ",
        RULE,
    ]
    if tabulate:
        rows = [["Device", *labels, "Total"]]
        for device, sizes in devices.items():
            rows.append([device, *(f"{s} B" for s in (*sizes, sum(sizes)))])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        border = "  ".join("=" * width for width in widths)
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))
            for row in rows
        ]
        body = [border, lines[0], border, *lines[1:], border]
    else:
        body = []
        for device, sizes in devices.items():
            body.append(f"Device: {device}")
            body += [f"\t{a}: {b} B" for a, b in zip(labels, sizes, strict=True)]
            body.append(f"\tTotal: {sum(sizes)} B")
    tail = [RULE, "Iteration 2 training_step Modulewise FSDP memory stats: ", RULE]
    return "\n".join([*head, *body, *tail, RULE, ""]).encode()


@pytest.mark.parametrize("tabulate", [False, True])
@pytest.mark.parametrize(
    "labels", [LABELS, tuple(f"_FSDPRefType.{name}" for name in ENUMS)]
)
def test_the_documented_report_sums_to_its_totals(labels, tabulate):
    report = read_report(documented(labels, tabulate=tabulate))
    found = held(report)
    for device, expected in (("cuda:0", 297_150_976), ("cpu", 158_343_192)):
        values = found["", "window_peak", 0, device]
        total = values.pop("total")
        assert sum(values.values()) == total == expected
    assert report.states.states(0) == ("window_peak",)
    assert report.left_out.num == 0
    assert not report.is_cut


def test_names_of_enumerations_mean_the_same_states(printed):
    folder, _ = printed
    text = (folder / "fsdp.lines.B").read_text()
    expected = held(read_report(text.encode()))
    members = {
        "Peak Forward": "PEAK_FW",
        "Before Pre-Forward": "BEF_PRE_FW",
        "After Pre-Forward": "AFT_PRE_FW",
        "Before Post-Forward": "BEF_POST_FW",
        "After Post-Forward": "AFT_POST_FW",
        "Peak Backward": "PEAK_BW",
        "Before Pre-Backward": "BEF_PRE_BW",
        "After Pre-Backward": "AFT_PRE_BW",
        "Before Post-Backward": "BEF_POST_BW",
        "After Post-Backward": "AFT_POST_BW",
    }
    for state, member in members.items():
        text = re.sub(f"^{state}$", f"_FSDPModState.{member}", text, flags=re.MULTILINE)
    assert "Forward" not in text
    assert held(read_report(text.encode())) == expected


def test_a_blank_cell_and_two_dots_mean_the_row_above():
    def table(blank: str) -> bytes:
        return (
            "Module:  Net\n"
            "==================  ======  ==========  =======\n"
            "State & Call        Device  Activation  Total\n"
            "==================  ======  ==========  =======\n"
            "Peak Forward # 2    cuda:0  3 B         3 B\n"
            f"{blank:18}  cpu     4 B         4 B\n"
            "Peak Backward # 1   cuda:0  5 B         5 B\n"
            "==================  ======  ==========  =======\n"
        ).encode()

    for blank in ("..", ""):
        assert held(read_report(table(blank))) == {
            ("Net", "peak_forward", 1, "cuda:0"): {"activation": 3, "total": 3},
            ("Net", "peak_forward", 1, "cpu"): {"activation": 4, "total": 4},
            ("Net", "peak_backward", 0, "cuda:0"): {"activation": 5, "total": 5},
        }


def test_a_report_that_was_cut_off_says_so_and_keeps_the_rest(printed):
    folder, truth = printed
    head = f"Iteration 3 fit Peak FSDP memory stats: \n{RULE}\n"
    body = (folder / "fsdp.lines.B").read_text()
    at = body.index("Module:")
    middle = f"{RULE}\nIteration 3 fit Modulewise FSDP memory stats: \n{RULE}\n"
    whole = f"{head}{body[:at]}{middle}{body[at:]}{RULE}\n"
    assert not read_report(whole.encode()).is_cut
    expected = truth_of(truth["fsdp"])
    for stop in range(len(head) + 400, len(whole) - 82, 371):
        report = read_report(whole[:stop].encode())
        assert report.is_cut
        for key, sizes in held(report).items():
            for category, size in sizes.items():
                if category != "total":  # a cut number is shorter, never longer
                    assert size <= expected[key][category]


def test_a_peak_of_another_iteration_is_told(printed):
    """A2: three logs of batches 2, 8, 2 all say the last one's peak."""
    folder, _ = printed
    text = (folder / "fsdp.lines.B").read_text()
    assert read_report(text.encode()).reasons == ()
    total = re.search(r"Total: (\d+) B", text)
    assert total is not None
    low = text.replace(total[0], f"Total: {int(total[1]) // 2} B", 1)
    (reason,) = read_report(low.encode()).reasons
    assert "another iteration's" in reason
    for units in ("KiB", "MiB"):
        (reason,) = read_report((folder / f"fsdp.lines.{units}").read_bytes()).reasons
        assert "rounded to" in reason


def test_what_is_no_report_is_refused_with_the_first_strange_line():
    for text in ("", "\n\n", "hello\n", f"{RULE}\n", "No memory tracked.\n"):
        with pytest.raises(UnreadableError) as caught:
            read_report(text.encode())
        assert caught.value.remedy
    with pytest.raises(
        UnreadableError, match="line 1: hello is not a line of a report"
    ):
        read_report(b"hello\n")


def test_an_unknown_category_counts_as_other_and_is_named():
    report = read_report(
        b"Device: cuda:0\n\tTemp: 1 B\n\tNew Thing: 7 B\n\tTotal: 8 B\n"
    )
    ((_, values),) = held(report).items()
    assert values == {"temp": 1, "other": 7, "total": 8}
    assert report.left_out.num == 1
    assert "New Thing" in report.left_out.texts[0]


def test_a_line_that_means_nothing_costs_only_itself():
    report = read_report(
        b"Device: cpu\n\tTemp: 1 B\n\tBuffer: many B\n<script>\n\tInputs: 2 B\n"
    )
    ((_, values),) = held(report).items()
    assert values == {"temp": 1, "input": 2, "total": 3}
    assert report.left_out.num == 2


def test_entries_devices_and_lines_are_bounded(monkeypatch):
    monkeypatch.setattr(report_rows, "MAX_ROWS", 10)
    many = "".join(f"Device: cuda:{i}\n\tTotal: 1 B\n" for i in range(20))
    report = read_report((many + "x" * 30_000).encode())
    assert len(report.states.state) == 10
    assert report.left_out.num > 10


@pytest.mark.parametrize(
    "text", ["1e400 B", "nan B", "5", "5 MB", "5 TiB", "9" * 30 + " B"]
)
def test_no_size(text):
    assert size_of(text) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_a_report_or_refused(data):
    try:
        report = read_report(data)
    except UnreadableError:
        return
    assert len(report.states.state)


PIECES = ("Module:  Net\n", "Peak Forward\n", "# 1:\n", "Device: cpu\n", "\tTemp: 1 B\n", "==  ==\n",
          "a   b\n", "\tTotal: 3 KiB\n", f"{RULE}\n", "Device: \n", "Module:\n", "# 99:\n",
          "Iteration 2 f Peak FSDP memory stats: \n", "==\n", "..  1 B\n")  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_order_of_lines_gives_rows_of_the_tree(lines):
    try:
        states = read_report("".join(lines).encode()).states
    except UnreadableError:
        return
    assert states.module.max() < len(states.tree)
    assert states.bytes.shape == (len(states.state), len(states.categories))
    for state in states.states(0):
        states.at(state, 0, None)


def as_memprofiler_prints(folder: Path, tracker: str, units: str) -> bytes:
    """A report of call 2: the peak in bytes, the modules in other units, as there."""

    def part(name: str, *, is_peak: bool) -> str:
        text = (folder / name).read_text()
        peak, _, modules = text.partition("Module:")
        return peak if is_peak else f"Module:{modules}"

    lines = [
        f"Iteration 2 training_step Peak FSDP memory stats: \n{RULE}\n",
        part(f"{tracker}.tables.B", is_peak=True),
        f"{RULE}\nIteration 2 training_step Modulewise FSDP memory stats: \n{RULE}\n",
        part(f"{tracker}.tables.{units}", is_peak=False),
        f"{RULE}\n",
    ]
    return "".join(lines).encode()


@pytest.mark.parametrize("units", ["B", "KiB", "MiB"])
@pytest.mark.parametrize(
    ("tracker", "state"), [("fsdp", "peak_forward"), ("plain", "window_peak")]
)
def test_a_report_opens_at_its_peak(printed, tmp_path, tracker, state, units, capsys):
    """Not after post-forward, below it: in Modules and in `memboard report`."""
    folder, truth = printed
    (device,) = truth[tracker]["peak"].values()
    dumps = tmp_path / "version_0" / "memprofiler"
    dumps.mkdir(parents=True)
    path = dumps / "fsdp_mem_rank_0_training_step_2.log"
    path.write_bytes(as_memprofiler_prints(folder, tracker, units))
    page = Page(tmp_path)
    answer = page.of_run("/modules", "version_0")
    assert answer["state"] == state
    half = 0.005 * UNITS[units] if units != "B" else 0
    highest = np.nanmax(numbers_of(answer["table"], "rank_total_bytes"))
    assert highest == pytest.approx(device["Total"], abs=half + 1e-6)
    assert answer["facts"]["window_peak_bytes"] == pytest.approx(highest, abs=half + 1)
    assert main(["report", str(tmp_path)]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if state in one]
    assert line.strip().startswith("modules: training_step/train/2 on rank 0")


def test_without_a_peak_of_its_own_the_highest_state_is_shown():
    text = "Module:  Net\nBefore Pre-Forward\n# 1:\nDevice: cpu\n\tTotal: 5 B\n"
    text += "After Post-Forward\n# 1:\nDevice: cpu\n\tTotal: 3 B\n"
    states = read_report(text.encode()).states
    assert states.default_state(0) == "before_pre_forward"
