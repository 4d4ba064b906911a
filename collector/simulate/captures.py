"""Captures of a simulated rank's steps: the memory of modules, and spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.memory import CATEGORIES, STATES
from memboard.collector.format.records import Capture
from memboard.collector.simulate.device import ALLOC, BLOCK_BYTES, MAP
from memboard.collector.simulate.program import PHASES, ROOT
from memboard.collector.simulate.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memboard.collector.format.records import CaptureTable
    from memboard.collector.simulate.device import Device
    from memboard.collector.simulate.program import Training
    from memboard.collector.simulate.series import RankSeries, Scenario

NUM_TRACKED: Final = 64
"""Ranks whose modules and spans are kept, spread over the run; those with a fault besides."""

CYCLE: Final = (1, 2, 2, 3)
"""States of a cycle's steps: one that warms up, two that are active, one that saves."""


def module_captures(scenario: Scenario, series: RankSeries) -> Iterator[Capture]:
    """The second step, one in the middle and the last, as far as the rank came."""
    last = scenario.run.num_steps - 1
    for step in sorted({min(1, last), (last + 1) // 2, last}):
        if step >= series.num_rows:
            continue
        replay = Replay(scenario, series, step)
        began_us = series.began_ns(step) / 1000
        yield Capture(
            kind="modules",
            time_ns=int(series.time_ns[step]),
            step=step,
            phase="train",
            function="step",
            iteration=step + 1,
            meta={
                "backend": "fsdp2",
                "world": f"shard {replay.training.num_shards}",
                "root": ROOT,
                "devices": ["cuda:0"],
                "device_type": "cuda",
                "estimate": "",
                "incomplete": False,
                "inputs": "forward",
                "optimizers": 1,
                "torch": "simulated",
                "rounding_bytes": BLOCK_BYTES,
                "num_events_dropped": 0,
                "reasons": ["simulated: nothing was trained"],
            },
            tables=module_tables(replay.training, replay.device, replay.step, began_us),
        )


def module_tables(
    training: Training, device: Device, step: Callable[[], None], began_us: float
) -> dict[str, CaptureTable]:
    """The model's modules, what is alive before a step, and each change that it makes."""
    rows = training.modules
    events: list[tuple[int, ...]] = []
    for block in device.live.values():
        code = CATEGORIES.index(block.category)
        events.append((0, block.size_bytes, code, 0, block.module, block.number))
    device.log = []
    step()
    num_events_before = [len(events)]
    """By entries of the log: how many events came before."""
    for entry in device.log:
        if entry.action != MAP and entry.block is not None:
            block = entry.block
            delta = block.size_bytes if entry.action == ALLOC else -block.size_bytes
            code, at_us = (
                CATEGORIES.index(block.category),
                int(entry.time_us - began_us),
            )
            events.append((at_us, delta, code, 0, block.module, block.number))
        num_events_before.append(len(events))
    boundaries = []
    for time_us, num_entries, module, state in training.boundaries:
        moment = (int(time_us - began_us), num_events_before[num_entries], module)
        boundaries.append((*moment, STATES.index(state), "backward" in state, 0))
    names = ("time_us", "delta_bytes", "category", "device", "module", "storage")
    bounds = ("time_us", "event", "module", "state", "in_backward", "call")
    sizes = [training.shard_bytes(row.elements) for row in rows]
    return {
        "modules": {
            "fqn": tuple(f"{ROOT}.{row.path}" if row.path else ROOT for row in rows),
            "path": tuple(row.path for row in rows),
            "type": tuple(row.type for row in rows),
            "parent": np.array([row.parent for row in rows], np.int64),
            "is_fsdp": np.array([row.is_unit for row in rows], np.int64),
            "param_bytes": np.array(sizes, np.int64),
            "buffer_bytes": np.zeros(len(rows), np.int64),
        },
        "events": _table(names, events),
        "boundaries": _table(bounds, boundaries),
    }


_NUM_WORKERS: Final = 4
_NUM_COLLECTIVES: Final = 4
_WITHIN: Final = {"forward": "all_gather", "backward": "reduce_scatter"}
_CATEGORIES: Final = {
    **{name: name for name in ("step", *PHASES)},
    **dict.fromkeys(_WITHIN.values(), "communication"),
    **dict.fromkeys(("log metrics", "learning rate"), "user"),
    "dataloader/prefetched": "counter",
}
"""Of spans, instants and counters, by name."""
_NAME: Final = {name: index for index, name in enumerate(_CATEGORIES)}


def cycle_starts(num_steps: int) -> tuple[int, ...]:
    """The first step of each cycle; none where a run is too short for one."""
    first, second = max(1, num_steps // 4), max(1, num_steps // 2)
    starts = (first,) if second - first < len(CYCLE) else (first, second)
    return tuple(start for start in starts if start + len(CYCLE) <= num_steps)


def span_captures(
    scenario: Scenario, series: RankSeries, pid: int
) -> Iterator[Capture]:
    """Two cycles of a few steps; tables as `memboard.collector.steps.spans.captures` says."""
    for cycle, start in enumerate(cycle_starts(scenario.run.num_steps), 1):
        last = start + len(CYCLE) - 1
        if last >= series.num_rows:
            continue
        spans: list[tuple[int, ...]] = []
        instants: list[tuple[int, ...]] = []
        counters: list[tuple[int, ...]] = []
        for step, state in enumerate(CYCLE, start):
            spans += _spans(series, step, state)
            ended, ready = int(series.time_ns[step]), 2 * _NUM_WORKERS - step % 3
            prefetched = _NAME["dataloader/prefetched"]
            counters.append((prefetched, series.began_ns(step), step, ready))
            if state == CYCLE[-1]:
                instants.append((_NAME["learning rate"], 0, ended - 1, step, state, 1))
        of_spans = ("name", "thread", "start_ns", "duration_ns", "step", "depth")
        of_instants = ("name", "thread", "time_ns", "step", "state", "args")
        values = _table(("name", "time_ns", "step", "value"), counters)
        values["value"] = values["value"].astype(np.float64)
        yield Capture(
            kind="spans",
            time_ns=int(series.time_ns[last]),
            step=last,
            phase="train",
            function="",
            iteration=0,
            meta={"cycle": cycle, "num_dropped": 0},
            tables={
                "spans": _table((*of_spans, "state", "args"), spans),
                "instants": _table(of_instants, instants),
                "counters": values,
                "names": {
                    "name": tuple(_CATEGORIES),
                    "category": tuple(_CATEGORIES.values()),
                },
                "threads": {
                    "thread_id": np.array([pid, pid], np.int64),
                    "name": ("MainThread", "MainThread steps"),
                },
                "args": {
                    "json": (f'{{"num_workers":{_NUM_WORKERS}}}', '{"value":0.0003}')
                },
            },
        )


def _spans(series: RankSeries, step: int, state: int) -> Iterator[tuple[int, ...]]:
    """A step and its parts; collectives lie within forward and backward."""
    began, end_ns = series.began_ns(step), int(series.time_ns[step])
    yield (_NAME["step"], 1, began, end_ns - began, step, 0, state, -1)
    rest = end_ns
    communicates = float(series.columns["communication_seconds"][step])
    each = int(communicates * 1e9) // (2 * _NUM_COLLECTIVES)
    for part, (start, length) in series.parts(step).items():
        args = 0 if part == "dataloader" else -1
        yield (_NAME[part], 0, start, length, step, 0, state, args)
        for number in range(_NUM_COLLECTIVES if part in _WITHIN else 0):
            first = start + number * length // _NUM_COLLECTIVES
            yield (_NAME[_WITHIN[part]], 0, first, each, step, 1, state, -1)
        rest = start + length
    yield (
        _NAME["log metrics"],
        0,
        rest,
        max(0, end_ns - rest) // 2,
        step,
        0,
        state,
        -1,
    )


def _table(names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    values = np.array(rows, np.int64).reshape(len(rows), len(names))
    return {column: values[:, index] for index, column in enumerate(names)}
