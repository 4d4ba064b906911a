"""Users see typed keywords, all sections, and a recorder without internals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields

import memboard as mb
from memboard.collector.config import sections

ROOT = Path(__file__).parents[2]
NAMED = ROOT / ".package"
"""Where the package `memboard` lies, before the wheel installs it."""

CALLS = {
    "attach",
    "close",
    "epoch",
    "flush",
    "instant",
    "loader",
    "log",
    "mark",
    "moments_from",
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
    with mb.record(tmp_path / "run", enabled=enabled) as rec:
        assert {name for name in dir(rec) if name[0] != "_"} == CALLS | FACTS


def test_every_section_is_exported():
    for name, section in sections().items():
        assert getattr(mb, type(section).__name__) is type(section), name
    assert mb.load(history=True).history.enabled


def test_the_keywords_are_the_settings():
    options = mb.RecordOptions.__annotations__
    assert list(options) == [field.name for field in fields(mb.RecordConfig)]


PROGRAM = """
import memboard as mb

with mb.record(
    "runs/a",
    flush_seconds=5,
    host=False,
    process=2.5,
    history=True,
    schedule=mb.ScheduleConfig(active=3),
    modules={"root": "model"},
    remote="s3://bucket/{run_name}",
) as rec:
    rec.step(tokens=1)
    rec.log({"loss": 0.5})
mb.load(config=["a.yaml", {"rank": 3}], device="off")
"""

WRONG = """
import memboard as mb

mb.record("a", flush_second=5)
mb.record("a", flush_seconds="5")
mb.record("a", device_peaks="epoch")
mb.record("a", history=mb.OomConfig())
mb.ScheduleConfig(activ=3)
mb.load(host="often")
"""


CHECKED = """
[mypy]
strict = True
follow_imports = silent
ignore_missing_imports = True

[mypy-torch.*,numpy.*,memboard.collector.session]
follow_imports = skip
"""
"""What lies behind a recorder is nothing to its user's checker."""


def test_a_type_checker_knows_every_keyword(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    own_name = PROGRAM.replace("import memboard as mb", "import collector as mb")
    (tmp_path / "own_name.py").write_text(own_name)
    (tmp_path / "mypy.ini").write_text(CHECKED)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "right.py", "own_name.py", "wrong.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"MYPYPATH": str(NAMED)},
    )
    lines = result.stdout.splitlines()
    found = [line.split(":")[:2] for line in lines if ": error:" in line]
    assert found == [["wrong.py", str(number)] for number in range(4, 10)], result


def test_a_switched_off_recorder_needs_no_numpy(tmp_path):
    code = (
        "import sys, memboard as mb\n"
        "assert 'numpy' not in sys.modules\n"
        "with mb.record('run', enabled=False) as rec: rec.step()\n"
        "assert 'numpy' not in sys.modules\n"
        "assert {'record', 'span', 'RecordConfig'} <= set(dir(mb))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_the_module_is_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "memboard", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(NAMED)},
    )
    assert "report" in result.stdout
