"""Speed of MemBoard and memory_viz with the same snapshot, in one Chromium without a GPU.

    python -m tests.perf.memory_viz FOLDER [--events 100000 1000000 5000000] [--rounds 3]

FOLDER has `MemoryViz.js` and `process_alloc_data.js` from pytorch's `torch/utils/viz`
and what `npm install d3@7` leaves there; neither comes with MemBoard. Each size is one
simulated training, written as torch's pickle (130 MB for a million events; 9600000
events make 1.26 GB). In every round all forms take turns, each with a browser of its own.

- memory_viz: from choosing the file to the first picture of its Active Memory Timeline,
  at the 15,000 largest allocations it draws by default. Its page is loaded already.
- memboard open: from starting `memboard open FILE` to the first picture of all
  allocations. Cold: nothing is cached. Cached: another server has opened the file before.
- page: from going to the page of a TensorBoard that runs on a logdir with the file, whose
  page has not been loaded and which has not opened the file. Own capture: the same
  history as `mb.record` writes it, which is never imported (2 million events at
  most). Open already: the same page once more.

Of these times, `start` is until the server says its URL, which starts two Pythons;
`TensorBoard` until its own page has loaded ours; `page` the rest.

A picture is there once drawing shows and two frames went by; so are hovering (the
pointer moves to another block) and zooming (one notch of the wheel), each from the input
event on. Memory is that of the page's renderer process, TensorBoard's own page included,
the most of before and after: `private` is what it holds for itself, RSS (the most there
was) counts Chromium's own code too, which all its processes share. The first rows say
what a renderer holds that shows nothing.

Python finds everything compiled, as it does where MemBoard is installed, but for the
first start of all.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.perf import bench
from tests.perf.allocations_server import write_capture, write_pickle
from tests.perf.first_pictures import (
    command_opens,
    floors,
    memory_viz,
    memory_viz_page,
    page_opens,
)

FIGURES = {
    "start s": "start",
    "TensorBoard s": "host",
    "page s": "ours",
    "allocations drawn": "drawn",
    "of": "known",
    "hover ms": "hover",
    "max": "hover_max",
    "zoom ms": "zoom",
    "max ": "zoom_max",
    "renderer MB: private": "private_mb",
    "RSS": "mb",
}


def measured(
    url: str, folder: Path, num_events: int, rounds: int, patience: float
) -> dict[str, list[dict[str, float]]]:
    """Figures of one size by viewer; everything takes turns."""
    file = write_pickle(folder / f"simulated_{num_events}.pickle", num_events)
    logdir = folder / f"logdir_{num_events}"
    logdir.joinpath("job").mkdir(parents=True, exist_ok=True)
    link = logdir / "job" / file.name
    if not link.exists():
        link.hardlink_to(file)
    own = write_capture(folder / f"own_{num_events}", num_events)
    rows: dict[str, list[dict[str, float]]] = {}

    def took(name: str, figures: dict[str, float]) -> None:
        rows.setdefault(name, []).append(figures)
        quiet(patience)

    quiet(patience)
    for _ in range(rounds):
        if not any("crashed" in row for row in rows.get("memory_viz", ())):
            took("memory_viz", memory_viz(url, file))
        with tempfile.TemporaryDirectory() as cache:
            took("memboard open, cold", command_opens(file, Path(cache)))
            took("memboard open, cached", command_opens(file, Path(cache)))
        with tempfile.TemporaryDirectory() as cache:
            took("page, cold", page_opens(logdir, Path(cache))[0])
            first, again = page_opens(logdir, Path(cache))
            rows.setdefault("page, cached", []).append(first)
            took("page, open already", again)
            if own is not None:
                took("page, own capture", page_opens(own, Path(cache))[0])
    return rows


def quiet(seconds: float) -> None:
    """Wait until hardly anything else runs on the machine, at most so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = _cpu()
        time.sleep(1.0)
        busy, total = (b - a for a, b in zip(before, _cpu(), strict=True))
        if busy < 0.15 * total:
            return


def _cpu() -> tuple[int, int]:
    """Time that all cores were busy, and all of their time."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    values = [int(value) for value in first.split()[1:9]]
    idle = values[3] + values[4]
    return sum(values) - idle, sum(values)


def main() -> None:
    given = bench.options(
        __doc__, "folder", events=[100_000, 1_000_000, 5_000_000], rounds=3,
        keep=Path, patience=0.0,
    )  # fmt: skip
    row = bench.table(
        "events (file)", "viewer", "first picture s", "lowest", "highest",
        "memory_viz takes", *FIGURES,
    )  # fmt: skip

    def show(title: str, name: str, rounds: list[dict[str, float]], rival: float):
        """A row of medians; returns that of the first picture."""

        def median(key: str) -> float | None:
            values = [one[key] for one in rounds if key in one]
            return statistics.median(values) if values else None

        if any("crashed" in one for one in rounds):
            row(title, name, "the tab crashes")
            return float("nan")
        times = [one["total"] for one in rounds if "total" in one]
        total = median("total")
        cells = (total, min(times), max(times)) if times else [None] * 3
        ratio = rival / total if times and name != "memory_viz" else None
        row(title, name, *cells, ratio, *map(median, FIGURES.values()))
        return total

    (folder,) = given.folder
    with bench.folder() as empty, bench.folder() as cache:
        for name, figures in floors(empty, cache).items():
            show("", name, [figures], float("nan"))
    with memory_viz_page(folder.resolve()) as url, bench.folder(given.keep) as keep:
        for num_events in given.events:
            found = measured(url, keep, num_events, given.rounds, given.patience)
            size = (keep / f"simulated_{num_events}.pickle").stat().st_size
            title, rival = f"{num_events:,} ({size / 1e6:,.0f} MB)", float("nan")
            for name, rounds in found.items():
                total = show(title, name, rounds, rival)
                rival = total if name == "memory_viz" else rival


if __name__ == "__main__":
    main()
