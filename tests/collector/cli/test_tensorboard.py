"""Commands beside TensorBoard: it ends with them, and most need none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memboard.collector.cli.tensorboard import Server, serving


def test_what_fails_while_it_starts_stops_it(tmp_path, monkeypatch):
    processes = []

    def stopped(self):
        processes.append(self._process)
        stop(self)

    stop = Server.stop
    monkeypatch.setattr(Server, "stop", stopped)

    def start(self, remedy):
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "start", start)
    with pytest.raises(KeyboardInterrupt), serving(tmp_path, 0):
        raise AssertionError("it went on")
    (process,) = processes
    assert process.poll() is not None


WITHOUT_VIEWER = """
import sys
for name in ("tensorboard", "werkzeug", "google.protobuf"):
    sys.modules[name] = None
from memboard.tb_plugin.cli import main
if __name__ == "__main__":
    sys.argv[0] = "memboard"
    sys.exit(main())
"""


@pytest.fixture(scope="module")
def without_viewer(tmp_path_factory):
    """Runs a verb where only what recording needs is installed."""
    folder = tmp_path_factory.mktemp("recorder")
    script = folder / "command.py"
    script.write_text(WITHOUT_VIEWER)

    def run(*arguments):
        return subprocess.run(
            [sys.executable, script, *map(str, arguments)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    size = ("--simulate", "2", "--steps", "30")
    done = run("demo", "--no-serve", "--out", "runs", *size)
    assert done.returncode == 0, done.stderr
    return run


def test_recordings_are_written_and_reported_without_the_viewer(without_viewer):
    done = without_viewer("report", "runs")
    assert done.returncode == 0, done.stderr
    assert "2 ranks" in done.stdout
    done = without_viewer("merge", "runs", "--out", "merged.json")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", [("open", "runs"), ("demo", "--out", "shown")])
def test_what_shows_a_page_names_what_to_install(without_viewer, verb):
    done = without_viewer(*verb)
    assert done.returncode == 2
    assert "this Python has no tensorboard and no werkzeug" in done.stderr
    assert "pip install 'memboard[viewer]'" in done.stderr
