"""A file that hides our package is named, by its path and with what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LOAD = """
from werkzeug.test import Client
from memboard.tb_plugin.loader import Loader
plugin = Loader().load(object())
assert plugin.is_active()
assert plugin.frontend_metadata().es_module_path == "/index.js"
print(Client(plugin.get_plugin_apps()["/index.js"]).get("/index.js").text)
"""
COMMAND = "import sys; from memboard.tb_plugin.command import main; sys.exit(main())"


def started(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that is started in a folder, and looks there first."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(params=["collector.py", "collector/__init__.py"])
def hiding(tmp_path, request):
    path = tmp_path / request.param
    path.parent.mkdir(exist_ok=True)
    path.write_text("answer = 42\n")
    return path


def test_what_hides_the_collector_is_named_in_the_log_and_in_the_tab(hiding, tmp_path):
    done = started(LOAD, tmp_path)
    assert done.returncode == 0, done.stderr
    for text in (done.stderr, done.stdout):
        assert f"{hiding} hides MemBoard's own package" in text
        assert "Rename it" in text
    assert "export function render" in done.stdout


def test_what_hides_the_collector_is_named_by_the_command(hiding, tmp_path):
    done = started(COMMAND, tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"memboard: {hiding} hides MemBoard's own package")
    assert "Traceback" not in done.stderr
