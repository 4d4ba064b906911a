"""Each way to a first picture, opened once: its times, and what the page holds."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.browser import launch
from tests.perf.watched_page import TabCrashedError, WatchedPage

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
IDLE_S = 4.0
BROWSER_S = 2.0
"""A browser has come to rest after this."""
MOST_S = 180.0
"""An opening of MemBoard that takes longer has failed."""
HOLDERS_S = 2.0
"""Holders and flamegraph follow the picture within this."""
REST_S = 0.3
"""After each notch of the wheel: what is looked at becomes sharp, and takes memory."""
MOVES = 30
NOTCHES = 12


@contextlib.contextmanager
def viewer() -> Iterator[WatchedPage]:
    """A page of a browser that has been started and does nothing."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        try:
            page = WatchedPage(browser)
            time.sleep(BROWSER_S)
            yield page
        finally:
            browser.close()


def memory_viz(url: str, file: Path) -> dict[str, float]:
    """One opening of `file` by memory_viz, whose page is at `url`."""
    with viewer() as page:
        page.go(url)
        page.choose("input[type=file]", file)
        try:
            at = page.drawn_at()
            figures = {"total": at - page.evaluate("w.chosenAt") / 1e3}
            words = page.evaluate(
                "[...w.document.querySelectorAll('label')]"
                ".find((one) => one.innerText.includes('Detail')).innerText"
            )
            drawn, known = (int(word) for word in re.findall(r"\d+", words))
            figures |= {"drawn": drawn, "known": known}
            figures |= _interactions(page, "svg")
        except TabCrashedError:
            return {"crashed": 1.0}
        return figures


def command_opens(file: Path, cache: Path) -> dict[str, float]:
    """`memboard open`, from its start."""
    with viewer() as page:
        start = time.time()
        with opened(file, cache) as url:
            served = time.time()
            figures = _shown(page, url)
            figures["start"] = served - start
            figures["total"] += figures["start"]
            figures |= _counted(page)
            time.sleep(HOLDERS_S)
            return figures | _interactions(page, ".block-plot")


def page_opens(logdir: Path, cache: Path) -> tuple[dict[str, float], dict[str, float]]:
    """The page of a TensorBoard that runs; then once more, the history being open."""
    with running(logdir, cache) as url:
        with viewer() as page:
            first = _shown(page, url)
            first |= _counted(page)
        with viewer() as page:
            again = _shown(page, url)
    return first, again


def floors(empty: Path, cache: Path) -> dict[str, dict[str, float]]:
    """What a renderer holds that shows nothing, and one with MemBoard's page alone."""
    found = {}
    with viewer() as page:
        time.sleep(HOLDERS_S)
        found["an empty tab"] = _memory(page)
    with viewer() as page, opened(empty, cache) as url:
        page.go(url)
        page.wait_for("w.document.querySelector('.content main') !== null", MOST_S)
        time.sleep(HOLDERS_S)
        found["MemBoard's page without data"] = _memory(page)
    return found


def opened(path: Path, cache: Path) -> contextlib.AbstractContextManager[str]:
    """`memboard open PATH`; the URL of the picture."""
    command = ["tb_plugin.cli", "open", path, "--no-browser"]
    return _started(command, r"Serving (http\S+)", cache)


@contextlib.contextmanager
def running(logdir: Path, cache: Path) -> Iterator[str]:
    """A TensorBoard that has been up for a while; the URL of the picture."""
    command = ["tensorboard.main", "--logdir", logdir, "--port", "0"]
    with _started(command, r"at (http\S+/) \(Press", cache) as url:
        time.sleep(IDLE_S)
        yield f"{url}#memboard&p.memboard.view=allocations"


@contextlib.contextmanager
def _started(command: list[str | Path], said: str, cache: Path) -> Iterator[str]:
    """A server that prints its URL; `said` finds it. What lies here runs, nothing installed.

    As an installed one it finds itself compiled, but for the first time.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": _compiled(),
        "MEMBOARD_CACHE_DIR": str(cache),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        [sys.executable, "-m", *map(str, command)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if found := re.search(said, line):
                break
        else:
            raise SystemExit(f"{command} ended:\n{''.join(lines)}")
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield found[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


@functools.cache
def _compiled() -> str:
    """A folder for what Python compiles, of this process."""
    folder = tempfile.mkdtemp(prefix="memboard-perf-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _shown(page: WatchedPage, url: str) -> dict[str, float]:
    """Seconds from going to the URL to the picture."""
    start = time.time()
    page.go(url)
    at = page.drawn_at(MOST_S)
    began = page.evaluate("w.performance.timeOrigin") / 1e3
    return {"total": at - start, "host": began - start, "ours": at - began}


def _counted(page: WatchedPage) -> dict[str, float]:
    """How many allocations the page says that the picture is of."""
    words = "w.document.querySelector('.block-stack')?.parentElement.textContent ?? ''"
    found = re.search(r"([\d,]+) allocations over", page.evaluate(words))
    if found is None:
        raise SystemExit("the page does not say how many allocations it shows")
    number = float(found[1].replace(",", ""))
    return {"drawn": number, "known": number}


def _interactions(page: WatchedPage, target: str) -> dict[str, float]:
    before = page.private_mb()
    taken = page.latencies(target, MOVES, NOTCHES, REST_S)
    memory = _memory(page)
    return {
        "private_mb": max(before, memory["private_mb"]),
        "mb": memory["mb"],
        "hover": statistics.median(taken["hover"]),
        "hover_max": max(taken["hover"]),
        "zoom": statistics.median(taken["zoom"]),
        "zoom_max": max(taken["zoom"]),
    }


def _memory(page: WatchedPage) -> dict[str, float]:
    return {"private_mb": page.private_mb(), "mb": page.peak_mb()}
