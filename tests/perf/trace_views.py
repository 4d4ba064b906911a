"""Costs of every view of a profiler's trace: bytes of its answers, time once it is open.

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

import shutil
from typing import TYPE_CHECKING, Any

from tests.perf import bench

if TYPE_CHECKING:
    from pathlib import Path

MOST_KB = 300
MOST_MS = 100


def ask_all(logdir: str) -> list[list[Any]] | str:
    """Label, KB sent and unpacked, ms first, warm, and of the processor, of each answer.

    Or why the trace is not opened.
    """
    from tests.perf.plugin import Plugin

    plugin = Plugin(logdir)
    found: list[list[Any]] = []

    def measure(label: str, route: str = "", **query: Any) -> Any:
        route = route or label
        first = plugin.ask(route, **query)
        warm = [plugin.ask(route, **query) for _ in range(3)]
        wall, cpu = min(one.wall for one in warm), min(one.cpu for one in warm)
        kb = len(first.sent) / 1e3, len(first.raw) / 1e3
        found.append([label, *kb, first.wall * 1e3, wall * 1e3, cpu * 1e3])
        return first.data

    run = plugin.ask("runs").data["runs"][0]["id"]
    while True:
        choice = plugin.ask("profile", run=run).data["choice"]
        if choice["state"] != "opening":
            break
    if choice["state"] != "ready":
        return choice["problem"]["what"]
    here = {"run": run, "source": choice["source"]}
    measure("runs")
    measure("traces", run=run)
    measure("overview", run=run, px=1200)
    measure("profile", **here)
    for by in ("name", "shapes"):
        rows = measure(f"operators by {by}", "operators", by=by, top=500, **here)
        shapes = rows["shapes"][0] if by == "shapes" else None
        for name in rows["name"][:2]:
            measure(f"operator, {by}", "operator", name=name, shapes=shapes, **here)
    text = {"by": "shapes", "text": "e", "top": 2000}
    measure("operators, 2,000 with a text", "operators", **text, **here)
    for by in ("name", "properties"):
        measure(f"kernels by {by}", "kernels", by=by, top=2000, **here)
    measure("module_times", **here)
    memory = measure("operator_memory", **here)
    third = {"t0": memory["duration_ms"] / 3, "t1": memory["duration_ms"] / 1.5}
    for device in memory["devices"]:
        of = {"route": "operator_memory", "device": device["key"], **here}
        for charge in ("allocating", "freeing"):
            measure(f"operator_memory, {charge}", charge=charge, top=2000, **of)
        measure("operator_memory of a third", px=1600, **third, **of)
    cycle = {"run": run, "cycle": choice["traces"][0]["cycle"]}
    while plugin.ask("distributed", **cycle).data["num_opening"]:
        pass
    measure("distributed", **cycle)
    measure("distributed_heatmap", **cycle)
    trace = measure("trace", run=run)
    while any(one["state"] == "opening" for one in trace["sources"]):
        trace = plugin.ask("trace", run=run).data
    base, end = int(trace["base_ns"]), int(trace["end_ns"])
    tracks = [
        f"{trace['sources'][one['source']]['id']}:{one['index']}"
        for one in trace["tracks"][:400]
    ]
    of = {"run": run, "tracks": ";".join(tracks)}
    for label, low, high in (
        ("all", 0, end),
        ("a tenth", end * 4 // 10, end // 2),
        ("a hundredth", end // 2, end // 2 + end // 100),
    ):
        for route in ("trace_slices", "trace_range"):
            window = {"t0": base + low, "t1": base + high, "px": 1600}
            measure(f"{route} of {label}", route, **window, **of)
    measure("trace_search", t0=base, t1=base + end, text="a", **of)
    if any(one["num_slices"] for one in trace["sources"]):
        measure("trace_slice", row=0, **here)
    return found


def answers(trace: Path, folder: Path) -> list[list[Any]] | str:
    """`ask_all` in a logdir with this trace alone."""
    logdir = folder / "logdir"
    shutil.rmtree(logdir, ignore_errors=True)
    logdir.mkdir()
    for path in sorted(trace.iterdir()) if trace.is_dir() else [trace]:
        name = path.name
        if ".pt.trace.json" not in name:
            name = f"worker.pt.trace.json{'.gz' if path.suffix == '.gz' else ''}"
        shutil.copyfile(path, logdir / name)
    return bench.fresh(ask_all, logdir, MEMBOARD_CACHE_DIR=folder / "cache")


def main() -> None:
    given = bench.options(__doc__, "traces", all=False)
    row = bench.table(
        "trace", "answer", "KB sent", "unpacked", "first ms", "warm ms", "CPU ms"
    )
    over = 0
    with bench.folder() as folder:
        for trace in given.traces:
            label = f"{trace.parent.name[-24:]}/{trace.name[:19]}"
            found = answers(trace, folder)
            if isinstance(found, str):
                row(label, f"not opened: {found}", *[None] * 5)
                continue
            largest = max(found, key=lambda cells: cells[1])
            slowest = max(found, key=lambda cells: cells[-1])
            for cells in found:
                over += cells[1] > MOST_KB or cells[-1] > MOST_MS
                if given.all or cells is largest or cells is slowest:
                    row(label, *cells)
    print(f"{over} answers above {MOST_KB} KB or {MOST_MS} ms of a processor")


if __name__ == "__main__":
    main()
