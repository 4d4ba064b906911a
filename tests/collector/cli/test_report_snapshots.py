"""`memboard report` on snapshots, with or without an error: the figures of each file."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from tb_plugin.cli import main
from tests.made_snapshots import long_history
from tests.tb_plugin.analysis.snapshots import EXPECTED, REAL
from tests.tb_plugin.analysis.test_conformance import ONLY_COMPLETED

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


def trained(*, frames: bool = True) -> dict[str, Any]:
    """Two lines allocate 6 and 4 MiB; the second one's are freed before the end."""

    def event(number: int, action: str, addr: int, size: int, line: int) -> dict:
        frame = {"filename": "/home/me/train.py", "line": line, "name": "forward"}
        return {
            "action": action,
            "addr": addr,
            "size": size,
            "stream": 0,
            "time_us": 1_700_000_000_000_000 + number,
            "frames": [frame] if frames else [],
        }

    base = 0x7F00_0000_0000
    events = [
        event(0, "segment_alloc", base, 20 * MIB, 1),
        event(1, "alloc", base, 6 * MIB, 7),
        event(2, "alloc", base + 6 * MIB, 4 * MIB, 9),
        event(3, "free_requested", base + 6 * MIB, 4 * MIB, 9),
        event(4, "free_completed", base + 6 * MIB, 4 * MIB, 9),
    ]
    blocks = [
        {
            "address": base,
            "size": 6 * MIB,
            "requested_size": 6 * MIB,
            "state": "active_allocated",
            "frames": events[1]["frames"],
        },
        {
            "address": base + 6 * MIB,
            "size": 14 * MIB,
            "requested_size": 0,
            "state": "inactive",
            "frames": [],
        },
    ]
    segment = {
        "device": 0,
        "address": base,
        "total_size": 20 * MIB,
        "allocated_size": 6 * MIB,
        "active_size": 6 * MIB,
        "requested_size": 6 * MIB,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }
    return {"segments": [segment], "device_traces": [events], "allocator_settings": {}}


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
    assert code == 0
    assert found["problem"] is None
    by_number = {device["device"]: device for device in found["devices"]}
    used = 0
    for place, expected in enumerate(EXPECTED[name]["devices"]):
        if not (expected["num_events"] or expected["num_segments"]):
            assert place not in by_number
            continue
        figures = dict(expected)
        if name == ONLY_COMPLETED:
            figures = {k: v for k, v in figures.items() if "peak_allocated" not in k}
        device = by_number[place]
        assert {key: device[key] for key in figures} == figures
        used += 1
    assert used == len(by_number)


def test_a_file_without_an_error_has_its_figures_in_every_form(dump, say):
    path = dump("snapshot.pickle", trained())
    text, code = say(path)
    assert code == 0
    assert "peak: 10.00 MiB active, at event 3 of 5" in text
    assert "reserved: 20.00 MiB in 1 segment, at most 20.00 MiB" in text
    assert "allocated: 6.00 MiB" in text
    assert "largest free block: 14.00 MiB" in text
    assert "categories at the peak:" in text
    assert "not recorded: The size of the device" in text
    lines = [line.split() for line in text.splitlines() if "train.py" in line]
    assert [line[:4] for line in lines] == [
        ["train.py:7", "forward", "6.00", "MiB"],
        ["train.py:9", "forward", "4.00", "MiB"],
    ]
    text, code = say(path, "--md")
    assert code == 0
    assert "- peak: 10.00 MiB active, at event 3 of 5 (2023-11-14" in text
    assert "| train.py:7 forward | 6.00 MiB | 60.0% |" in text
    (found,) = snapshots_of(say(path, "--json")[0])
    (device,) = found["devices"]
    assert device["peak_active_ms"] == 1_700_000_000_000.002
    assert sum(device["categories_bytes"].values()) == 10 * MIB
    assert device["capacity_bytes"] is None


def test_what_a_file_lacks_is_said(dump, say):
    bare = trained()
    bare["device_traces"] = []
    text, _ = say(dump("bare.pickle", bare))
    assert "not recorded: The history: the peak is the state" in text
    assert "earlier peaks are not recorded" in text
    text, _ = say(dump("blind.pickle", trained(frames=False)))
    assert "not recorded: Stack traces of 100% of the peak" in text


def test_captures_of_a_recording_have_figures_as_files_do(tmp_path, say):
    from collector.format.snapshots import tables_of
    from tests.builders import RunBuilder

    rank = RunBuilder(tmp_path / "exp").rank(0)
    rank.capture(kind="history", tables=tables_of(trained()), label="before eval")
    rank.close()
    text, _ = say(tmp_path)
    assert "snapshot rank 0, before eval" in text
    (found,) = snapshots_of(say(tmp_path, "--json")[0])
    assert found["devices"][0]["peak_active_bytes"] == 10 * MIB


def test_a_refused_file_is_named_in_every_form_beside_good_ones(dump, say, tmp_path):
    good = dump("good_snapshot.pickle", trained())
    random = tmp_path / "bad_snapshot.pickle"
    random.write_bytes(b"\x80\x04" + bytes(range(256)) * 8)
    gone = tmp_path / "gone_snapshot.pickle"
    for form in ((), ("--md",), ("--json",)):
        text, code = say(good, random, gone, *form)
        assert code == 0
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
    dump("snapshot.pickle", trained())
    text, code = say(tmp_path)
    assert code == 0
    assert text.splitlines()[0].startswith(tmp_path.name)
    assert "0 ranks" not in text
    assert "snapshot snapshot.pickle" in text
    assert say(tmp_path, "--md")[0].startswith(f"# {tmp_path.name} (")
