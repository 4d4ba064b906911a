"""Sizes and times as text, for sentences that a recording's readers share."""

from __future__ import annotations

from datetime import datetime, timezone


def bytes_text(size: float | None) -> str:
    """A size in the unit that fits, e.g. `1.50 GiB`; `-` where it is not known."""
    if size is None:
        return "-"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"


def range_text(low: float, high: float) -> str:
    """A range of sizes: `450.00 MiB - 1.50 GiB`; one size where both ends are the same."""
    return bytes_text(low) if low == high else f"{bytes_text(low)} - {bytes_text(high)}"


def time_text(time_ms: float) -> str:
    """A time of day in UTC; `time_ms` since 1970."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1e3, timezone.utc)
    except (OverflowError, OSError, ValueError):
        # The file's clock may have said anything.
        return "at an unknown time"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
