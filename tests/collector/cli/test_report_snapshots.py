"""`memboard report` on snapshots, with or without an error: the figures of each file."""

from __future__ import annotations

import json
import os
import pickle
import re
from typing import TYPE_CHECKING, Any

import pytest

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.jobs.histories import Histories
from tests.made_snapshots import block, event, frame, long_history, segment
from tests.tb_plugin.analysis.snapshots import EXPECTED, REAL
from tests.tb_plugin.analysis.test_conformance import counted_peaks

if TYPE_CHECKING:
    from pathlib import Path

BY_HAND = "drisspg+transformer_nuggets__test__data__mini_snapshot.pickle"
"""Its events do not lead to its segments, which is a problem."""
MADE_UP = "Da1sypetals+SnapViewer__assets__memory.pickle"
"""Its segments are larger than the blocks in them, which no allocator leaves."""


@pytest.fixture
def dump(tmp_path):
    def dumped(name: str, snapshot: object) -> Path:
        path = tmp_path / name
        path.write_bytes(pickle.dumps(snapshot))
        return path

    return dumped


@pytest.fixture
def say(capsys):
    """Runs the verb; gives what it printed, and its exit code."""

    def said(*arguments: object) -> tuple[str, int]:
        code = main(["report", *map(str, arguments)])
        return capsys.readouterr().out, code

    return said


def snapshots_of(text: str) -> list[dict[str, Any]]:
    (run,) = json.loads(text)["runs"]
    return run["snapshots"]


@pytest.mark.parametrize("name", EXPECTED)
def test_every_known_figure_of_a_recorded_file(name, say):
    text, code = say(REAL / name, "--json")
    (found,) = snapshots_of(text)
    assert code == (4 if name in (BY_HAND, MADE_UP) else 0)
    assert found["problem"] is None
    by_number = {device["device"]: device for device in found["devices"]}
    used = 0
    for place, expected in enumerate(EXPECTED[name]["devices"]):
        if not (expected["num_events"] or expected["num_segments"]):
            assert place not in by_number
            continue
        figures = expected | counted_peaks(name, place)
        device = by_number[place]
        assert {key: device[key] for key in figures} == figures
        used += 1
    assert used == len(by_number)


def test_stacks_that_a_file_lacks_are_said(dump, say):
    blind = long_history(50)
    for entry in blind["device_traces"][0]:
        entry["frames"] = []
    text, _ = say(dump("blind.pickle", blind))
    assert "not recorded: Stack traces of 100 % of the peak" in text


def test_a_refused_file_is_named_in_every_form_beside_good_ones(dump, say, tmp_path):
    good = dump("good_snapshot.pickle", long_history(50))
    random = tmp_path / "bad_snapshot.pickle"
    random.write_bytes(b"\x80\x04" + bytes(range(256)) * 8)
    gone = tmp_path / "gone_snapshot.pickle"
    for form in ((), ("--md",), ("--json",)):
        text, code = say(good, random, gone, *form)
        assert code == 4
        assert "bad_snapshot.pickle" in text
        assert "gone_snapshot.pickle" in text
    assert "what to do" in say(good, random)[0]


