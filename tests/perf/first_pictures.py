"""Each way to a first picture, opened once: its times, and what the page holds."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import re
import shutil
import statistics
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from tests.browser import chromium, server, tensorboard
from tests.perf import bench
from tests.perf.watched_page import TabCrashedError, WatchedPage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    with chromium() as browser:
        page = WatchedPage(browser)
        time.sleep(BROWSER_S)
        yield page


def _memory_viz_page(folder: Path) -> str:
    """memory_viz's page, with d3 from `folder` and not from the network."""
    imports = {}
    for manifest in sorted(folder.glob("node_modules/*/package.json")):
        told = json.loads(manifest.read_text())
        entry = told.get("module") or told.get("main") or "index.js"
        imports[told["name"]] = f"/{manifest.parent.relative_to(folder)}/{entry}"
    script = (folder / "MemoryViz.js").read_text()
    for url, name in re.findall(r'"(https://[^"]*?/(d3[a-z-]*)@[^"]*)"', script):
        imports[url] = imports[name]
    return (
        "<!DOCTYPE html><html><head>"
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>'
        '</head><body><script type="module" src="/MemoryViz.js"></script></body></html>'
    )


def memory_viz_page(folder: Path) -> contextlib.AbstractContextManager[str]:
    """memory_viz's page served from `folder`, which has it and what it takes; its URL."""
    page = "text/html", _memory_viz_page(folder).encode()
    return bench.served(lambda path: page if path == "/" else None, folder)


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


@contextlib.contextmanager
def opened(path: Path, cache: Path) -> Iterator[str]:
    """`memboard open PATH`; the URL of the picture."""
    command = [
        sys.executable,
        "-m",
        "memboard.tb_plugin.cli",
        "open",
        path,
        "--no-browser",
    ]
    with (
        bench.folder() as place,
        server(command, place / "log", r"Serving (http\S+)", **_here(cache)) as started,
    ):
        yield started.url


@contextlib.contextmanager
def running(logdir: Path, cache: Path) -> Iterator[str]:
    """A TensorBoard that has been up for a while; the URL of the picture."""
    with (
        bench.folder() as place,
        tensorboard(["--logdir", logdir], place / "log", **_here(cache)) as started,
    ):
        time.sleep(IDLE_S)
        yield f"{started.url}#memboard&p.memboard.view=blocks"


def _here(cache: Path) -> dict[str, str]:
    """Variables of a server: what lies here runs, nothing installed.

    As an installed one it finds itself compiled, but for the first time.
    """
    return {
        "PYTHONPATH": str(bench.ROOT),
        "PYTHONPYCACHEPREFIX": _compiled(),
        "PYTHONDONTWRITEBYTECODE": "",
        "MEMBOARD_CACHE_DIR": str(cache),
    }


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
