"""How the Modules view's answers grow: 50,000 modules on 64 ranks, read cold.

Run: python -m tests.perf.modules_scale [--ranks 64] [--layers 30 5000] [--keep DIR]

Every layer of the simulated transformer is ten modules. For each number of layers a run
is written in which each rank tracked one step; then a fresh process that has read nothing
of it asks what the page asks: the first picture (/runs and /modules), then other states,
differences, one module, and the timeline. The operating system's page cache is dropped
before where the machine allows it (root). "first" is what the page waits for at its first
paint; "decode" is the part of it that brings the capture to arrays.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from collector.format.capture import encode_body
from collector.format.columns import AXES, STEP_TABLE, Column
from collector.format.names import RANK_FILES_DIR, rank_file_name
from collector.format.records import Capture, ClockAnchor, Header, Schema
from collector.simulate.captures import module_tables
from collector.simulate.device import Device
from collector.simulate.program import ROOT, Training
from collector.writing.rank_file import RankFile

ROOT_FOLDER = Path(__file__).parent.parent.parent
STARTED_NS = 1_780_000_000 * 10**9
TOKENS = 2048

OPEN = r"""
import gzip, json, resource, sys, time
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from werkzeug.test import Client
from tensorboard.plugins import base_plugin
from tb_plugin.loader import Loader
import tb_plugin.server.state
import tb_plugin.formats.recording.modules as modules_reader
decode = [0.0]
reads = modules_reader.read_capture
def timed(*arguments):
    begin = time.perf_counter()
    try:
        return reads(*arguments)
    finally:
        decode[0] += time.perf_counter() - begin
modules_reader.read_capture = timed
context = base_plugin.TBContext(logdir=sys.argv[1], flags=None)
plugin = Loader().load(context)
routes = plugin.get_plugin_apps()
found = {}
def get(name, path, query=""):
    begin = time.perf_counter()
    response = Client(routes[path]).get(path + query, headers={"Accept-Encoding": "gzip"})
    took = time.perf_counter() - begin
    assert response.status_code == 200, (path, response.status_code, response.data)
    body = response.data
    if response.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    length = int.from_bytes(body[:4], "little")
    data = json.loads(body[4:4 + length])["data"]
    found[name] = [took, len(response.data)]
    return data
(run,) = get("runs", "/runs")["runs"]
of = f"?run={run['id']}"
first = get("first", "/modules", of)
found["decode"] = [decode[0], 0]
get("another state", "/modules", of + "&state=peak_backward")
get("rank totals", "/modules", of + "&measure=total")
get("against a state", "/modules", of + "&against=state&against_state=before_pre_forward")
get("against a rank", "/modules", of + f"&against=rank&against_rank={run['num_ranks'] - 1}")
median = get("against the median", "/modules", of + "&against=median")["baseline"]
module = get("one module", "/module", of + "&module=Transformer.layers.1.feed_forward")
timeline = get("timeline", "/module_timeline", of + "&px=1600")
part = get("timeline, a hundredth", "/module_timeline",
           of + f"&px=1600&x0={timeline['x_high'] * .3}&x1={timeline['x_high'] * .31}")
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps(dict(
    found=found, median=[median["num_ranks"], median["of_ranks"]],
    modules=first["facts"]["num_events"], process_mb=rss / 1e3)))
"""


def drop_page_cache() -> bool:
    """Ask the kernel to forget file contents; False where it may not be asked."""
    subprocess.run(["sync"], check=False)
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    return False


def write(folder: Path, num_ranks: int, num_layers: int) -> Capture:
    """A run whose ranks all have the same capture; it is encoded once."""
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
        file.close("closed", "", num_dropped=0, time_ns=capture.time_ns)
    return capture


def in_fresh_process(folder: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(folder)],
        cwd=ROOT_FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--layers", type=int, nargs="*", default=[30, 5000])
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        base = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for num_layers in options.layers:
            folder = base / f"{num_layers}x{options.ranks}"
            begin = time.perf_counter()
            capture = write(folder, options.ranks, num_layers)
            sizes = {name: len(t["time_us" if name != "modules" else "fqn"])
                     for name, t in capture.tables.items()}  # fmt: skip
            files = [p.stat().st_size for p in folder.rglob("*") if p.is_file()]
            print(
                f"\n{sizes['modules']:,} modules, {sizes['events']:,} events,"
                f" {sizes['boundaries']:,} boundaries x {options.ranks} ranks:"
                f" {max(files) / 1e6:.1f} MB a rank,"
                f" written in {time.perf_counter() - begin:.1f} s"
            )
            cold = "cold" if drop_page_cache() else "page cache kept"
            figures = in_fresh_process(folder)
            first = sum(figures["found"][name][0] for name in ("runs", "first"))
            print(f"{'answer':>24s}        ms     KB   of the first picture ({cold})")
            for name, (took, size) in figures["found"].items():
                ratio = took / first
                print(f"{name:>24s} {took * 1e3:9.1f} {size / 1e3:6.0f} {ratio:9.2f}")
            read, of = figures["median"]
            print(f"{'first picture':>24s} {first * 1e3:9.1f}")
            print(f"median over {read} of {of} ranks; {figures['process_mb']:.0f} MB")


if __name__ == "__main__":
    main()
