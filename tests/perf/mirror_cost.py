"""Costs of a mirror for training: `rec.step()` without one, with one, with a slow one.

    python -m tests.perf.mirror_cost [steps]

The store is moto's S3 server on loopback, in this very process, which therefore also takes
processor time that a real one would not; slow means that every request takes a second.
Segments end at every flush here, so that there is much to upload. Prints one table with
ratios to the recording without a mirror, what `put` takes, and how long the end took.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import memboard as mb
from memboard.collector import engine
from tests.collector.mirror.s3_server import S3
from tests.perf import bench

OFF = dict.fromkeys(("process", "host", "functions"), False)
STEP_SECONDS = 0.005
NUM_PUTS = 200

engine.SEGMENT_SECONDS = 0.1


def trained(run_dir: Path, remote: dict, num_steps: int) -> dict[str, float]:
    """Microseconds that `rec.step()` takes, and what the end took, in seconds."""
    config = {**OFF, "flush_seconds": 0.5, "remote": remote}
    rec = mb.record(run_dir, config=config)
    taken = []
    for _ in range(num_steps):
        time.sleep(STEP_SECONDS)
        taken.append(bench.seconds(rec.step) * 1e6)
    puts = []
    mirror = rec._session.engine.remote
    if remote:
        path = run_dir / "trace.json"
        run_dir.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1000)
        put = partial(mirror.put, "traces", path)
        puts = [bench.seconds(put) * 1e6 for _ in range(NUM_PUTS)]
        path.unlink()
    end_s = bench.seconds(rec.close)
    taken.sort()
    return {
        "median us": statistics.median(taken),
        "99 % us": taken[int(len(taken) * 0.99)],
        "highest us": taken[-1],
        "put us": statistics.median(puts) if puts else 0.0,
        "end s": end_s,
    }


def main() -> None:
    num_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    server = S3()
    server.client().mkdir("bucket")
    remote = {"url": "s3://bucket/{run_name}", "storage_options": server.options}
    remote["close_seconds"] = 5.0
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        trained(Path(folder) / "warm", {}, 200)
        for name, delay in (("no mirror", None), ("mirror", 0.0), ("slow mirror", 1.0)):
            server.proxy.delay_seconds = delay or 0.0
            asked = {} if delay is None else remote
            rows[name] = trained(Path(folder) / name.replace(" ", ""), asked, num_steps)
    server.proxy.delay_seconds = 0.0
    print(f"{num_steps} steps of {STEP_SECONDS * 1e3:g} ms, a segment every flush")
    print_row = bench.table("", *rows["mirror"], "ratio")
    plain = rows["no mirror"]["median us"]
    for name, row in rows.items():
        print_row(name, *row.values(), row["median us"] / plain)
    server.close()


if __name__ == "__main__":
    main()
