"""Traces made by hand for tests of views and analyses."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from memboard.tb_plugin.analysis.trace.build import EMPTY_TRACE, place
from memboard.tb_plugin.analysis.trace.details import (
    DeviceWork,
    Launches,
    MemoryEvents,
    Operators,
)
from memboard.tb_plugin.analysis.trace.trace import (
    Counters,
    Flows,
    Instants,
    Series,
    Trace,
    TraceFacts,
    Track,
)


class MadeTrace:
    """Collects slices of named tracks; `build` gives the `Trace`.

        made = MadeTrace(rank=3)
        made.slice("main", "forward", 0, 100, "user", {"step": 1})
        launch = made.slice("main", "cudaLaunchKernel", 10, 2, "cuda_runtime", correlation=7)
        made.track("stream 7", kind="device", device=0, stream=7)
        made.slice("stream 7", "gemm", 20, 50, "kernel", correlation=7)
        made.counter("GPU 0", "utilization", 0, 0.5)
        made.instant("main", "saved", 60)
        made.flow("fwdbwd", launch, other)
        trace = made.build()

    Times are nanoseconds. `slice` returns a number for `flow` and for `rows`.
    """

    def __init__(self, rank: int = -1, base_ns: int = 0) -> None:
        self.rank = rank
        self.base_ns = base_ns
        self.tracks: dict[str, Track] = {}
        self.strings: dict[str, int] = {"": 0}
        self.slices: list[tuple[int, int, int, int, int, int]] = []
        self.args: list[dict[str, Any]] = []
        self.correlations: list[tuple[int, str, int]] = []
        self.launched: dict[int, int] = {}
        """By correlation the text of the kernel's name that the launch says."""
        self.points: dict[tuple[str, str], list[tuple[int, float]]] = {}
        self.instants: list[tuple[int, int, int, int, int]] = []
        self.flows: list[tuple[int, int, int]] = []

    def track(self, name: str, process: str = "python 1", **facts: Any) -> int:
        facts = {"kind": "host", "rank": self.rank, "tid": name, "pid": "1", **facts}
        self.tracks.setdefault(name, Track(name, process, **facts))
        return list(self.tracks).index(name)

    def text(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def slice(
        self,
        track: str,
        name: str,
        start_ns: int,
        duration_ns: int,
        category: str = "cpu_op",
        args: dict[str, Any] | None = None,
        correlation: int = 0,
    ) -> int:
        number = len(self.slices)
        self.slices.append(
            (
                self.track(track),
                start_ns,
                duration_ns,
                self.text(name),
                self.text(category),
                self._args(args),
            )
        )
        if correlation:
            self.correlations.append((number, category, correlation))
        return number

    def kernel(
        self, launched: int, start: int, took: int, name: str = "gemm", device: int = 0
    ) -> None:
        """A kernel on stream 7 of a device, which the host launched at a time."""
        number, stream = len(self.correlations) + 1, f"stream 7 of {device}"
        self.slice(
            "main", "cudaLaunchKernel", launched, 1, "cuda_runtime", None, number
        )
        self.track(stream, kind="device", device=device, stream=7)
        self.slice(stream, name, start, took, "kernel", None, number)

    def instant(
        self,
        track: str,
        name: str,
        time_ns: int,
        category: str = "",
        args: dict[str, Any] | None = None,
    ) -> None:
        row = (self.track(track), time_ns, self.text(name), self.text(category))
        self.instants.append((*row, self._args(args)))

    def counter(self, name: str, series: str, time_ns: int, value: float) -> None:
        self.track(name, kind="counter")
        self.points.setdefault((name, series), []).append((time_ns, value))

    def flow(self, category: str, from_slice: int, to_slice: int) -> None:
        self.flows.append((self.text(category), from_slice, to_slice))

    def _args(self, args: dict[str, Any] | None) -> int:
        if args is None:
            return -1
        self.args.append(args)
        return len(self.args) - 1

    def build(self, **more: Any) -> Trace:
        track, start, duration, name, category, args = _columns(self.slices, 6)
        placed = place(
            tuple(self.tracks.values()),
            track=track,
            start_ns=start,
            duration_ns=duration,
            name=name,
            category=category,
            args=args,
        )
        self.rows = placed.row_of
        instants = sorted(self.instants, key=lambda row: row[:2])
        points, series = [], []
        for (track_name, key), values in self.points.items():
            at = self.track(track_name)
            series.append(Series(at, key, len(points), len(values)))
            points += sorted(values)
        times = [
            *start,
            *(start + duration),
            *(row[1] for row in instants),
            *(time for time, _ in points),
        ]
        return replace(
            replace(
                EMPTY_TRACE,
                tracks=placed.tracks,
                strings=tuple(self.strings),
                slices=placed.slices,
                instants=Instants(*_columns(instants, 5)),
                series=tuple(series),
                counters=Counters(
                    np.array([time for time, _ in points], np.int64),
                    np.array([value for _, value in points], np.float64),
                ),
                flows=self._flows(placed.slices),
                launches=self._launches(),
                device_work=self._device_work(placed),
                base_ns=self.base_ns,
                start_ns=int(min(times, default=0)),
                end_ns=int(max(times, default=0)),
                facts=TraceFacts(rank=self.rank),
                args=self.args.__getitem__,
            ),
            **more,
        )

    def _flows(self, slices: Any) -> Flows:
        category, *ends = _columns(self.flows, 3)
        start, stop = (self.rows[end] for end in ends)
        flows = Flows(
            category,
            start,
            stop,
            slices.track[start],
            slices.track[stop],
            slices.start_ns[start],
        )
        order = np.argsort(flows.from_ns, kind="stable")
        return Flows(*(getattr(flows, name)[order] for name in Flows.__slots__))

    def _launches(self) -> Launches:
        made = sorted(
            (int(self.rows[number]), correlation)
            for number, category, correlation in self.correlations
            if category != "kernel"
        )
        row, correlation = _columns(made, 2)
        kernel = [self.launched.get(number, 0) for number in correlation.tolist()]
        none = np.full(len(row), -1)
        return Launches(row, correlation, none, np.array(kernel, np.int64))

    def _device_work(self, placed: Any) -> DeviceWork:
        made = sorted(
            (int(self.rows[number]), correlation)
            for number, category, correlation in self.correlations
            if category == "kernel"
        )
        row, correlation = _columns(made, 2)
        tracks = [placed.tracks[index] for index in placed.slices.track[row]]
        none, nan = np.full(len(row), -1), np.full(len(row), np.nan)
        return DeviceWork(
            row=row,
            device=np.array([track.device for track in tracks], np.int64),
            stream=np.array([track.stream for track in tracks], np.int64),
            correlation=correlation,
            external_id=none,
            grid=none * 0,
            block=none * 0,
            registers=none,
            shared_memory_bytes=none,
            blocks_per_sm=nan,
            occupancy_pct=nan,
        )


def operator_details(row: Any, **columns: Any) -> Operators:
    """Of some slices; what is not given the trace does not say."""
    numbers = {"external_id", "sequence", "forward_thread"}
    names = [field.name for field in fields(Operators) if field.name != "row"]
    absent = {name: np.full(len(row), -1 if name in numbers else 0) for name in names}
    return Operators(row=np.asarray(row), **{**absent, **columns})


def memory_events(rows: Any) -> MemoryEvents:
    """Of (time, bytes, address, device type, device[, allocated[, reserved[, track]]])."""
    padded = [(*row, *(-1, -1, 0)[len(row) - 5 :]) for row in rows]
    time, num_bytes, address, kind, device, allocated, reserved, track = _columns(
        padded, 8
    )
    return MemoryEvents(
        time_ns=time,
        track=track,
        num_bytes=num_bytes,
        address=address,
        device_type=kind,
        device=device,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        args=np.full(len(padded), -1),
    )


def trace_of(
    slices: Any,
    *,
    num_tracks: int = 1,
    points: Any = (),
    **more: Any,
) -> Trace:
    """A trace of slices (track, start, duration, name), and one counter's points."""
    made = MadeTrace(rank=0)
    for at in range(num_tracks):
        made.track(f"thread {at}")
    for track, start, took, name in slices:
        made.slice(f"thread {track}", name, start, took)
    for time_ns, value in points:
        made.counter("memory", "bytes", time_ns, value)
    return made.build(**more)


def rest_ns(parts: Any) -> Any:
    """Of each step, what is neither computation nor communication."""
    return parts.parts_ns.sum(axis=1) - parts.computation_ns - parts.exposed_ns


def _columns(rows: Any, num: int) -> list[np.ndarray]:
    return list(np.array(rows, np.int64).reshape(-1, num).T)