def test_a_file_that_is_refused_while_it_is_read_ends_with_2(dump, say):
    whole = pickle.dumps(long_history(5000))
    torn = dump("snapshot.pickle", None)
    torn.write_bytes(whole[: len(whole) // 2] + b".")
    for form in ((), ("--md",), ("--json",)):
        text, code = say(torn, *form)
        assert code == 2
        assert "snapshot.pickle" in text
    (found,) = snapshots_of(say(torn, "--json")[0])
    assert found["devices"] == []
    assert found["problem"]["what"]
    assert found["problem"]["remedy"]


def test_where_all_are_refused_the_output_names_them_too(say, tmp_path):
    random = tmp_path / "bad_snapshot.pickle"
    random.write_bytes(bytes(range(256)) * 8)
    for form in ("--md", "--json"):
        text, code = say(random, form)
        assert code == 2
        assert "bad_snapshot.pickle" in text


def test_a_run_that_is_the_logdir_itself_has_the_directorys_name(dump, say, tmp_path):
    dump("snapshot.pickle", long_history(50))
    text, code = say(tmp_path)
    assert code == 0
    assert text.splitlines()[0].startswith(tmp_path.name)
    assert "0 ranks" not in text
    assert "snapshot snapshot.pickle" in text
    assert say(tmp_path, "--md")[0].startswith(f"# {tmp_path.name} (")


def test_many_files_are_a_row_each_but_those_that_hold_most(dump, say):
    sizes = (10, 20, 40, 70, 100)
    paths = [dump(f"rank{n}_snapshot.pickle", long_history(n)) for n in sizes]
    peaks = {
        one["history"]["path"]: one["devices"][0]["peak_active_bytes"]
        for one in snapshots_of(say(*paths, "--json")[0])
    }
    by_peak = sorted(peaks, key=peaks.__getitem__, reverse=True)
    text, code = say(*paths)
    assert code == 0
    lines = [line.strip() for line in text.splitlines()]
    assert {f"snapshot {name}" for name in by_peak[:3]} < set(lines)
    begin = lines.index("2 more snapshots") + 2
    assert {line.split()[0] for line in lines[begin : begin + 2]} == set(by_peak[3:])


def test_equal_layers_are_one_row(say, tmp_path, capsys):
    sizes = ["--simulate", "2", "--steps", "20", "--out", str(tmp_path)]
    assert main(["demo", "--no-serve", *sizes]) == 0
    capsys.readouterr()
    text, _ = say(tmp_path, "--rank", "0")
    layers = [line for line in text.splitlines() if "Transformer.layers." in line]
    assert layers
    assert all(" x Transformer.layers.*" in line for line in layers)


def streamed() -> dict[str, Any]:
    """Four parameters; at the peak six buffers wait for another stream, one does not."""
    param, buffer = [frame("__init__", 20, "model.py")], [frame("step", 20)]
    base, mib = 0x7F0000000000, 2**20
    trace = [event("segment_alloc", base, 20 * mib, 0, frames=param)]
    for at in range(11):
        frames = param if at < 4 else buffer
        trace.append(event("alloc", base + at * mib, mib, at + 1, frames=frames))
        if 4 <= at < 10:
            trace.append(event("free_requested", base + at * mib, mib, at + 1))
    trace.append(event("free_requested", base + 10 * mib, mib, 20))
    trace += [
        event("free_completed", base + at * mib, mib, 20 + at) for at in range(4, 11)
    ]
    blocks = [block(base + at * mib, mib, frames=param) for at in range(4)]
    blocks.append(block(base + 4 * mib, 16 * mib, "inactive", frames=[]))
    return {"segments": [segment(base, blocks)], "device_traces": [trace]}


def test_the_table_is_of_the_moment_of_the_number_above_it(dump, say):
    text, code = say(dump("snapshot.pickle", streamed()), "--json")
    (device,) = snapshots_of(text)[0]["devices"]
    assert code == 0
    assert device["peak_active_bytes"] == 11 * 2**20
    held = [
        (one["label"], one["bytes"] >> 20, one["is_pending"])
        for one in device["holders"]
    ]
    assert held == [
        ("train.py:20 step", 6, True),
        ("model.py:20 __init__", 4, False),
        ("train.py:20 step", 1, False),
    ]
    assert sum(one["share"] for one in device["holders"]) == pytest.approx(1)
    assert device["peak_allocated_bytes"] == 5 * 2**20
    text, _ = say(dump("snapshot.pickle", streamed()))
    assert re.search(r"train.py:20 step, freed and pending +6.00 MiB +54.5%", text)


@pytest.mark.parametrize("others", [0, 3])
def test_what_was_pending_before_the_first_event_was_not_allocated(dump, say, others):
    """Of another stream's block only the end is in the ring of events."""
    base = 0x7F0000000000
    trace = [event("free_completed", base + 4096, 2048, 1)]
    for at in range(others):
        address = base + 8192 + 512 * at
        trace += [
            event(action, address, 512, 2)
            for action in ("alloc", "free_requested", "free_completed")
        ]
    blocks = [block(base, 4096), block(base + 4096, 2**20 - 4096, "inactive")]
    made = {"segments": [segment(base, blocks)], "device_traces": [trace]}
    (device,) = snapshots_of(say(dump("snapshot.pickle", made), "--json")[0])[0][
        "devices"
    ]
    assert device["peak_active_bytes"] == 4096 + 2048
    assert device["peak_allocated_bytes"] == 4096 + (512 if others else 0)


def test_each_of_many_is_opened_once_and_told_in_order(tmp_path, say, monkeypatch):
    opened = []
    open_it = Histories._opened

    def counted(self, run, job):
        opened.append(job.found.reference.path)
        return open_it(self, run, job)

    monkeypatch.setattr(Histories, "_opened", counted)
    monkeypatch.setattr(Histories, "max_retained", 4)
    names = [f"s{number:02}.pickle" for number in range(30)]
    for number, name in enumerate(names):
        dumped = long_history(40 - number)
        (tmp_path / name).write_bytes(pickle.dumps(dumped))
        os.utime(tmp_path / name, (1_700_000_000 + number,) * 2)
    text, code = say(tmp_path, "--json")
    assert code == 0
    assert sorted(opened) == names
    found = [one["history"]["path"] for one in snapshots_of(text)]
    assert found == names
