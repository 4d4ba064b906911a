"""What an attempt's name tells when the header is lost."""

from __future__ import annotations

import calendar

from collector.format.records import ClockAnchor, Header


def started_ns_of(attempt: str) -> int:
    """Start time in ns since the epoch of e.g. `20261120T101530123-1f2e3d4c`."""
    digits = attempt[:8] + attempt[9:18]
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:8])
    hour, minute, second = int(digits[8:10]), int(digits[10:12]), int(digits[12:14])
    try:
        seconds = calendar.timegm((year, month, day, hour, minute, second))
    except ValueError:
        return 0
    return (seconds * 1000 + int(digits[14:17])) * 1_000_000


def header_by_name(rank: int, attempt: str) -> Header:
    """A header that tells rank and start, all else unknown."""
    return Header(
        run_id="",
        attempt=attempt,
        job="",
        rank=rank,
        local_rank=0,
        world_size=0,
        local_world_size=None,
        node_rank=None,
        host="",
        pid=0,
        started=ClockAnchor(wall_ns=started_ns_of(attempt), monotonic_ns=0),
        device_type="",
    )
