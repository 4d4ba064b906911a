"""Debian's Chromium and a running TensorBoard, for end-to-end tests and benchmarks."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""Headless, without a GPU, and without calls home."""


def launch(playwright: Playwright) -> Browser:
    """Start Chromium."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "Chromium is missing: bash tests/run.sh installs it"
    return playwright.chromium.launch(executable_path=path, args=FLAGS)


@contextlib.contextmanager
def tensorboard(
    arguments: Sequence[str | Path],
    log: Path,
    command: Sequence[str | Path] = (sys.executable, "-m", "tensorboard.main"),
) -> Iterator[str]:
    """A TensorBoard on a free port, its URL; ended with the block.

    `log` takes what it prints. It runs in the log's folder and without PYTHONPATH, so
    that only what is installed is found.
    """
    words = [*command, *arguments, "--port", "0", "--host", "127.0.0.1"]
    with log.open("w") as sink:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            start_new_session=True,
        )
    try:
        yield _url(log, process)
    finally:
        ended = process.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(120)
        assert ended is None, f"tensorboard ended with {ended}:\n{log.read_text()}"


def _url(log: Path, process: subprocess.Popen, seconds: float = 240) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = log.read_text()
        if found := re.search(r"at (http://\S+/) \(Press", text):
            return found[1]
        assert process.poll() is None, f"tensorboard ended:\n{text}"
        time.sleep(0.05)
    raise AssertionError(f"tensorboard printed no URL:\n{log.read_text()}")
