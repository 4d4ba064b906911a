"""Profiler traces made by hand, written as torch's profiler writes them."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

BASE_NS = 1_790_857_026_000_000_000
"""`baseTimeNanoseconds`: all times count from it, in microseconds."""


class KinetoFile:
    """Collects events of one rank; times are microseconds.

    One thread of the host (`pid` 100) and the streams of GPU 0.
    """

    def __init__(
        self, rank: int = 0, world_size: int = 1, backend: str = "nccl"
    ) -> None:
        self.events: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [],
            "baseTimeNanoseconds": BASE_NS,
            "distributedInfo": {
                "backend": backend,
                "rank": rank,
                "world_size": world_size,
            },
        }
        self._correlation = 0

    def device(self, **facts: Any) -> None:
        self.head["deviceProperties"].append(
            {
                "id": 0,
                "name": "Tesla V100",
                "totalGlobalMem": 1 << 34,
                "computeMajor": 7,
                "computeMinor": 0,
                "numSms": 80,
                **facts,
            }
        )

    def slice(
        self, name: str, ts: float, dur: float, cat: str = "cpu_op", **args: Any
    ) -> None:
        self._put("X", name, ts, cat, 100, 100, args, dur=dur)

    def step(self, number: int, ts: float, dur: float) -> None:
        self.slice(f"ProfilerStep#{number}", ts, dur, "user_annotation")

    def kernel(
        self, name: str, launched: float, ts: float, dur: float, **args: Any
    ) -> None:
        self._correlation += 1
        link = {"correlation": self._correlation}
        self.slice("cudaLaunchKernel", launched, 2, "cuda_runtime", **link)
        self.device_slice(name, ts, dur, **{"device": 0, "stream": 7, **link, **args})

    def device_slice(
        self, name: str, ts: float, dur: float, cat: str = "kernel", **args: Any
    ) -> None:
        """A kernel as its arguments say, without a call."""
        self._put("X", name, ts, cat, 0, args.get("stream", 7), args, dur=dur)

    def memory(
        self, ts: float, num_bytes: int, address: int, allocated: int, device: int = 0
    ) -> None:
        args = {
            "Bytes": num_bytes,
            "Addr": address,
            "Device Type": 1 if device >= 0 else 0,
            "Device Id": device,
            "Total Allocated": allocated,
            "Total Reserved": 2 * allocated if device >= 0 else 0,
        }
        self._put("i", "[memory]", ts, "cpu_instant_event", 100, 100, args, s="t")

    def _put(
        self,
        ph: str,
        name: str,
        ts: float,
        cat: str,
        pid: int,
        tid: int,
        args: dict[str, Any],
        **more: Any,
    ) -> None:
        event = {"ph": ph, "cat": cat, "name": name, "pid": pid, "tid": tid}
        self.events.append({**event, "ts": ts, "args": args, **more})

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = json.dumps({**self.head, "traceEvents": self.events}).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


def trained(
    rank: int = 0, world_size: int = 1, wait_us: float = 0.0, num_steps: int = 3
) -> KinetoFile:
    """Steps of 1,000 us: loading, a product, an all-reduce that waits."""
    made = KinetoFile(rank, world_size)
    made.device()
    for number in range(num_steps):
        at = 10_000 + 1_000 * number
        made.step(number + 5, at, 990)
        loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        made.slice(loader, at, 100, "user_annotation")
        dims = {"Input Dims": [[8, 8], [8, 8]], "Input type": ["float", "float"]}
        made.slice("aten::linear", at + 110, 90)
        made.slice("aten::mm", at + 120, 60, **dims)
        made.kernel(
            "volta_sgemm_128x64_nn",
            at + 130,
            at + 200,
            300,
            **{
                "blocks per SM": 0.5,
                "est. achieved occupancy %": 25,
                "grid": [8, 1, 1],
            },
        )
        made.memory(at + 125, 4096, 77, 10_000 + 4096)
        made.slice("aten::add", at + 210, 40)
        made.memory(at + 220, -4096, 77, 10_000)
        made.kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            at + 230,
            at + 520,
            200 + wait_us,
            **{
                "Collective name": "allreduce",
                "dtype": "Float",
                "Group size": world_size,
                "In msg nelems": 1000,
                "Out msg nelems": 1000,
                "Process Group Name": "0",
            },
        )
    return made
