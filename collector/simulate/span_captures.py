"""Spans of a simulated run: two cycles of a few steps, on a few ranks.

A step's parts lie one after the other and take what the step's row says; collectives lie
within forward and backward. The rest of the step is at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.records import Capture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.records import CaptureTable
    from collector.simulate.faults import Fault
    from collector.simulate.ranks import RankBatch

MAX_SPAN_RANKS: Final = 16
"""The first ones; the first rank of each fault comes on top."""

CYCLE: Final = (1, 2, 2, 3)
"""States of a cycle's steps: one that warms up, two that are active, one that saves."""

_MAIN, _STEPS = 0, 1
_NUM_WORKERS: Final = 4
_NUM_COLLECTIVES: Final = 4
_NAMES: Final = (
    ("step", "step"),
    ("dataloader", "dataloader"),
    ("forward", "forward"),
    ("backward", "backward"),
    ("optimizer", "optimizer"),
    ("zero_grad", "zero_grad"),
    ("all_gather", "communication"),
    ("reduce_scatter", "communication"),
    ("log metrics", "user"),
    ("learning rate", "user"),
    ("dataloader/prefetched", "counter"),
)
_NAME: Final = {name: index for index, (name, _) in enumerate(_NAMES)}


def has_spans(rank: int, faults: Sequence[Fault]) -> bool:
    """Whether a rank keeps its spans."""
    return rank < MAX_SPAN_RANKS or any(rank == fault.ranks[0] for fault in faults)


def cycle_starts(num_steps: int) -> tuple[int, ...]:
    """The first step of each cycle; none where a run is too short for one."""
    starts = {max(1, num_steps // 4), max(1, num_steps // 2)}
    return tuple(
        start
        for start in sorted(starts)
        if start + len(CYCLE) <= num_steps
        and not any(0 < start - other < len(CYCLE) for other in starts)
    )


def span_captures(
    batch: RankBatch, row: int, faults: Sequence[Fault], pid: int
) -> list[Capture]:
    """The captures of one rank, in order of time; none where it keeps no spans."""
    if not has_spans(batch.ranks[row], faults):
        return []
    starts = cycle_starts(batch.time_ns.shape[1])
    return [
        _capture(batch, row, cycle, start, pid)
        for cycle, start in enumerate(starts, 1)
        if start + len(CYCLE) <= batch.num_steps[row]
    ]


def _capture(batch: RankBatch, row: int, cycle: int, start: int, pid: int) -> Capture:
    rows = _Rows()
    for step, state in enumerate(CYCLE, start):
        parts = {
            name.removesuffix("_seconds"): int(values[row, step] * 1e9)
            for name, values in batch.columns.items()
            if name.endswith("_seconds") and np.isfinite(values[row, step])
        }
        ended = int(batch.time_ns[row, step])
        rows.add_step(step, state, ended - parts["step_time"], ended, parts)
    last = start + len(CYCLE) - 1
    return Capture(
        kind="spans",
        time_ns=int(batch.time_ns[row, last]),
        step=last,
        phase="train",
        function="",
        iteration=0,
        meta={"cycle": cycle, "num_dropped": 0},
        tables=rows.tables(pid),
    )


class _Rows:
    """The rows of one capture."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, ...]] = []
        self._instants: list[tuple[int, ...]] = []
        self._counters: list[tuple[int, ...]] = []

    def add_step(
        self, step: int, state: int, began: int, ended: int, parts: dict[str, int]
    ) -> None:
        """One step and all that lies within it."""
        self._add("step", began, ended - began, step, state, thread=_STEPS)
        at = began
        communicates = parts["communication"] // (2 * _NUM_COLLECTIVES)
        for part in ("dataloader", "forward", "backward", "optimizer", "zero_grad"):
            takes, within = parts[part], _WITHIN.get(part)
            if within is not None:
                takes += communicates * _NUM_COLLECTIVES
            args = 0 if part == "dataloader" else -1
            self._add(part, at, takes, step, state, args=args)
            for number in range(_NUM_COLLECTIVES if within else 0):
                first = at + number * takes // _NUM_COLLECTIVES
                self._add(str(within), first, communicates, step, state, depth=1)
            at += takes
        self._add("log metrics", at, max(0, ended - at) // 2, step, state)
        if state == CYCLE[-1]:
            self._instants.append(
                (_NAME["learning rate"], _MAIN, ended - 1, step, state, 1)
            )
        ready = 2 * _NUM_WORKERS - step % 3
        self._counters.append((_NAME["dataloader/prefetched"], began, step, ready))

    def _add(
        self,
        name: str,
        start: int,
        takes: int,
        step: int,
        state: int,
        *,
        thread: int = _MAIN,
        depth: int = 0,
        args: int = -1,
    ) -> None:
        self._spans.append(
            (_NAME[name], thread, start, takes, step, depth, state, args)
        )

    def tables(self, pid: int) -> dict[str, CaptureTable]:
        """As `collector.steps.spans.captures` says."""
        spans = ("name", "thread", "start_ns", "duration_ns")
        counters = _table(("name", "time_ns", "step", "value"), self._counters)
        counters["value"] = counters["value"].astype(np.float64)
        instants = ("name", "thread", "time_ns", "step", "state", "args")
        return {
            "spans": _table((*spans, "step", "depth", "state", "args"), self._spans),
            "instants": _table(instants, self._instants),
            "counters": counters,
            "names": {
                "name": tuple(name for name, _ in _NAMES),
                "category": tuple(category for _, category in _NAMES),
            },
            "threads": {
                "thread_id": np.array([pid, pid], np.int64),
                "name": ("MainThread", "MainThread steps"),
            },
            "args": {"json": (f'{{"num_workers":{_NUM_WORKERS}}}', '{"value":0.0003}')},
        }


_WITHIN: Final = {"forward": "all_gather", "backward": "reduce_scatter"}


def _table(names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    values = np.array(rows, np.int64).reshape(len(rows), len(names))
    return {name: values[:, at] for at, name in enumerate(names)}
