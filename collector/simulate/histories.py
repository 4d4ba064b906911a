"""Captures of a simulated rank's allocator, and the report of the error that ends it.

A chosen rank has a history at two steps, one in the middle of the run and the last, each
with the few steps before it. The rank that runs out of memory has the report of its error
and the history that explains it, as a recorder leaves them.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format import oom
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.records import Capture, Note
from memboard.collector.format.snapshots import tables_of
from memboard.collector.format.snapshots.tags import tag_text
from memboard.collector.history.tensors import TABLE, Tensors
from memboard.collector.oom.facts import holders_of
from memboard.collector.simulate.device import (
    ALLOC,
    FREE,
    MAP,
    SMALL,
    UNMAP,
    Device,
    OutOfMemory,
)
from memboard.collector.simulate.faults import RANKS_PER_HOST, host_name
from memboard.collector.simulate.memory import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from memboard.collector.simulate.program import SITES
from memboard.collector.simulate.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.collector.simulate.series import RankSeries, Scenario

NUM_HISTORIES: Final = 6
"""Ranks whose allocator is captured, spread over the run; those with a fault besides."""

SETTINGS: Final = "expandable_segments:True"
_STEPS_BEFORE: Final = 2
"""Whole steps that a history shows besides its own."""
_STEPS_BEFORE_ERROR: Final = 9
_IN_NOTE: Final = (
    "allocated_peak_bytes",
    "active_peak_bytes",
    "reserved_bytes",
    "inactive_split_bytes",
)
_KNOWN: Final = ("sharded_param", "optimizer", "sharded_grad")
"""Categories of the tensors that a recorder knows by name."""

_ACTIONS: Final = {
    ALLOC: (ALLOC,),
    MAP: (MAP,),
    UNMAP: (UNMAP,),
    FREE: ("free_requested", "free_completed"),
}
_FRAMES: Final = {
    site: [{"name": name, "filename": file, "line": line} for name, file, line in stack]
    for site, stack in SITES.items()
}


def history_captures(scenario: Scenario, series: RankSeries) -> Iterator[Capture]:
    """The captures of a rank that finishes the run."""
    for step in sorted({series.num_rows // 2, series.num_rows - 1}):
        first = max(0, step - _STEPS_BEFORE)
        replay = Replay(scenario, series, first)
        replay.device.log = []
        for _ in range(first, step + 1):
            replay.step()
        capture = _history(replay.device, int(series.time_ns[step]), step)
        capture.function, capture.iteration, capture.context = "step", step + 1, "end"
        yield capture


def last_words(scenario: Scenario, series: RankSeries) -> tuple[Note, Capture, Capture]:
    """The end of the rank that runs out of memory: its note, its report, its history."""
    step = series.num_rows
    replay = Replay(scenario, series, max(0, step - _STEPS_BEFORE_ERROR))
    device = replay.device
    device.log = []
    try:
        while True:
            replay.step()
    except OutOfMemory as error:
        at_ns = int(device.now_us * 1000) + 1000
        report = _report(scenario, series, device, error, at_ns)
        history = _history(device, at_ns, step, error)
    history.context = history.label = "oom"
    values = {figure: report.meta["memory"][figure] for figure in _IN_NOTE}
    data = {
        "message": "simulated: out of memory",
        "values": {**values, "num_alloc_retries": device.num_retries, "num_ooms": 1},
        oom.REPORT: 1,
    }
    return Note(kind="oom", time_ns=at_ns, step=step, data=data), report, history


def _history(
    device: Device, time_ns: int, step: int, error: OutOfMemory | None = None
) -> Capture:
    """The device as it is, and what led there."""
    events = [
        {
            **_event(action, entry.size_bytes, int(entry.time_us), entry.step),
            "addr": entry.address,
            **({} if entry.action == FREE else {"frames": _FRAMES[entry.site]}),
        }
        for entry in device.log or ()
        for action in _ACTIONS[entry.action]
    ]
    if error is not None:
        last = _event("oom", error.requested_bytes, time_ns // 1000, step)
        last |= {"device_free": error.free_bytes, "frames": _FRAMES[error.site]}
        events.append(last)
    segments = _segments(device)
    tables = tables_of(
        {
            "segments": segments,
            "device_traces": [events],
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": SETTINGS,
                "expandable_segments": True,
            },
            "external_annotations": [],
        }
    )
    tensors = _tensors(device)
    meta = {
        "device_type": "cuda",
        "recording": "ours",
        "num_segments": len(segments),
        "num_blocks": sum(len(segment["blocks"]) for segment in segments),
        "num_events": len(events),
        "num_events_dropped": 0,
        "took_us": 0,
        "num_tensors": len(tensors.address),
        "num_tensors_dropped": 0,
        "simulated": True,
    }
    return Capture(
        kind="history",
        time_ns=time_ns,
        step=step,
        phase="train",
        function="",
        iteration=0,
        meta=meta if error is None else {**meta, oom.REPORT: 1},
        tables={**tables, TABLE: tensors.table()},
    )


_tag = cache(partial(tag_text, phase="train", function="step"))


def _event(action: str, size: int, time_us: int, step: int) -> dict[str, Any]:
    """An event of torch 2.13, but for its address and its stack."""
    return {
        "action": action,
        "size": size,
        "stream": 0,
        "time_us": time_us,
        "compile_context": "N/A",
        "user_metadata": _tag(step=step),
        "pool_id": (0, 0),
    }


def _segments(device: Device) -> list[dict[str, Any]]:
    """What torch's snapshot says of them."""
    segments = []
    for pool, rows in device.layout():
        blocks: list[dict[str, Any]] = [
            {
                "address": address,
                "size": size,
                "requested_size": 0 if block is None else block.requested_bytes,
                "state": "inactive" if block is None else "active_allocated",
                "frames": [] if block is None else _FRAMES[block.site],
            }
            for address, size, block in rows
        ]
        live_bytes = sum(block.size_bytes for _, _, block in rows if block is not None)
        segments.append(
            {
                "device": 0,
                "address": rows[0][0],
                "total_size": sum(size for _, size, _ in rows),
                "allocated_size": live_bytes,
                "active_size": live_bytes,
                "requested_size": sum(block["requested_size"] for block in blocks),
                "stream": 0,
                "segment_type": "small" if pool == SMALL else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": True,
                "frames": [],
                "blocks": blocks,
            }
        )
    return segments


