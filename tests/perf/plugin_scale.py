"""Growth of the plugin with ranks and steps, beside TensorBoard's data provider.

    python -m tests.perf.plugin_scale [--peer] [--sizes 8x200 64x1000 ...] [--keep DIR]

Ours: for each size a simulated logdir is written, then a fresh process that has read
nothing of it opens it: build the index, answer /overview, /timeline (peak allocated, all
ranks) and /heatmap; then one poll with nothing new. In another fresh process the Steps
page: index and /steps, then /step_heatmap and /stragglers, which it asks for later. The
operating system's page cache is dropped before where the machine allows it (root).

Peer (--peer): the same 1,000 ranks x 1,000 steps x 8 metrics as one TensorBoard run per
rank and one tensor event per step, served by TensorBoard's own data provider (its Rust
server), all read once. This is what a plugin does that follows the tutorial.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.perf import bench

SIZES = ["8x200", "64x1000", "1000x1000", "4096x200", "4096x10000"]


def open_ours(logdir: str) -> list[float]:
    from tests.perf.plugin import Plugin, rss_mb

    imported, began = rss_mb(), time.perf_counter()
    plugin = Plugin(logdir)
    (run,) = plugin.ask("runs").data["runs"]
    query = {"run": run["id"], "px": 1200}
    plugin.ask("overview", **query)
    query["series"] = "step/allocated_peak_bytes"
    timeline = plugin.ask("timeline", **query)
    ready = time.perf_counter() - began
    heatmap = plugin.ask("heatmap", rows=800, **query)
    poll = plugin.ask("timeline", timeline.etag, **query)
    used = rss_mb()
    kb = len(heatmap.raw) / 1e3
    return [ready, heatmap.wall, poll.wall * 1e3, used, used - imported, kb]


def open_steps(logdir: str) -> list[float]:
    from tests.perf.plugin import Plugin

    began = time.perf_counter()
    plugin = Plugin(logdir)
    (run,) = plugin.ask("runs").data["runs"]
    query = {"run": run["id"], "px": 1200}
    steps = plugin.ask("steps", **query)
    ready = time.perf_counter() - began
    heatmap = plugin.ask("step_heatmap", rows=400, **query)
    late = plugin.ask("stragglers", **query)
    most = max(len(answer.raw) for answer in (steps, heatmap, late))
    return [ready, heatmap.wall, late.wall, most / 1e3]


def open_peer(logdir: str, ranks: int, steps: int) -> list[float]:
    """Seconds until TensorBoard's data provider has read all, points, and MB."""
    import psutil
    from tensorboard import context, default, program

    board = program.TensorBoard(default.get_plugins())
    flags = ["--samples_per_plugin", "peer=0", "--load_fast", "true"]
    board.configure(argv=["tensorboard", "--logdir", logdir, *flags])
    began = time.perf_counter()
    ingester = board._make_data_ingester()
    ingester.start()
    query = {"experiment_id": "", "plugin_name": "peer"}
    provider, where = ingester.data_provider, context.RequestContext()
    while True:
        runs = provider.list_tensors(where, **query)
        last = [series.max_step for tags in runs.values() for series in tags.values()]
        if len(runs) == ranks and set(last) == {steps - 1}:
            break
        time.sleep(0.2)
    data = provider.read_tensors(where, downsample=10**9, **query)
    points = sum(len(tag) for tags in data.values() for tag in tags.values())
    took, me = time.perf_counter() - began, psutil.Process()
    rss = sum(one.memory_info().rss for one in (me, *me.children(recursive=True)))
    return [took, points, rss / 1e6]


def write_ours(folder: Path, ranks: int, steps: int) -> None:
    command = [sys.executable, "-m", "memboard.tb_plugin.cli", "demo", "--no-serve"]
    command += ["--simulate", str(ranks), "--steps", str(steps), "--metrics", "8"]
    command += ["--out", str(folder)]
    subprocess.run(command, cwd=bench.ROOT, check=True, stdout=subprocess.DEVNULL)


def write_peer(folder: Path, ranks: int, steps: int) -> None:
    import numpy as np
    from tensorboard.compat.proto import event_pb2
    from tensorboard.util import tensor_util

    from memboard.collector.format.encoding.framing import frame, frame_version

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


def main() -> None:
    given = bench.options(__doc__, peer=False, sizes=SIZES, keep=Path)
    row = bench.table(
        "ranks x steps", "MB on disk", "page cache",
        "ready s", "+heatmap s", "poll ms", "process MB", "added MB", "heatmap KB",
        "Steps ready s", "+map s", "+stragglers s", "largest KB",
    )  # fmt: skip
    with bench.folder(given.keep) as base:
        for size in given.sizes:
            folder = base / size
            if not folder.exists():
                write_ours(folder, *map(int, size.split("x")))
            disk = bench.disk_bytes(folder) / 1e6
            # First with nothing of the files in memory, then as on the second look.
            for cache in ("dropped", "kept"):
                if cache == "kept" or bench.drop_page_cache():
                    ours = bench.fresh(open_ours, folder)
                    if cache == "dropped":
                        bench.drop_page_cache()
                    row(size, disk, cache, *ours, *bench.fresh(open_steps, folder))
        if given.peer:
            folder = base / "peer"
            if not folder.exists():
                write_peer(folder, 1000, 1000)
            bench.drop_page_cache()
            print("\ndata provider of TensorBoard, 1000x1000\n")
            row = bench.table("MB on disk", "all read s", "points", "processes MB")
            disk = bench.disk_bytes(folder) / 1e6
            row(disk, *bench.fresh(open_peer, folder, 1000, 1000))


if __name__ == "__main__":
    main()
