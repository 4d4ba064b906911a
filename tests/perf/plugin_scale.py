"""How the plugin grows with ranks and steps, beside TensorBoard's data provider.

Run: python -m tests.perf.plugin_scale [--peer] [--sizes 8x200 64x1000 ...] [--keep DIR]

Ours: for each size a simulated logdir is written, then a fresh process that has read
nothing of it opens it: build the index, answer /overview, /timeline (peak allocated, all
ranks) and /heatmap; then one poll with nothing new. In another fresh process the Steps
page: index and /steps, then /step_heatmap and /stragglers, which it asks for later. The operating system's page cache is
dropped before where the machine allows it (root).

Peer (--peer): the same 1,000 ranks x 1,000 steps x 8 metrics as one TensorBoard run per
rank and one tensor event per step, served by TensorBoard's own data provider (its Rust
server), all read once. This is what a plugin does that follows the tutorial.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SIZES = ["8x200", "64x1000", "1000x1000", "4096x200", "4096x10000"]

OPEN_OURS = r"""
import json, resource, sys, time
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from werkzeug.test import Client
from tensorboard.plugins import base_plugin
from tensorboard.backend import application
from tb_plugin.loader import Loader
imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
context = base_plugin.TBContext(logdir=sys.argv[1], flags=None)
plugin = Loader().load(context)
routes = plugin.get_plugin_apps()
def get(path, query="", headers=None):
    begin = time.perf_counter()
    response = Client(routes[path]).get(path + query, headers=headers)
    assert response.status_code in (200, 304), (path, response.status_code, response.data)
    return response, time.perf_counter() - begin
def decoded(response):
    import gzip
    body = response.data
    if response.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    length = int.from_bytes(body[:4], "little")
    return json.loads(body[4:4 + length])["data"], len(response.data)
runs, runs_s = get("/runs")
(run,) = decoded(runs)[0]["runs"]
query = f"?run={run['id']}&px=1200"
series = "&series=step/allocated_peak_bytes"
overview, overview_s = get("/overview", query)
timeline, timeline_s = get("/timeline", query + series)
ready_s = time.perf_counter() - start
heatmap, heatmap_s = get("/heatmap", query + series + "&rows=800")
total_s = time.perf_counter() - start
_, poll_s = get("/timeline", query + series, {"If-None-Match": timeline.headers["ETag"]})
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(dict(
    ranks=run["num_ranks"], ready_s=ready_s, heatmap_s=heatmap_s, total_s=total_s,
    poll_ms=poll_s * 1e3, heatmap_kb=len(heatmap.data) / 1e3,
    process_mb=rss / 1e3, added_mb=(rss - imported) / 1e3)))
"""

OPEN_STEPS = (
    OPEN_OURS[: OPEN_OURS.index("series = ")]
    + r"""
steps, steps_s = get("/steps", query)
ready_s = time.perf_counter() - start
map_, map_s = get("/step_heatmap", query + "&rows=400")
late, late_s = get("/stragglers", query)
print(json.dumps(dict(
    ready_s=ready_s, map_s=map_s, late_s=late_s,
    most_kb=max(len(one.data) for one in (steps, map_, late)) / 1e3)))
"""
)

OPEN_PEER = r"""
import json, resource, sys, time
import psutil
from tensorboard import default, program
from tensorboard.plugins import base_plugin
from tensorboard import context
board = program.TensorBoard(default.get_plugins())
board.configure(argv=["tensorboard", "--logdir", sys.argv[1], "--samples_per_plugin",
                      "peer=0", "--load_fast", "true"])
start = time.perf_counter()
ingester = board._make_data_ingester()
ingester.start()
provider = ingester.data_provider
ctx = context.RequestContext()
wanted = int(sys.argv[2])
while True:
    runs = provider.list_tensors(ctx, experiment_id="", plugin_name="peer")
    if len(runs) == wanted and all(
        series.max_step == int(sys.argv[3]) - 1
        for tags in runs.values() for series in tags.values()
    ):
        break
    time.sleep(0.2)
