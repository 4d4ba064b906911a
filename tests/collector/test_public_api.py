"""What users see: typed keywords, exported sections, and a recorder without internals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields

import collector
from collector.config import sections

ROOT = Path(__file__).parents[2]

CALLS = {
    "attach",
    "close",
    "epoch",
    "flush",
    "instant",
    "loader",
    "log",
    "mark",
    "phase",
}
CALLS |= {"snapshot", "span", "step", "track_inputs"}
FACTS = {
    "attempt",
    "num_batches",
    "num_dropped",
    "num_steps",
    "path",
    "rank",
    "run_dir",
}
FACTS |= {"saved_traces"}


@pytest.mark.parametrize("enabled", [True, False])
def test_a_recorder_shows_only_what_users_call(tmp_path, enabled):
    with collector.record(tmp_path / "run", enabled=enabled) as rec:
        assert {name for name in dir(rec) if name[0] != "_"} == CALLS | FACTS


def test_every_section_is_exported():
    for name, section in sections().items():
        assert getattr(collector, type(section).__name__) is type(section), name
    assert collector.load(history=True).history.enabled


def test_the_keywords_are_the_settings():
    options = collector.RecordOptions.__annotations__
    assert list(options) == [field.name for field in fields(collector.RecordConfig)]


PROGRAM = """
import collector

with collector.record(
    "runs/a",
    flush_seconds=5,
    cpu=False,
    memory=2.5,
    history=True,
    schedule=collector.ScheduleConfig(active=3),
    modules={"root": "model"},
    remote="s3://bucket/{run_name}",
) as rec:
    rec.step(tokens=1)
    rec.log({"loss": 0.5})
collector.load(config=["a.yaml", {"rank": 3}], device="off")
"""

WRONG = """
import collector

collector.record("a", flush_second=5)
collector.record("a", flush_seconds="5")
collector.record("a", device_peaks="epoch")
collector.record("a", history=collector.OomConfig())
collector.ScheduleConfig(activ=3)
collector.load(cpu="often")
"""


CHECKED = """
[mypy]
strict = True
follow_imports = silent
ignore_missing_imports = True

[mypy-torch.*,numpy.*,collector.core.recording]
follow_imports = skip
"""
"""What lies behind a recorder is nothing to its user's checker."""


def test_a_type_checker_knows_every_keyword(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "mypy.ini").write_text(CHECKED)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "right.py", "wrong.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT)},
    )
    lines = result.stdout.splitlines()
    found = [line.split(":")[:2] for line in lines if ": error:" in line]
    assert found == [["wrong.py", str(number)] for number in range(4, 10)], result
