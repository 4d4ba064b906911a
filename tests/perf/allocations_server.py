"""Costs of the Allocations view on the server, from a file to its pictures.

    python -m tests.perf.allocations_server [--events 100000 1000000 5000000] [--keep DIR]

For each size a training is simulated and its snapshot written as torch's pickle, and up
to 2 million events also as a capture of our own. Then a fresh process opens each: the
pickle with an empty cache ("cold"), again with what that left there ("cached"), and the
capture ("own"). Opening is all from loading the plugin to `/history` saying ready; "first
tile" is the category picture of everything, which also attributes every allocation. After
that all is warm: the median of a few pictures, each of another window, deflated as
browsers take them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from tests.perf import bench

MOST_OWN = 2_000_000


def write_pickle(path: Path, num_events: int) -> Path:
    """A simulated training's snapshot; made where it is not there yet."""
    from tests.simulate import Form, trained_rank

    path = Path(path)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        trained_rank(num_events).write(part, Form())
        part.rename(path)
    return path


def write_capture(logdir: Path, num_events: int) -> Path | None:
    """A recording with the same history; None: too large to make it here."""
    if num_events > MOST_OWN:
        return None
    if not logdir.is_dir():
        from memboard.collector.format.snapshots import tables_of
        from tests.builders import RunBuilder
        from tests.simulate import Form, trained_rank

        tables = tables_of(trained_rank(num_events).snapshot(Form()))
        made = RunBuilder(logdir / "job").rank(0, world_size=1)
        made.capture("history", "", iteration=0, tables=tables)
        made.close()
    return logdir


def open_logdir(logdir: str) -> dict[str, float]:
    """The cells of a row, in a process that has read nothing."""
    from tests.perf.plugin import Plugin, rss_mb

    began = time.perf_counter()
    plugin = Plugin(logdir)
    (run,) = plugin.ask("runs").data["runs"]
    history = plugin.ask("histories", run=run["id"]).data["default"]
    query = {"run": run["id"], "history": history, "px": 1200, "rows": 800}
    while (found := plugin.ask("history", **query).data)["state"] != "ready":
        assert found["state"] != "failed", found["problem"]
    cells = {"open ms": (time.perf_counter() - began) * 1e3}
    num = found["facts"]["devices"][0]["num_events"]
    cells["first tile"] = plugin.ask("allocations", **query).wall * 1e3

    def picture(name: str, share: float, route: str = "allocations", **more: Any):
        taken = []
        for place in range(7):
            width = max(1, int(num * share))
            e0 = int((num - width) * place / 6)
            window = {"e0": e0, "e1": e0 + width} if share < 1 else {}
            asked = {**query, **window, "rows": 801 + place, **more}
            taken.append(plugin.ask(route, **asked))
        cells[name] = median(answer.wall for answer in taken) * 1e3
        return median(len(answer.sent) for answer in taken) / 1e3

    def again(name: str, route: str, **more: Any) -> None:
        taken = [plugin.ask(route, **query, **more).wall for _ in range(5)]
        cells[name] = median(taken) * 1e3

    whole = picture("whole", 1.0)
    picture("pushed", 1.0, order="allocation")
    tenth = picture("1/10", 0.1)
    picture("1/100", 0.01)
    plugin.ask("allocation_holders", **query)
    picture("holders", 1.0, "allocation_holders")
    again("live", "allocation_live")
    again("block", "allocation_block", life=num // 10)
    return {
        "events": num, **cells, "KB whole": whole, "KB 1/10": tenth, "RSS MB": rss_mb()
    }  # fmt: skip


def main() -> None:
    given = bench.options(__doc__, events=[100_000, 1_000_000, 5_000_000], keep=Path)
    print("milliseconds; pictures are 1,200 columns wide, medians of seven windows\n")
    row = None
    with bench.folder(given.keep) as base:
        for num_events in given.events:
            folder = base / str(num_events)
            pickles = folder / "pickle"
            write_pickle(pickles / "job" / "snapshot_rank0.pickle", num_events)
            forms = {"cold": pickles, "cached": pickles}
            if own := write_capture(folder / "own", num_events):
                forms["own"] = own
            with tempfile.TemporaryDirectory() as cache:
                for form, logdir in forms.items():
                    found = bench.fresh(open_logdir, logdir, MEMBOARD_CACHE_DIR=cache)
                    row = row or bench.table("form", *found)
                    row(form, *found.values())


if __name__ == "__main__":
    main()
