"""Growth of the Modules view's answers: 50,000 modules on 64 ranks, read cold.

    python -m tests.perf.modules_scale [--ranks 64] [--layers 30 5000] [--keep DIR]

Every layer of the simulated transformer is ten modules. For each number of layers a run
is written in which each rank tracked one step; then a fresh process that has read nothing
of it asks what the page asks: the first picture (/runs and /modules), then other states,
differences, one module, and the timeline. The operating system's page cache is dropped
before where the machine allows it (root). "first" is what the page waits for at its first
paint; "decode" is the part of it that brings the capture to arrays.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from tests.perf import bench

STARTED_NS = 1_780_000_000 * 10**9
TOKENS = 2048


def open_modules(logdir: str) -> dict[str, Any]:
    """Seconds and bytes by answer, and what they are of."""
    import memboard.tb_plugin.formats.recording.captures.modules as reader
    from tests.perf.plugin import Plugin, rss_mb

    decode, read_capture = [0.0], reader.read_capture

    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return read_capture(*arguments)
        finally:
            decode[0] += time.perf_counter() - began

    reader.read_capture = timed
    plugin, found = Plugin(logdir), {}

    def ask(name: str, route: str, **query: Any) -> Any:
        answer = plugin.ask(route, **query)
        found[name] = answer.wall, len(answer.sent)
        return answer.data

    (run,) = ask("runs", "runs")["runs"]
    of = {"run": run["id"]}
    first = ask("first", "modules", **of)
    found["decode"] = decode[0], 0
    ask("another state", "modules", state="peak_backward", **of)
    ask("rank totals", "modules", measure="total", **of)
    before = {"against": "state:before_pre_forward"}
    ask("against a state", "modules", **before, **of)
    last = {"against": f"rank:{run['num_ranks'] - 1}"}
    ask("against a rank", "modules", **last, **of)
    median = ask("against the median", "modules", against="median", **of)["baseline"]
    ask("one module", "module", module="Transformer.layers.1.feed_forward", **of)
    timeline = ask("timeline", "module_timeline", px=1600, **of)
    high = timeline["x_high"]
    part = {"px": 1600, "x0": high * 0.3, "x1": high * 0.31}
    ask("timeline, a hundredth", "module_timeline", **part, **of)
    return {
        "found": found,
        "median": f"{median['num_ranks']} of {median['of_ranks']} ranks",
        "modules": first["facts"]["num_events"],
        "process_mb": rss_mb(),
    }


def write(folder: Path, num_ranks: int, num_layers: int) -> dict[str, int]:
    """A run whose ranks all have the same capture, encoded once; rows of its tables."""
    from memboard.collector.format.capture import encode_body
    from memboard.collector.format.columns import AXES, STEP_TABLE, Column
    from memboard.collector.format.names import RANK_FILES_DIR, rank_file_name
    from memboard.collector.format.records import (
        Capture,
        ClockAnchor,
        Close,
        Header,
        Schema,
    )
    from memboard.collector.simulate.captures import module_tables
    from memboard.collector.simulate.device import Device
    from memboard.collector.simulate.program import ROOT, Training
    from memboard.collector.writing.rank_file import RankFile

    training = Training(num_ranks, (num_layers, 256, 688))
    device = Device(1 << 62)
    training.begin(device)
    step = partial(training.step, device, TOKENS)
    capture = Capture(
        kind="modules",
        time_ns=STARTED_NS + 2 * 10**9,
        step=1,
        phase="train",
        function="step",
        iteration=2,
        meta={"backend": "fsdp2", "root": ROOT, "devices": ["cuda:0"]},
        tables=module_tables(training, device, step, 0),
    )
    body = encode_body(capture)
    peak = Column(
        name="allocated_peak_bytes",
        unit="bytes",
        group="device",
        kind="peak",
        headline=True,
    )
    schema = Schema(schema_id=0, table=STEP_TABLE, phase="train", columns=(*AXES, peak))
    for rank in range(num_ranks):
        header = Header(
            run_id="scale",
            attempt=f"20260101T000000000-{rank:08x}",
            job="scale",
            rank=rank,
            local_rank=rank % 8,
            world_size=num_ranks,
            local_world_size=8,
            node_rank=rank // 8,
            host=f"host-{rank // 8}",
            pid=1,
            started=ClockAnchor(wall_ns=STARTED_NS, monotonic_ns=1),
            device_type="cuda",
            simulated=True,
        )
        file = RankFile(max_bytes=0)
        file.add_schema(schema)
        name = rank_file_name(rank, header.attempt)
        file.open(folder.joinpath(*RANK_FILES_DIR) / name, header)
        for number in range(3):
            time_ns = STARTED_NS + (number + 1) * 10**9
            file.add_row(0, (time_ns, number, 10**9 + rank % 7))
        file.write_capture(capture, body)
        file.close(Close(time_ns=capture.time_ns, how="closed", message=""))
    return {
        name: len(table["fqn" if name == "modules" else "time_us"])
        for name, table in capture.tables.items()
    }


def main() -> None:
    given = bench.options(__doc__, ranks=64, layers=[30, 5000], keep=Path)
    with bench.folder(given.keep) as base:
        for num_layers in given.layers:
            folder = base / f"{num_layers}x{given.ranks}"
            sizes = write(folder, given.ranks, num_layers)
            cold = "cold" if bench.drop_page_cache() else "page cache kept"
            figures = bench.fresh(open_modules, folder)
            found = figures["found"]
            first = found["runs"][0] + found["first"][0]
            print(f"\n{sizes} x {given.ranks} ranks\n")
            row = bench.table("answer", "ms", "KB", f"of the first picture ({cold})")
            for name, (took, size) in found.items():
                row(name, took * 1e3, size / 1e3, took / first)
            row("first picture", first * 1e3)
            print(f"median over {figures['median']}; {figures['process_mb']:.0f} MB")


if __name__ == "__main__":
    main()
