"""Trace files with answers: a program of operators that is run by a clock of its own.

While it runs, the events of a profiler's file are written, and beside them is counted
what each operator did. The counting knows nothing of slices, trees or ids: it adds to
whoever is under way, so it cannot share a fault with what reads the file.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.kineto_files import KinetoFile
from tests.tb_plugin.readers.traces.reading import document, read

if TYPE_CHECKING:
    from collections.abc import Iterator

How: TypeAlias = Literal["inside", "elsewhere", "by_id"]
"""What ties a kernel to its operator: a call of the runtime in it; one of another thread,
whose kernel names the operator; the kernel alone, which names it."""

OTHER_THREAD = 200


@dataclass
class Times:
    """Of one name, in microseconds."""

    num_calls: int = 0
    host_self: float = 0
    host_total: float = 0
    device_self: float = 0
    device_total: float = 0
    cores_self: float = 0
    cores_total: float = 0


@dataclass
class Memory:
    """Of one name on one device, in bytes: the six figures of the peer's table."""

    increase: int = 0
    self_increase: int = 0
    num_allocations: int = 0
    self_num_allocations: int = 0
    allocated: int = 0
    self_allocated: int = 0


class PlantedFile(KinetoFile):
    """Operators of one thread, their kernels on GPU 0, their memory there and on the CPU.

    planted = PlantedFile()
    with planted.operator("aten::linear"):
        planted.spend(5)
        planted.launch("gemm", 30)
        planted.allocate(4096)
    planted.times["aten::linear"].host_self  # 5
    """

    def __init__(self, rank: int = 0, world_size: int = 1, **options: Any) -> None:
        super().__init__(rank, world_size, **options)
        self.device()
        self.now: float = 1000
        self.device_free: float = 0
        self.times: defaultdict[str, Times] = defaultdict(Times)
        self.memory_of: defaultdict[tuple[int, str], Memory] = defaultdict(Memory)
        self.totals: dict[int, list[tuple[float, int]]] = {0: [], -1: []}
        """By device, what the allocator says it holds, after each event."""
        self.kernels: list[tuple[str, str, float]] = []
        """Name, operator and time of each."""
        self._under_way: list[tuple[str, int]] = []
        self._num_ids = 0
        self._alive: list[tuple[int, int, int]] = []

    @contextmanager
    def operator(self, name: str, **args: Any) -> Iterator[None]:
        self._num_ids += 1
        number, start = self._num_ids, self.now
        self._under_way.append((name, number))
        yield
        self._under_way.pop()
        self.times[name].num_calls += 1
        self.times[name].host_total += self.now - start
        self.slice(name, start, self.now - start, **{"External id": number, **args})

    def spend(self, us: float) -> None:
        self.now += us
        if self._under_way:
            self.times[self._under_way[-1][0]].host_self += us

    def launch(
        self, kernel: str, us: float, how: How = "inside", *, cores: bool = False
    ) -> None:
        name, number = self._under_way[-1]
        self._correlation += 1
        link = {"correlation": self._correlation}
        if how == "inside":
            self._call(100, self.now, 2, link)
            self.now += 2
        elif how == "elsewhere":
            self._call(OTHER_THREAD, self.now, 1, link)
            self.spend(2)
        else:
            self.spend(1)
        start = max(self.now, self.device_free)
        self.device_free = start + us
        ids = {} if how == "inside" else {"External id": number}
        args = {"device": 0, "stream": 7, **link, **ids}
        self._put("X", kernel, start, "kernel", 0, 7, args, dur=us)
        self.kernels.append((kernel, name, us))
        self.times[name].device_self += us
        self.times[name].cores_self += us * cores
        for around, _ in self._under_way:
            self.times[around].device_total += us
            self.times[around].cores_total += us * cores

    def allocate(self, num_bytes: int, device: int = 0) -> None:
        address = 4096 * (1 + len(self.events))
        self._alive.append((address, num_bytes, device))
        self._remember(num_bytes, address, device)

    def free(self, which: int) -> None:
        """One that is alive, if any is; whoever allocated it."""
        if self._alive:
            address, num_bytes, device = self._alive.pop(which % len(self._alive))
            self._remember(-num_bytes, address, device)

    def _remember(self, num_bytes: int, address: int, device: int) -> None:
        before = self.totals[device]
        total = (before[-1][1] if before else 0) + num_bytes
        before.append((self.now, total))
        self.memory(self.now, num_bytes, address, total, device)
        for depth, (name, _) in enumerate(reversed(self._under_way)):
            of = self.memory_of[device, name]
            is_new, own = num_bytes > 0, depth == 0
            of.increase += num_bytes
            of.self_increase += num_bytes * own
            of.num_allocations += is_new
            of.self_num_allocations += is_new and own
            of.allocated += num_bytes * is_new
            of.self_allocated += num_bytes * (is_new and own)
        self.spend(1)

    def _call(self, tid: int, ts: float, dur: float, args: dict[str, Any]) -> None:
        self._put("X", "cudaLaunchKernel", ts, "cuda_runtime", 100, tid, args, dur=dur)


def multiplying(
    rows: int,
    takes_us: float,
    *,
    size: int = 4096,
    others_us: float = 1,
    device: str = "NVIDIA A100-SXM4-80GB",
) -> TraceProfile:
    """Two multiplications (rows, size) x (size, size) of bfloat16, and something else."""
    planted = PlantedFile()
    planted.head["deviceProperties"][0].update(
        name=device, computeMajor=8, computeMinor=0
    )
    inputs = {
        "Input Dims": [[rows, size], [size, size]],
        "Input type": ["c10::BFloat16", "c10::BFloat16"],
    }
    for name, us in (
        ("aten::mm", takes_us),
        ("aten::mm", takes_us),
        ("aten::relu", others_us),
    ):
        with planted.operator(name, **(inputs if name == "aten::mm" else {})):
            planted.spend(1)
            planted.launch(name, us)
            planted.spend(1)
    return TraceProfile(read(document(planted.events, **planted.head)))
