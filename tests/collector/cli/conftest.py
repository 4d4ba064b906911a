"""Fixtures of the verbs' tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TORCH_REPORTS = (
    Path(__file__).parents[2]
    / "tb_plugin"
    / "readers"
    / "memprofiler"
    / "torch_reports.py"
)


@pytest.fixture(scope="session")
def torch_reports(tmp_path_factory) -> tuple[Path, dict]:
    """What torch's own trackers print here, and what they held."""
    folder = tmp_path_factory.mktemp("torch")
    subprocess.run(
        [sys.executable, TORCH_REPORTS, folder],
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    return folder, json.loads((folder / "truth.json").read_text())
