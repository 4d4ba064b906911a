"""What every view of a profiler's trace costs: bytes of its answers, and time once it is open.

    python -m tests.perf.trace_views TRACE|FOLDER [...] [--all]

Each trace, or each folder with one per rank, lies in a logdir of its own that a fresh
process opens as TensorBoard would. A file that is refused is said to be so.
Every route about profiles and traces is asked there: once ("first": what is derived is made
then), and three times more ("warm": the least counts, of the clock and of the processor).
Bytes are those of the answer as it is sent, to a browser that takes gzip, and unpacked.

Printed are, of each trace, the largest answer and the slowest warm one, or with `--all`
every answer. The budgets: at most 300 KB and 100 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_KB = 300
MOST_MS = 100

ASK = r"""
import gzip, json, sys, time
from urllib.parse import urlencode
from werkzeug.test import Client
from tensorboard.plugins import base_plugin
from tb_plugin.loader import Loader
plugin = Loader().load(base_plugin.TBContext(logdir=sys.argv[1], flags=None))
routes = plugin.get_plugin_apps()
found = []

def decoded(response):
    body = response.data
    if response.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    length = int.from_bytes(body[:4], "little")
    return json.loads(body[4 : 4 + length])["data"], len(body)

def asked(route, **query):
    text = urlencode({name: value for name, value in query.items() if value is not None})
    begun, used = time.perf_counter(), time.process_time()
    response = Client(routes["/" + route]).get(
        f"/{route}?{text}", headers={"Accept-Encoding": "gzip"}
    )
    taken = time.perf_counter() - begun, time.process_time() - used
    assert response.status_code == 200, (route, query, response.data)
    return response, taken

def measure(label, route, **query):
    response, first = asked(route, **query)
    warm = [asked(route, **query)[1] for _ in range(3)]
    data, raw = decoded(response)
    found.append(dict(
        label=label, sent=len(response.data), raw=raw, first=first,
        warm=[min(one[at] for one in warm) for at in (0, 1)]))
    return data

run = decoded(asked("runs")[0])[0]["runs"][0]["id"]
while True:
    data = decoded(asked("profile", run=run)[0])[0]
    state = data["choice"]["state"]
    if state != "opening":
        break
if state != "ready":
    print(json.dumps(data["choice"]["problem"]["what"]))
    raise SystemExit
source = data["choice"]["source"]
here = dict(run=run, source=source)
measure("runs", "runs")
measure("traces", "traces", run=run)
measure("overview", "overview", run=run, px=1200)
measure("profile", "profile", **here)
for by in ("name", "shapes"):
    table = measure(f"operators by {by}", "operators", by=by, top=500, **here)
    names = table["name"]
    for name in names[:2]:
        measure(f"operator, {by}", "operator", name=name,
                shapes=table["shapes"][0] if by == "shapes" else None, **here)
measure("operators, 2,000 with a text", "operators", by="shapes", text="e", top=2000, **here)
for by in ("name", "properties"):
    measure(f"kernels by {by}", "kernels", by=by, top=2000, **here)
measure("module_times", "module_times", **here)
memory = measure("operator_memory", "operator_memory", **here)
length = memory["duration_ms"]
for device in memory["devices"]:
    for charge in ("allocating", "freeing"):
        measure(f"operator_memory, {charge}", "operator_memory", device=device["key"],
                charge=charge, top=2000, **here)
    measure("operator_memory of a third", "operator_memory", device=device["key"],
            t0=length / 3, t1=length / 1.5, px=1600, **here)
cycle = data["choice"]["traces"][0]["cycle"]
while decoded(asked("distributed", run=run, cycle=cycle)[0])[0]["num_opening"]:
    pass
measure("distributed", "distributed", run=run, cycle=cycle)
measure("distributed_heatmap", "distributed_heatmap", run=run, cycle=cycle)
trace = measure("trace", "trace", run=run)
while any(one["state"] == "opening" for one in trace["sources"]):
    trace = decoded(asked("trace", run=run)[0])[0]
base, end = int(trace["base_ns"]), int(trace["end_ns"])
tracks = [(trace["sources"][one["source"]]["id"], one["index"]) for one in trace["tracks"]]
of = ";".join(f"{one}:{index}" for one, index in tracks[:400])
for label, low, high in (
    ("all", 0, end), ("a tenth", end * 4 // 10, end // 2),
    ("a hundredth", end // 2, end // 2 + end // 100),
):
    window = dict(run=run, tracks=of, t0=base + low, t1=base + high, px=1600)
    measure(f"trace_slices of {label}", "trace_slices", **window)
    measure(f"trace_range of {label}", "trace_range", **window)
measure("trace_search", "trace_search", run=run, tracks=of, t0=base, t1=base + end, text="a")
if any(one["num_slices"] for one in trace["sources"]):
    measure("trace_slice", "trace_slice", run=run, source=source, row=0)
print(json.dumps(found))
"""


def answers(trace: Path, folder: Path) -> list[dict] | str:
    """What each answer cost, in a logdir with this trace alone; or why there are none."""
    logdir = folder / "logdir"
    shutil.rmtree(logdir, ignore_errors=True)
    logdir.mkdir()
    for path in sorted(trace.iterdir()) if trace.is_dir() else [trace]:
        name = path.name
        if ".pt.trace.json" not in name:
            name = f"worker.pt.trace.json{'.gz' if path.suffix == '.gz' else ''}"
        shutil.copyfile(path, logdir / name)
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(logdir)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MEMBOARD_CACHE_DIR": str(folder / "cache")},
    )
    if done.returncode:
        raise SystemExit(f"{trace}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def label_of(trace: Path) -> str:
    """Its folder and name, the ends of both."""
    return f"{trace.parent.name[-24:]}/{trace.name[:19]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--all", action="store_true", help="print every answer")
    options = parser.parse_args()
    print(f"{'trace':44s} {'answer':30s} KB sent  unpacked  first ms  warm ms     CPU")
    over = 0
    with tempfile.TemporaryDirectory() as made:
        for trace in options.traces:
            found = answers(trace, Path(made))
            if isinstance(found, str):
                print(f"{label_of(trace):44s} is not opened: {found}")
                continue
            largest = max(found, key=lambda one: one["sent"])
            slowest = max(found, key=lambda one: one["warm"][1])
            for one in found:
                over += one["sent"] > MOST_KB * 1e3 or one["warm"][1] > MOST_MS / 1e3
                if options.all or one is largest or one is slowest:
                    print(
                        f"{label_of(trace):44s} {one['label']:30s}"
                        f" {one['sent'] / 1e3:7.0f} {one['raw'] / 1e3:9.0f}"
                        f" {one['first'][0] * 1e3:9.0f} {one['warm'][0] * 1e3:8.0f}"
                        f" {one['warm'][1] * 1e3:7.0f}"
                    )
    print(f"{over} answers above {MOST_KB} KB or {MOST_MS} ms of a processor")


if __name__ == "__main__":
    main()