def _tensors(device: Device) -> Tensors:
    """What a recorder would know of the addresses."""
    rows = [
        (b.address, b.requested_bytes, CATEGORIES.index(b.category), b.name, 0)
        for b in device.live.values()
        if b.category in _KNOWN
    ]
    address, num_bytes, category, tensor_name, device_index = map(
        list, zip(*rows, strict=True)
    )
    return Tensors(
        address, num_bytes, category, tensor_name, device_index, num_dropped=0
    )


def _report(
    scenario: Scenario,
    series: RankSeries,
    device: Device,
    error: OutOfMemory,
    time_ns: int,
) -> Capture:
    """What the recorder of the failing rank writes first."""
    tensors = _tensors(device)
    holders = holders_of(_segments(device), 0, tensors)
    row: dict[str, Any] = {**device.row(), "num_ooms": 1}
    row["requested_live_bytes"] = row["requested_bytes"]
    last = series.num_rows - 1
    columns: dict[str, Any] = {**series.columns, "time_ns": series.time_ns}
    columns["step"] = range(len(series.time_ns))
    meta = {
        **oom.META,
        oom.REPORT: 1,
        "num_ooms": 1,
        "device_type": "cuda",
        "device": 0,
        "requested_bytes": error.requested_bytes,
        "device_free_bytes": error.free_bytes,
        "device_total_bytes": DEVICE_TOTAL_BYTES,
        "other_bytes": NON_TORCH_BYTES,
        "memory": {figure: row.get(figure) for figure in oom.MEMORY},
        "last_step": {figure: int(columns[figure][last]) for figure in oom.LAST_STEP}
        if last >= 0
        else None,
        "spans": ["train_step"],
        "rank": series.rank,
        "local_rank": series.rank % RANKS_PER_HOST,
        "world_size": scenario.run.num_ranks,
        "host_name": host_name(series.rank),
        "allocator": {
            "settings": SETTINGS,
            "backend": "native",
            "expandable_segments": True,
        },
        "history": {"recording": "ours", "stacks": "python", "events": True},
        "holders": {
            "live_bytes": holders.live_bytes,
            "num_blocks": holders.num_blocks,
            "source": "segments",
            "why_not": "",
        },
        "simulated": True,
        "report_us": 0,
    }
    return Capture(
        kind=oom.KIND,
        time_ns=time_ns,
        step=series.num_rows,
        phase="train",
        function="train_step",
        iteration=0,
        label="oom",
        meta=meta,
        tables={
            "stack": oom.stack_table([SITES[error.site]]),
            **oom.holder_tables(holders.rows),
            "categories": oom.category_table(tensors.sums(0)),
        },
    )
