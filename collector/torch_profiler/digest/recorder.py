"""The recorder's events of a profiler become events of its name: see `own.slices`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memboard.collector.format.own.frames import RECORDER
from memboard.collector.format.own.slices import (
    METADATA_KEY,
    OPERATOR,
    TRACKS_MODULES,
    HostSlices,
    folded,
    has_own,
    kinds,
    relinked,
)
from memboard.collector.torch_profiler.digest.events import ASYNC, CPU, MEMORY, Events
from memboard.collector.torch_profiler.digest.nesting import nested

_COLUMNS = (
    "name",
    "category",
    "thread",
    "start_ns",
    "duration_ns",
    "device_type",
    "device_index",
    "num_bytes",
    "flops",
    "correlation",
    "linked",
)


def without_recorder(events: Events, *, tracks_modules: bool) -> Events:
    """The program's events, each operator once, and the recorder's time."""
    if not has_own(events.names, {METADATA_KEY: {TRACKS_MODULES: tracks_modules}}):
        return events
    on_host = (events.device_type == CPU) & (events.thread != ASYNC)
    nesting = nested(events, np.flatnonzero(on_host & ~events.named(MEMORY)))
    rows = nesting.rows
    start, duration = events.start_ns[rows], np.maximum(events.duration_ns[rows], 0)
    found = folded(
        events.names,
        HostSlices(
            name=events.name[rows],
            kind=kinds(
                events.names,
                events.categories,
                events.name[rows],
                events.category[rows],
            ),
            parent=nesting.parent,
            level=nesting.level,
            start_ns=start,
            end_ns=start + duration,
        ),
        is_tracked=tracks_modules,
    )
    stays = np.ones(len(events), bool)
    stays[rows] = found.stays
    repeated = np.flatnonzero(found.repeats >= 0)
    ids = events.correlation[rows]
    num = len(found.root)
    names, categories = [*events.names, RECORDER], [*events.categories, OPERATOR]
    pieces = {name: np.zeros(num, np.int64) for name in _COLUMNS}
    pieces["name"] += len(events.names)
    pieces["category"] += len(events.categories)
    pieces["thread"] = events.thread[rows][found.root]
    pieces["start_ns"] = found.start_ns
    pieces["duration_ns"] = found.end_ns - found.start_ns
    pieces["device_type"] += CPU
    columns = {
        name: np.concatenate((getattr(events, name)[stays], pieces[name]))
        for name in _COLUMNS
    }
    columns["linked"] = relinked(
        columns["linked"], ids[repeated], ids[found.repeats[repeated]]
    )
    return replace(events, names=names, categories=categories, **columns)
