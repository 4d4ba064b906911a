"""Tables beside the map of segments: who pins free memory, of which sizes it is, whose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.contract.table import Column, table_of, titled

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.allocator.moment.arenas import (
        FreeSizes,
        SegmentArenas,
    )
    from memboard.tb_plugin.analysis.allocator.moment.pins import SegmentPinners
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.jobs.open_history import OpenDevice

_SHARED: Final = (
    "Other lines have live blocks in the same segments or pages: nothing is returned"
    " before theirs are freed too"
)
_REQUESTED: Final = "requested"
_PINNERS: Final = (
    Column("allocated_at", "Allocated at", unit="stack"),
    Column(
        "alone_bytes",
        "Gain",
        unit="bytes",
        help="Free bytes that could be returned without its blocks: no other line has a"
        " live block in these segments, or pages of expandable ones",
        bar="pinned",
    ),
    Column(
        "shared_bytes",
        "With others",
        unit="bytes",
        help="Free bytes that could be returned without its blocks and those of other"
        " lines",
    ),
    Column(
        "live_bytes",
        "Its blocks",
        unit="bytes",
        help="Live bytes of its own in these segments",
    ),
    Column("num_segments", "Segments"),
)
_SIZES: Final = (
    Column("from_bytes", "Blocks of", unit="size_class", help="Up to twice as large"),
    Column(
        "split_bytes",
        "Beside live",
        unit="bytes",
        help="inactive_split: they serve requests that fit, and are not returned to the"
        " device",
        bar="free",
    ),
    Column(
        "whole_bytes",
        "Whole",
        unit="bytes",
        help="torch.cuda.empty_cache() returns these",
        bar="free",
    ),
)
_ARENAS: Final = (
    Column(
        "arena",
        "Requests",
        unit="text",
        help="No free block leaves its pool, stream and size class",
    ),
    Column("free_bytes", "Free", unit="bytes", help="All its free blocks"),
    Column("num_free"),
    Column(
        "largest_free_bytes",
        "Largest",
        unit="bytes",
        help="The largest free block: the largest request that fits",
    ),
    Column(
        "releasable_bytes",
        "Return-\nable",
        unit="bytes",
        help="What torch.cuda.empty_cache() would return to the device",
    ),
    Column("reserved_bytes", "Reserved", unit="bytes", help="All its segments"),
)


def pinner_table(pinners: SegmentPinners, pinned_bytes: int) -> TableRows:
    """What pins free memory, by line of code: what most would gain first."""
    rows = table_of(
        _PINNERS,
        {
            "allocated_at": pinners.stack,
            "alone_bytes": pinners.alone_bytes,
            "shared_bytes": pinners.shared_bytes,
            "live_bytes": pinners.live_bytes,
            "num_segments": pinners.num_segments,
        },
        usual="",
        more={
            "alone_bytes": {
                "hints": tuple(
                    "" if num_bytes else _SHARED
                    for num_bytes in pinners.alone_bytes.tolist()
                )
            },
        },
    )
    num = len(pinners.stack)
    return titled(
        rows,
        "What pins free memory",
        f"{size_text(pinned_bytes)} by {counted(num, 'line')}" if pinned_bytes else "",
        "Nothing: every free byte can be returned to the device.",
    )


def free_size_table(sizes: FreeSizes, request_bytes: int | None) -> TableRows:
    """Free blocks by size, the largest first; noted: where the request would fit.

    `request_bytes`: of the block that it needs; None: there is no request.
    """
    sizes = sizes.largest_first()
    from_bytes = sizes.from_bytes.tolist()
    longest = float(
        max(sizes.split_bytes.max(initial=0), sizes.whole_bytes.max(initial=0))
    )
    return titled(
        table_of(
            _SIZES,
            {
                "from_bytes": from_bytes,
                "split_bytes": sizes.split_bytes,
                "whole_bytes": sizes.whole_bytes,
            },
            usual="from_bytes",
            more={
                "from_bytes": {
                    "notes": tuple(
                        _REQUESTED
                        if request_bytes is not None and low <= request_bytes < 2 * low
                        else ""
                        for low in from_bytes
                    )
                },
                "split_bytes": {"notes": _times(sizes.num_split), "longest": longest},
                "whole_bytes": {"notes": _times(sizes.num_whole), "longest": longest},
            },
        ),
        "Free blocks by size",
        empty="No block is free.",
    )


def _times(counts: Ints) -> tuple[str, ...]:
    return tuple(
        f"\N{MULTIPLICATION SIGN} {num:,}" if num else "" for num in counts.tolist()
    )


def arena_table(device: OpenDevice, arenas: SegmentArenas) -> TableRows:
    """Memory by pool, stream and size class: the one with most reserved first."""
    history = device.history
    names = []
    for pool, stream, is_large in zip(
        arenas.pool.tolist(),
        arenas.stream.tolist(),
        arenas.is_large.tolist(),
        strict=True,
    ):
        parts = ["large" if is_large else "small"]
        if len(history.stream_labels) > 1:
            label = history.stream_labels[stream] if stream >= 0 else "?"
            parts.append(f"stream {label}")
        if len(history.pool_labels) > 1:
            label = history.pool_labels[pool] if pool >= 0 else "not recorded"
            parts.append(f"pool {label}")
        names.append(", ".join(parts))
    hints = tuple(
        f"{num_bytes:,} bytes in {counted(num, 'block')}"
        for num_bytes, num in zip(
            arenas.free_bytes.tolist(), arenas.num_free.tolist(), strict=True
        )
    )
    reserved = size_text(int(arenas.reserved_bytes.sum()))
    capacity = history.capacity_of(device.number)
    of_device = "" if capacity is None else f" of {size_text(capacity)}"
    rows = table_of(
        _ARENAS,
        {
            "arena": names,
            "free_bytes": arenas.free_bytes,
            "num_free": arenas.num_free,
            "largest_free_bytes": arenas.largest_free_bytes,
            "releasable_bytes": arenas.releasable_bytes,
            "reserved_bytes": arenas.reserved_bytes,
        },
        usual="reserved_bytes",
        more={"free_bytes": {"hints": hints}},
    )
    return titled(
        rows, "Arenas", f"{reserved} reserved{of_device}", "Nothing is reserved."
    )