data = provider.read_tensors(ctx, experiment_id="", plugin_name="peer", downsample=10**9)
points = sum(len(d) for tags in data.values() for d in tags.values())
ready_s = time.perf_counter() - start
me = psutil.Process()
rss = me.memory_info().rss + sum(c.memory_info().rss for c in me.children(True))
print(json.dumps(dict(ready_s=ready_s, points=points, processes_mb=rss / 1e6)))
"""


def drop_page_cache() -> bool:
    """Ask the kernel to forget file contents; False where it may not be asked."""
    subprocess.run(["sync"], check=False)
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    return False


def in_fresh_process(code: str, *arguments: object) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def write_ours(folder: Path, ranks: int, steps: int) -> float:
    start = time.perf_counter()
    command = [sys.executable, "-m", "tb_plugin.cli", "demo", "--no-serve"]
    command += ["--simulate", str(ranks), "--steps", str(steps), "--metrics", "8"]
    subprocess.run([*command, "--out", str(folder)], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return time.perf_counter() - start


def write_peer(folder: Path, ranks: int, steps: int) -> float:
    import numpy as np
    from tensorboard.compat.proto import event_pb2
    from tensorboard.util import tensor_util

    from collector.format.encoding.framing import frame, frame_version

    start = time.perf_counter()
    rng = np.random.default_rng(0)
    for rank in range(ranks):
        run = folder / f"rank_{rank:05d}"
        run.mkdir(parents=True)
        parts = [frame_version(1.0)]
        for step in range(steps):
            event = event_pb2.Event(wall_time=step, step=step)
            value = event.summary.value.add(tag="memory")
            value.metadata.plugin_data.plugin_name = "peer"
            value.metadata.data_class = 2
            value.tensor.CopyFrom(tensor_util.make_tensor_proto(rng.random(8)))
            parts.append(frame(event.SerializeToString()))
        (run / "events.out.tfevents.1").write_bytes(b"".join(parts))
    return time.perf_counter() - start


def disk_bytes(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--sizes", nargs="*", default=SIZES)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        base = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(
            "ranks x steps   write s   MB disk   page cache   ready s   +heatmap s"
            "   poll ms   process MB (added)   heatmap KB"
            "   Steps ready s   +map s   +stragglers s   largest KB"
        )
        for size in options.sizes:
            ranks, steps = map(int, size.split("x"))
            folder = base / size
            wrote = 0.0 if folder.exists() else write_ours(folder, ranks, steps)
            # First with nothing of the files in memory, then as on the second look.
            caches = ["dropped"] if drop_page_cache() else []
            for cache in [*caches, "kept"]:
                figures = in_fresh_process(OPEN_OURS, folder)
                if cache == "dropped":
                    drop_page_cache()
                steps = in_fresh_process(OPEN_STEPS, folder)
                print(
                    f"{size:>13s} {wrote:9.1f} {disk_bytes(folder) / 1e6:9.1f}"
                    f" {cache:>12s} {figures['ready_s']:9.2f}"
                    f" {figures['heatmap_s']:12.2f} {figures['poll_ms']:9.1f}"
                    f" {figures['process_mb']:8.0f} ({figures['added_mb']:.0f})"
                    f" {figures['heatmap_kb']:15.0f} {steps['ready_s']:15.2f}"
                    f" {steps['map_s']:8.2f} {steps['late_s']:15.2f}"
                    f" {steps['most_kb']:12.0f}"
                )
        if options.peer:
            folder = base / "peer"
            wrote = 0.0 if folder.exists() else write_peer(folder, 1000, 1000)
            drop_page_cache()
            figures = in_fresh_process(OPEN_PEER, folder, 1000, 1000)
            print(
                f"data provider, 1000x1000: written in {wrote:.0f} s,"
                f" {disk_bytes(folder) / 1e6:.0f} MB on disk, all read after"
                f" {figures['ready_s']:.1f} s, {figures['points']} points,"
                f" {figures['processes_mb']:.0f} MB"
            )


if __name__ == "__main__":
    main()
