"""What the server needs for the Allocations view, from a file to its pictures.

Run: python -m tests.perf.allocations_server [--events 100000 1000000 5000000] [--keep DIR]

For each size a training is simulated and its snapshot written as torch's pickle, and up
to 2 million events also as a capture of our own. Then a fresh process opens each: the
pickle with an empty cache ("cold"), again with what that left there ("cached"), and the
capture ("own"). Opening is all from loading the plugin to `/history` saying ready; "first
tile" is the category picture of everything, which also attributes every allocation. After
that all is warm: the median of a few pictures, each of another window, deflated as
browsers take them. The last column compares with opening it cold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
MOST_OWN = 2_000_000

OPEN = r"""
import gzip, json, resource, statistics, sys, time
start = time.perf_counter()
from werkzeug.test import Client
from tensorboard.plugins import base_plugin
from tb_plugin.loader import Loader
plugin = Loader().load(base_plugin.TBContext(logdir=sys.argv[1], flags=None))
routes = plugin.get_plugin_apps()
def get(path, **query):
    begin = time.perf_counter()
    response = Client(routes[path]).get(
        path, query_string=query, headers={"Accept-Encoding": "gzip"}
    )
    seconds = time.perf_counter() - begin
    assert response.status_code == 200, (path, response.data[:500])
    return response.data, seconds
def data(body):
    body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    length = int.from_bytes(body[:4], "little")
    return json.loads(body[4:4 + length])
loaded = time.perf_counter()
(run,) = data(get("/runs")[0])["data"]["runs"]
history = data(get("/histories", run=run["id"])[0])["data"]["default"]
query = {"run": run["id"], "history": history, "px": 1200, "rows": 800}
while True:
    found = data(get("/history", **query)[0])["data"]
    assert found["state"] != "failed", found["problem"]
    if found["state"] == "ready":
        break
open_s = time.perf_counter() - loaded
num = found["facts"]["devices"][0]["num_events"]
first, first_s = get("/allocations", **query)
def picture(share, path="/allocations", **more):
    windows = []
    for place in range(7):
        width = max(1, int(num * share))
        e0 = int((num - width) * place / 6)
        window = {"e0": e0, "e1": e0 + width} if share < 1 else {}
        windows.append(get(path, **{**query, **window, "rows": 801 + place, **more}))
    body = statistics.median(len(body) for body, _ in windows)
    return statistics.median(seconds for _, seconds in windows), body
def again(path, **more):
    return statistics.median(get(path, **{**query, **more})[1] for _ in range(5))
whole = picture(1.0)
pushed = picture(1.0, order="allocation")
tenth, hundredth = picture(0.1), picture(0.01)
get("/allocation_holders", **query)
found = {
    "num": num,
    "load_s": loaded - start,
    "open_s": open_s,
    "first_s": first_s,
    "whole_s": whole[0], "whole_bytes": whole[1],
    "pushed_s": pushed[0],
    "tenth_s": tenth[0], "tenth_bytes": tenth[1],
    "hundredth_s": hundredth[0], "hundredth_bytes": hundredth[1],
    "holders_s": picture(1.0, "/allocation_holders")[0],
    "holders_tenth_s": picture(0.1, "/allocation_holders")[0],
    "live_s": again("/allocation_live"),
    "block_s": again("/allocation_block", life=num // 10),
    "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}
print(json.dumps(found))
"""


def write(folder: Path, num_events: int) -> None:
    """The snapshot as a pickle and, where it is not too large, as a capture."""
    from tests.simulate import Form, trained_rank

    rank = trained_rank(num_events)
    pickles = folder / "pickle" / "job"
    pickles.mkdir(parents=True)
    rank.write(pickles / "snapshot_rank0.pickle", Form())
    if len(rank.history) <= MOST_OWN:
        from collector.format.snapshots import tables_of
        from tests.builders import RunBuilder

        made = RunBuilder(folder / "own" / "job").rank(0, world_size=1)
        made.capture(
            "history", "", iteration=0, tables=tables_of(rank.snapshot(Form()))
        )
        made.close()


def measured(logdir: Path, cache: Path) -> dict[str, float]:
    """One fresh process."""
    ran = subprocess.run(
        [sys.executable, "-c", OPEN, str(logdir)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "MEMBOARD_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def rows_of(folder: Path, cache: Path) -> list[tuple[str, dict[str, float]]]:
    """How each form of one snapshot opens; `cache` is empty."""
    rows = [(kind, measured(folder / "pickle", cache)) for kind in ("cold", "cached")]
    if (folder / "own").is_dir():
        rows.append(("own", measured(folder / "own", cache)))
    return rows


HEADINGS = (
    ("events", 10),
    ("form", 7),
    ("open", 8),
    ("1st tile", 9),
    ("whole", 8),
    ("pushed", 8),
    ("1/10", 8),
    ("1/100", 8),
    ("holders", 9),
    ("live", 7),
    ("block", 7),
    ("KB whole", 9),
    ("KB 1/10", 8),
    ("RSS MB", 8),
    ("open cold/this", 15),
)


def printed(kind: str, found: dict[str, float], cold: dict[str, float]) -> str:
    """One line of the table."""
    milliseconds = [
        f"{found[key] * 1e3:,.0f}"
        for key in (
            "open_s",
            "first_s",
            "whole_s",
            "pushed_s",
            "tenth_s",
            "hundredth_s",
            "holders_s",
            "live_s",
            "block_s",
        )
    ]
    cells = [
        f"{found['num']:,.0f}",
        kind,
        *milliseconds,
        f"{found['whole_bytes'] / 1e3:,.0f}",
        f"{found['tenth_bytes'] / 1e3:,.0f}",
        f"{found['rss']:,.0f}",
        f"{cold['open_s'] / found['open_s']:.1f}x",
    ]
    return "".join(
        cell.rjust(width) for cell, (_, width) in zip(cells, HEADINGS, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--events", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000]
    )
    parser.add_argument(
        "--keep", type=Path, help="write the snapshots here, and reuse them"
    )
    options = parser.parse_args()
    print("milliseconds; pictures are 1,200 columns wide, medians of seven windows")
    print("".join(name.rjust(width) for name, width in HEADINGS))
    for num_events in options.events:
        with contextlib.ExitStack() as stack:
            folder = options.keep
            if folder is None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            folder = folder / str(num_events)
            if not folder.is_dir():
                write(folder, num_events)
            with tempfile.TemporaryDirectory() as cache:
                rows = rows_of(folder, Path(cache))
            for kind, found in rows:
                print(printed(kind, found, rows[0][1]), flush=True)


if __name__ == "__main__":
    main()
