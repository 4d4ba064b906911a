"""A kill that cuts a recording off is said, and is no failure of reading; damage is one."""

from __future__ import annotations

import json
import os
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from memboard.collector.format.encoding.framing import read_frames
from memboard.tb_plugin.cli import main
from memboard.tb_plugin.index import run as run_module
from tests.builders import RunBuilder
from tests.segmented import Written
from tests.tb_plugin.client import Page

if TYPE_CHECKING:
    from pathlib import Path

FORMS = ((), ("--md",), ("--json",))
CUT = "The file ends in the middle of a record"
LONG_AGO_S = 3600


@pytest.fixture
def file(tmp_path) -> Path:
    """The file of a rank that did not close its recording."""
    RunBuilder(tmp_path / "exp").simple(1, 200, close=False)
    (path,) = (tmp_path / "exp").rglob("rank*.events")
    return path


@pytest.fixture
def report(tmp_path, capsys):
    """The text of a form, and the exit code."""

    def reported(*form: str) -> tuple[str, int]:
        code = main(["report", *form, str(tmp_path)])
        return capsys.readouterr().out, code

    return reported


def put(path: Path, data: bytes, *, age_s: float = LONG_AGO_S) -> None:
    path.write_bytes(data)
    written = time.time() - age_s
    os.utime(path, (written, written))


def problems_in(text: str) -> list[dict[str, Any]]:
    (run,) = json.loads(text)["runs"]
    found: list[dict[str, Any]] = run["problems"]
    return found


def ends_of(data: bytes) -> list[int]:
    return [0, *(item.end for item in read_frames(data))]


def cuts(data: bytes) -> list[int]:
    """Where a kill may cut the file: in its last records, at each kind of place."""
    last = [*pairwise(ends_of(data))][-3:]
    return [
        at
        for start, end in last
        for at in (start + 1, start + 8, start + 12, (start + end) // 2, end - 1)
    ]


def test_a_recording_that_a_kill_cut_off_was_read(file, report, tmp_path):
    whole = file.read_bytes()
    for at in cuts(whole):
        put(file, whole[:at])
        for form in FORMS:
            text, code = report(*form)
            assert code == 0, at
            assert CUT in text
            assert "--json" in form or "1 note, listed at the end" in text
        (problem,) = problems_in(report("--json")[0])
        assert problem["severity"] == "info"
        assert (problem["rank"], problem["salvaged"] != "nothing") == (0, True)
    page = Page(tmp_path)
    overview = page.of_run("/overview", "exp")
    (shown,) = overview["problems"]
    assert shown["severity"] == "info"
    assert overview["run"]["num_problems"] == 0


def test_a_recording_that_ends_with_a_record_has_no_problem(file, report):
    whole = file.read_bytes()
    for at in ends_of(whole)[-3:]:
        put(file, whole[:at])
        assert [report(*form)[1] for form in FORMS] == [0, 0, 0]
        assert problems_in(report("--json")[0]) == []


def test_a_recording_that_is_being_written_has_no_problem(file, report, monkeypatch):
    monkeypatch.setattr(run_module, "LIVE_SECONDS", 1e12)
    put(file, file.read_bytes()[:-5])
    assert [report(*form)[1] for form in FORMS] == [0, 0, 0]
    assert problems_in(report("--json")[0]) == []


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def end_damaged(data: bytes) -> bytes:
    return flipped(data, len(data) - 20)


def length_damaged(data: bytes) -> bytes:
    return flipped(data, ends_of(data)[-2] + 1)


def zeros_behind(data: bytes) -> bytes:
    """As some file systems leave them after a power cut."""
    return data + bytes(400)


def other_bytes_behind(data: bytes) -> bytes:
    return data + bytes(range(1, 200))


def middle_damaged(data: bytes) -> bytes:
    ends = ends_of(data)
    return flipped(data, ends[len(ends) // 2] - 20)


def middle_damaged_and_cut(data: bytes) -> bytes:
    return middle_damaged(data)[:-5]


def damaged_before_the_cut(data: bytes) -> bytes:
    return flipped(data, ends_of(data)[-2] - 20)[:-5]


DAMAGE = (
    end_damaged,
    length_damaged,
    zeros_behind,
    other_bytes_behind,
    middle_damaged,
    middle_damaged_and_cut,
    damaged_before_the_cut,
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_a_kill_does_not_leave_is_damage(file, report, damage):
    put(file, damage(file.read_bytes()))
    for form in FORMS:
        text, code = report(*form)
        assert code == 4
        assert "damaged" in text
    severities = {one["severity"] for one in problems_in(report("--json")[0])}
    assert "warning" in severities


def test_missing_parts_are_a_failure_and_a_cut_last_one_is_none(tmp_path, report):
    run = Written(tmp_path / "exp", segment_bytes=1000)
    run.step = 1  # its captures of modules have no tables
    run.steps(390)
    assert len(run.paths) > 4
    last = run.paths[-1]
    put(last, last.read_bytes()[:-5])
    assert report()[1] == 0
    run.paths[2].unlink()
    text, code = report()
    assert code == 4
    assert "missing" in text
