"""The fuzzer runs, and finds nothing among a few hundred files, the same each time."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris is not installed"
)
def test_a_little_fuzzing_finds_nothing(tmp_path):
    # What chance finds would fail on somebody else's change, and a slow machine.
    same_each_time = ("-seed=1", "-entropic=0", "-runs=400", "-timeout=1200")
    script = ROOT / "tests" / "fuzz" / "snapshots.py"
    # Its memory is limited by its highest, in which a child has that of its parent: here
    # a small shell's, and not that of the tests before.
    from_shell = ("sh", "-c", '"$@"; exit $?', "sh")
    done = subprocess.run(
        [*from_shell, sys.executable, script, "0", tmp_path, *same_each_time],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done" in done.stderr
