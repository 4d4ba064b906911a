"""The list of an allocator's events as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from memboard.tb_plugin.analysis.allocator.lifetimes import ACTIONS
from memboard.tb_plugin.analysis.allocator.live import block_name
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.memory.segments import ACTION_WORDS
from memboard.tb_plugin.contract.table import Column, table_of

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.listing.events import (
        EventPage,
        EventRows,
    )
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.jobs.open_history import OpenDevice

_ACTIONS: Final = (*ACTIONS, "unknown")
_SIGNS: Final = {
    "alloc": 1,
    "free": -1,
    "free_completed": -1,
    "segment_alloc": 1,
    "segment_map": 1,
    "segment_free": -1,
    "segment_unmap": -1,
}
"""Whether an event's bytes add to live or reserved memory."""
_EVENTS: Final = (
    Column("event", "Event", help="A click shows the state just after it"),
    Column("action", "What", unit="text", help="What the allocator did"),
    Column("unit", unit="text"),
    Column("bytes", "Bytes", unit="of_row", help="As requested; of segments theirs"),
    Column(
        "block",
        "Block",
        unit="text",
        help="Address and how often it was used before, as memory_viz names it",
    ),
    Column("active", "Active", unit="bytes", help="Live bytes after the event"),
    Column("reserved", "Reserved", unit="bytes", help="Reserved bytes after the event"),
    Column("time_ms", "Time", unit="ms", help="Since the first event"),
    Column("allocated_at", "Where", unit="stack", help="The line that requested it"),
    Column("life"),
)
_UNTIMED: Final = tuple(
    column._replace(title="") if column.key == "time_ms" else column
    for column in _EVENTS
)


def event_table(device: OpenDevice, page: EventPage) -> TableRows:
    """A part of a device's events, or of those of some actions."""
    rows = page.rows
    actions = [_ACTIONS[action] for action in rows.action.tolist()]
    signs = np.array([_SIGNS.get(action, 1) for action in actions], np.float64)
    streams = device.history.stream_labels
    times_us = device.replay.device.events.time_us if device.has_times else None
    first_us = np.nan if times_us is None else float(times_us[0])
    more = {
        "action": {
            "notes": _free_notes(rows),
            "hints": tuple(actions),
        },
        "block": {
            "notes": ()
            if len(streams) < 2
            else tuple(f"stream {streams[row]}" for row in rows.stream.tolist()),
        },
    }
    table = table_of(
        _EVENTS if device.has_times else _UNTIMED,
        {
            "event": rows.event,
            "action": [ACTION_WORDS[action] for action in actions],
            "unit": [
                "change_bytes" if action in _SIGNS else "bytes" for action in actions
            ],
            "bytes": signs * rows.size,
            "block": _block_names(rows),
            "active": device.active.at(rows.event),
            "reserved": device.reserved.at(rows.event),
            "time_ms": 1e3 * (rows.time_us - first_us),
            "allocated_at": rows.stack,
            "life": rows.life,
        },
        usual="",
        num_all=page.num_rows,
        more=more,
    )
    empty = "None of these is in this history."
    if not device.num_events:
        empty = (
            "This history holds no events: only what was live when it was taken is"
            " known."
        )
    return replace(table, title="Allocator events", empty=empty)


def _free_notes(rows: EventRows) -> tuple[str, ...]:
    """Of errors: what the device had left."""
    if np.isnan(rows.device_free).all():
        return ()
    return tuple(
        "" if np.isnan(num_bytes) else f"device had {size_text(num_bytes)}"
        for num_bytes in rows.device_free.tolist()
    )


def _block_names(rows: EventRows) -> list[str]:
    return [
        "" if np.isnan(address) else block_name(address, version)
        for address, version in zip(
            rows.address.tolist(), rows.version.tolist(), strict=True
        )
    ]
