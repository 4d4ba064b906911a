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
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser

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

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
"""The first has no windows of its own: a page takes half of the processor's time."""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium, closed with the block."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert path, "Chromium is missing: bash tests/run.sh installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass(frozen=True)
class Server:
    """A server that runs, and when it was started."""

    url: str
    log: Path
    pid: int
    began: float

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=120) as response:
            return response.read()


@contextlib.contextmanager
def server(
    command: Sequence[str | Path],
    log: Path,
    says: str = r"at (http://\S+/) \(Press",
    **environment: str,
) -> Iterator[Server]:
    """A server that prints its URL, which `says` finds; ended with the block.

    `log` takes what it prints. It runs in the log's folder and without PYTHONPATH, so
    that only what is installed is found.
    """
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with log.open("w") as sink:
        began = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=inherited | environment,
            start_new_session=True,
        )
    try:
        yield Server(_url(log, process, says), log, process.pid, began)
    finally:
        ended = process.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(120)
        assert ended is None, f"{command} ended with {ended}:\n{log.read_text()}"


@contextlib.contextmanager
def tensorboard(
    arguments: Sequence[str | Path],
    log: Path,
    command: Sequence[str | Path] = (sys.executable, "-m", "tensorboard.main"),
    **environment: str,
) -> Iterator[Server]:
    """A TensorBoard on a free port."""
    flags = ("--port", "0", "--host", "127.0.0.1")
    with server([*command, *arguments, *flags], log, **environment) as running:
        yield running


def _url(log: Path, process: subprocess.Popen, says: str, seconds: float = 240) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        text = log.read_text()
        if found := re.search(says, text):
            return found[1]
        assert process.poll() is None, f"the server ended:\n{text}"
        time.sleep(0.02)
    raise AssertionError(f"the server printed no URL:\n{log.read_text()}")
