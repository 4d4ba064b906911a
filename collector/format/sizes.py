"""Sizes, counts and times as text, and the sizes in the text of an out-of-memory error.

torch's allocators tell of sizes in their messages alone, with two decimals of a unit. The
wording changes from release to release and from backend to backend, so each number is
looked for by itself, and what is not found is not known. A message is a text of anybody's:
nothing here fails or takes long.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import Final, Literal, TypeAlias

SizeUnit: TypeAlias = Literal["auto", "B", "KiB", "MiB", "GiB", "TiB"]

SHOWN_UNIT: Final[ContextVar[SizeUnit]] = ContextVar("SHOWN_UNIT", default="auto")
"""In which sentences tell sizes: that which fits each, or one for all."""

UNITS: Final = {
    **dict.fromkeys(("bytes", "byte", "B"), 1),
    **{
        f"{letter}iB": 1 << (10 * power) for power, letter in enumerate("KMGT", start=1)
    },
    # MPS writes MB and means MiB.
    **{f"{letter}B": 1 << (10 * power) for power, letter in enumerate("KMGT", start=1)},
}
_SIZE: Final = r"(\d{1,20}(?:\.\d{1,6})?) ?(bytes?|[KMGT]i?B|B)\b"

_LEAST: Final = 0.005
"""Smaller values would be nothing with two decimals."""

MAX_TEXT: Final = 20_000
MAX_BYTES: Final = 1 << 53
"""Largest size: requests may be absurd, numbers stay exact."""

_PATTERNS: Final = {
    "requested_bytes": (
        rf"[Tt]ried to allocate {_SIZE}",
        rf"Requested size: {_SIZE}",  # refused before the device was asked
        rf"{_SIZE} asked for",  # our own note of an error whose text is not known
    ),
    "device_total_bytes": (
        rf"total capacity of {_SIZE}",
        rf"{_SIZE} total capacity",
        rf"max allowed: {_SIZE}",  # MPS
    ),
    "device_free_bytes": (rf"of which {_SIZE} is free", rf"{_SIZE} free\b"),
    "device_limit_bytes": (rf"{_SIZE} allowed\b",),
    "allocated_bytes": (
        rf"{_SIZE} is allocated by PyTorch",
        rf"{_SIZE} already allocated",
        rf"MPS allocated: {_SIZE}",
    ),
    "private_free_bytes": (rf"{_SIZE} allocated in private pools",),
    "reserved_but_unallocated_bytes": (rf"{_SIZE} is reserved by PyTorch but",),
    "reserved_bytes": (rf"{_SIZE} reserved in total",),
}
_COMPILED: Final = {
    name: tuple(re.compile(pattern) for pattern in patterns)
    for name, patterns in _PATTERNS.items()
}
_DEVICE: Final = re.compile(r"\bGPU (\d{1,5})\b|\b(?:cuda|xpu|npu):(\d{1,5})\b")


def bytes_text(size: float | None) -> str:
    """A size in the unit that fits, e.g. `1.50 GiB`; `-` where it is not known."""
    if size is None:
        return "-"
    shown = SHOWN_UNIT.get()
    if shown != "auto":
        return in_unit(size, shown)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{fixed(size, 0 if unit == 'B' else 2, group=False)} {unit}"


def in_unit(size: float, unit: SizeUnit) -> str:
    """A size in a unit that may not fit: `80,179 MiB`, `0.0004 GiB`."""
    value = size / UNITS[unit]
    if unit == "B" or value == 0:
        return f"{fixed(value)} {unit}"
    if abs(value) < _LEAST:
        return f"{value:.1g} {unit}"
    digits = max(0, 3 - len(str(int(abs(value)))))
    return f"{value:,.{digits}f} {unit}"


def fixed(value: float, digits: int = 0, *, group: bool = True) -> str:
    """A number with so many decimals; never `-0`. `group`: thousands have commas."""
    return f"{round(value, digits) + 0.0:{',' if group else ''}.{digits}f}"


def plural(noun: str) -> str:
    """Of a noun, or of the last word of several: `ranks`, `forward passes`, `histories`."""
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def counted(count: int, noun: str) -> str:
    """A count with its noun: `1 forward pass`, `412 forward passes`."""
    return f"{count:,} {agreeing(count, noun, plural(noun))}"


def agreeing(count: int, singular: str, many: str) -> str:
    """The word that agrees with a count: `agreeing(3, "is", "are")` is `are`."""
    return singular if count == 1 else many


def part_of(count: int, total: int, noun: str) -> str:
    """So many of all: `3 of 8 ranks`; `8 ranks` where that is all of them."""
    of = "" if count == total else f"{count:,} of "
    return f"{of}{counted(total, noun)}"


def the_other(count: int, noun: str) -> str:
    """All but those named before: `the other rank`, `the other 3 ranks`."""
    return f"the other {noun if count == 1 else counted(count, noun)}"


def range_text(low: float, high: float) -> str:
    """A range of sizes: `450.00 MiB - 1.50 GiB`; one size where both ends are the same."""
    return bytes_text(low) if low == high else f"{bytes_text(low)} - {bytes_text(high)}"


def capitalized(text: str) -> str:
    """A sentence's beginning; what follows, names among it, stays as it is."""
    return text[:1].upper() + text[1:]


def printable(text: str, replacement: str = "?") -> str:
    """Text from files without control characters: nothing in it steers a terminal."""
    return "".join(c if c.isprintable() else replacement for c in text)


def time_text(time_ms: float) -> str:
    """A time of day in UTC; `time_ms` since 1970."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1e3, timezone.utc)
    except (OverflowError, OSError, ValueError):
        # The file's clock may have said anything.
        return "at an unknown time"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def sizes_in(text: str) -> dict[str, int]:
    """Bytes by name, and `device`, as far as a message tells them."""
    text = text[:MAX_TEXT]
    size_by_name: dict[str, int] = {}
    for size_name, patterns in _COMPILED.items():
        for pattern in patterns:
            match = pattern.search(text)
            if match is not None:
                size = round(float(match[1]) * UNITS[match[2]])
                if size <= MAX_BYTES:
                    size_by_name[size_name] = size
                break
    spare = size_by_name.pop("reserved_but_unallocated_bytes", None)
    if spare is not None and "allocated_bytes" in size_by_name:
        size_by_name.setdefault(
            "reserved_bytes", size_by_name["allocated_bytes"] + spare
        )
    # torch calls what is free in private pools allocated, and counts it as such.
    cached = size_by_name.get("private_free_bytes")
    if cached is not None and "allocated_bytes" in size_by_name:
        size_by_name["allocated_bytes"] = max(
            0, size_by_name["allocated_bytes"] - cached
        )
    device = _DEVICE.search(text)
    if device is not None:
        size_by_name["device"] = int(device[1] or device[2])
    return size_by_name
