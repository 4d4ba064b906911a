"""A file that hides our package is named, by its path and with what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

LOAD = "from tb_plugin.loader import Loader; assert Loader().load(object()) is None"


def test_a_file_that_hides_the_collector_is_named_in_the_log(tmp_path):
    hiding = tmp_path / "collector.py"
    hiding.write_text("answer = 42\n")
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert f"{hiding} hides MemBoard's own package" in done.stderr
    assert "Rename it" in done.stderr
