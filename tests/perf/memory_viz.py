"""How fast MemBoard and memory_viz show the same snapshot, in one Chromium without a GPU.

Run: python -m tests.perf.memory_viz FOLDER [--events 100000 1000000 5000000] [--rounds 3]

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
  history as `collector.record` writes it, which is never imported (2 million events at
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

import argparse
import contextlib
import functools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.perf.first_pictures import (
    command_opens,
    floors,
    memory_viz,
    page_opens,
)
from tests.perf.rival_page import memory_viz_page

MOST_OWN = 2_000_000
MB = 1e6


def written(folder: Path, num_events: int) -> Path:
    """The pickle of that many events; made where it is not there yet."""
    from tests.simulate import Form, trained_rank

    file = folder / f"simulated_{num_events}.pickle"
    if not file.exists():
        part = file.with_suffix(".part")
        trained_rank(num_events).write(part, Form())
        part.rename(file)
    return file


def captured(folder: Path, num_events: int) -> Path | None:
    """A recording with the same history; None: too large to make it here."""
    if num_events > MOST_OWN:
        return None
    logdir = folder / f"own_{num_events}"
    if not logdir.is_dir():
        from collector.format.snapshots import tables_of
        from tests.builders import RunBuilder
        from tests.simulate import Form, trained_rank

        snapshot = trained_rank(num_events).snapshot(Form())
        made = RunBuilder(logdir / "job").rank(0, world_size=1)
        made.capture("history", "", iteration=0, tables=tables_of(snapshot))
        made.close()
    return logdir


ROWS = (
    "memory_viz",
    "memboard open, cold",
    "memboard open, cached",
    "page, cold",
    "page, cached",
    "page, own capture",
    "page, open already",
)

# -- the table ------------------------------------------------------------------------

HEADINGS = (
    "events (file)",
    "viewer",
    "first picture",
    "of it start + TensorBoard + page",
    "memory_viz takes",
    "allocations drawn",
    "hover median / max",
    "zoom median / max",
    "renderer: private / RSS",
)


def _median(rows: list[dict[str, float]], key: str) -> float:
    values = [row[key] for row in rows if key in row]
    return statistics.median(values) if values else float("nan")


def _spread(rows: list[dict[str, float]], key: str, scale: float = 1.0) -> str:
    values = [row[key] * scale for row in rows if key in row]
    if not values:
        return ""
    middle = f"{statistics.median(values):.2f} s"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):.2f}-{max(values):.2f})"


def _line(title: str, name: str, rows: list[dict[str, float]], rival: float) -> str:
    if any("crashed" in row for row in rows):
        cells = [title, name, "the tab crashes", *[""] * 6]
        return f"| {' | '.join(cells)} |"
    middle = functools.partial(_median, rows)
    cells = [
        title,
        name,
        _spread(rows, "total"),
        " + ".join(
            f"{middle(part):.2f}"
            for part in ("start", "host", "ours")
            if any(part in row for row in rows)
        ),
        f"{rival / middle('total'):.1f}x as long"
        if name != "memory_viz" and any("total" in row for row in rows)
        else "",
        f"{middle('drawn'):,.0f} of {middle('known'):,.0f}"
        if any("known" in row for row in rows)
        else "",
        f"{middle('hover'):.0f} / {middle('hover_max'):.0f} ms"
        if any("hover" in row for row in rows)
        else "",
        f"{middle('zoom'):.0f} / {middle('zoom_max'):.0f} ms"
        if any("zoom" in row for row in rows)
        else "",
        f"{middle('private_mb'):,.0f} / {middle('mb'):,.0f} MB"
        if any("mb" in row for row in rows)
        else "",
    ]
    return f"| {' | '.join(cells)} |"


def measured(
    url: str, folder: Path, num_events: int, options: argparse.Namespace
) -> dict[str, list[dict[str, float]]]:
    """Figures of one size by row; everything takes turns."""
    file = written(folder, num_events)
    logdir = folder / f"logdir_{num_events}"
    logdir.joinpath("job").mkdir(parents=True, exist_ok=True)
    link = logdir / "job" / file.name
    if not link.exists():
        link.hardlink_to(file)
    own = captured(folder, num_events)
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in ROWS}

    def took(name: str, figures: dict[str, float]) -> None:
        rows[name].append(figures)
        brief = {key: round(value, 3) for key, value in figures.items()}
        load = round(os.getloadavg()[0], 1)
        print(f"{num_events} {name} {brief} load {load}", file=sys.stderr, flush=True)
        quiet(options.patience)

    quiet(options.patience)
    for _ in range(options.rounds):
        if not any("crashed" in row for row in rows["memory_viz"]):
            took("memory_viz", memory_viz(url, file))
        with tempfile.TemporaryDirectory() as cache:
            took("memboard open, cold", command_opens(file, Path(cache)))
            took("memboard open, cached", command_opens(file, Path(cache)))
        with tempfile.TemporaryDirectory() as cache:
            took("page, cold", page_opens(logdir, Path(cache))[0])
            first, again = page_opens(logdir, Path(cache))
            rows["page, cached"].append(first)
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
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with memory_viz's page and d3")
    parser.add_argument(
        "--events", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--keep", type=Path, help="write the snapshots here, and reuse them"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=0,
        metavar="S",
        help="wait so long before each opening for the machine to be idle",
    )
    options = parser.parse_args()
    print(f"| {' | '.join(HEADINGS)} |\n|{'-|' * len(HEADINGS)}", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        empty = Path(cache) / "empty"
        empty.mkdir()
        for name, figures in floors(empty, Path(cache) / "cache").items():
            print(_line("", name, [figures], float("nan")), flush=True)
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(memory_viz_page(options.folder.resolve()))
        keep = options.keep
        if keep is None:
            keep = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keep.mkdir(parents=True, exist_ok=True)
        for num_events in options.events:
            rows = measured(url, keep.resolve(), num_events, options)
            size = (keep / f"simulated_{num_events}.pickle").stat().st_size
            title = f"{num_events:,} ({size / MB:,.0f} MB)"
            rival = _median(rows["memory_viz"], "total")
            for name, figures in rows.items():
                if figures:
                    print(_line(title, name, figures, rival), flush=True)


if __name__ == "__main__":
    main()
