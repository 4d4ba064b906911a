"""Sections of a report about modules, functions and snapshots of the allocator."""

from __future__ import annotations

import math
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.memory import NOUNS
from memboard.collector.format.sizes import bytes_text, counted, time_text
from memboard.tb_plugin.analysis.text_tables import Column, Table
from memboard.tb_plugin.cli.report.document import Section
from memboard.tb_plugin.cli.report.reading import SHOWN_STATS
from memboard.tb_plugin.facts.histories.description import unread_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from memboard.tb_plugin.api.findings import HeldBy
    from memboard.tb_plugin.api.memory.calls import FunctionsResponse
    from memboard.tb_plugin.api.memory.modules import ModulesResponse
    from memboard.tb_plugin.cli.report.reading import RunReport, Snapshot
    from memboard.tb_plugin.facts.histories.figures import (
        AnnotationFigures,
        DeviceFigures,
    )

MAX_ROWS: Final = 20
"""Ranks, modules and calls that are listed, the largest or newest."""
_MAX_SNAPSHOTS: Final = 3
"""Snapshots that are printed in full; of the others one row."""
_MAX_OOMS: Final = 4
"""Failed allocations whose sizes are printed."""


def _site_text(site: HeldBy) -> str:
    label = site.label or "no stack trace"
    return f"{label}, freed and pending" if site.is_pending else label


SITES: Final[Sequence[Column[HeldBy]]] = (
    Column("allocation site at the peak", _site_text),
    Column("size", lambda row: bytes_text(row.bytes)),
    Column("share", lambda row: f"{row.share:.1%}"),
    Column("category", lambda row: NOUNS[row.category or "unknown"], is_text=True),
    Column("blocks", lambda row: f"{row.num_blocks:,}"),
)
ANNOTATIONS: Final[Sequence[Column[AnnotationFigures]]] = (
    Column("annotation at the peak", lambda row: row.text),
    Column("size", lambda row: bytes_text(row.bytes)),
    Column("blocks", lambda row: f"{row.num_blocks:,}"),
)
SNAPSHOTS: Final[Sequence[Column[tuple[Snapshot, DeviceFigures]]]] = (
    Column("snapshot", lambda row: _snapshot_name(row[0])),
    Column("device", lambda row: str(row[1].device)),
    Column("peak", lambda row: bytes_text(row[1].peak_active_bytes)),
    Column("reserved", lambda row: bytes_text(row[1].reserved_bytes)),
    Column("largest free", lambda row: bytes_text(row[1].largest_inactive_block_bytes)),
)
MODULES: Final[Sequence[Column[Mapping[str, Any]]]] = (
    Column("module", lambda row: row["module"]),
    Column("held", lambda row: bytes_text(row["held"])),
    Column("own", lambda row: bytes_text(row["own"])),
    Column("rank's total", lambda row: bytes_text(row["total"])),
    Column("mostly", lambda row: _largest(row["categories"]), is_text=True),
)


def modules_section(report: RunReport) -> Section | None:
    """The last complete window, the modules that hold most first."""
    answer = report.modules
    if answer is None:
        return None
    rows = list(_module_rows(answer))
    facts = answer.facts
    peak = None if facts is None else facts.window_peak_bytes
    section = Section(
        f"modules: {answer.window} on rank {answer.rank}, {answer.device},"
        f" {answer.state}; peak of the tracked step {bytes_text(peak)};"
        f" {counted(len(rows), 'module')}"
    )
    for window in report.passed_over[:1]:
        section.add(f"the last complete one: {window} came after it and ended early")
    if facts is not None and facts.estimate:
        section.add(f"{facts.estimate}: what ran may differ")
    if facts is not None and facts.incomplete:
        reasons = "; ".join(facts.reasons) or "the reason is not known"
        section.add(f"incomplete: {reasons}")
    if facts is not None and facts.num_events_dropped:
        section.add(f"{counted(facts.num_events_dropped, 'event')} dropped")
    if split := answer.split:
        section.add(
            f"at that moment modules hold {bytes_text(split.held_bytes)} of the"
            f" {bytes_text(split.total_bytes)} that the call tracked;"
            f" {bytes_text(split.unattributed_bytes)} not attributed"
        )
    by = "held"
    columns = [column for column in MODULES if column.title != "rank's total"]
    if all(row["held"] is None for row in rows):  # a report of another tool
        by = "total"
        columns = [column for column in MODULES if column.title not in ("held", "own")]
    rows.sort(key=lambda row: -(row[by] or 0))
    section.add(Table(columns, list(_folded(rows))[:MAX_ROWS]))
    return section


def _folded(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Equal layers as one row: `32 x Transformer.layers.*`, with the figures of each."""

    def alike(row: dict[str, Any]) -> tuple[Any, ...]:
        pattern = re.sub(r"(?<=\.)\d+(?=\.|$)", "*", row["module"])
        return pattern, *(row[key] for key in ("held", "own", "total", "categories"))

    # Those of equal size are neighbours, though in the order of the model.
    for _, same_size in groupby(rows, lambda row: alike(row)[1:]):
        by_name: dict[str, list[dict[str, Any]]] = {}
        for row in same_size:
            by_name.setdefault(alike(row)[0], []).append(row)
        for pattern, layers in by_name.items():
            many = {"module": f"{len(layers)} x {pattern}"} if len(layers) > 1 else {}
            yield {**layers[0], **many}


def _module_rows(answer: ModulesResponse) -> Iterator[dict[str, Any]]:
    """Modules with values, by their full names."""
    values = {column.key: values_of(column.numbers) for column in answer.table.columns}
    names = [category.name for category in answer.categories]
    for row, total in enumerate(values.get("rank_total_bytes", ())):
        if total is not None:
            yield {
                "module": answer.tree.fqn[row],
                "held": values["held_bytes"][row],
                "own": values["own_bytes"][row],
                "total": total,
                "categories": {name: values[f"{name}_bytes"][row] for name in names},
            }


def _largest(sizes: Mapping[str, float | None]) -> str:
    size_and_name = [(size, category) for category, size in sizes.items() if size]
    size_and_name.sort(key=lambda pair: -pair[0])
    return ", ".join(
        f"{NOUNS.get(category, category)} {bytes_text(size)}"
        for size, category in size_and_name[:2]
    )


def function_section(answer: FunctionsResponse) -> Section:
    """The newest calls of a function."""
    section = Section(
        f"{answer.function} ({answer.phase}): {counted(answer.num_calls, 'call')} on"
        f" rank {answer.rank}"
    )
    iterations = values_of(answer.calls.iteration)
    rows = range(max(0, len(iterations) - MAX_ROWS), len(iterations))
    columns: list[Column[int]] = [Column("call", lambda row: str(iterations[row]))]
    values = {column.key: column.numbers for column in answer.table.columns}
    labels = {stat.name: stat.label for stat in answer.stats}
    for statistic in answer.shown:
        if statistic not in SHOWN_STATS:
            continue
        end, difference = (
            values_of(values[f"{statistic}:{side}"]) for side in ("end", "difference")
        )
        if any(end[row] is not None for row in rows):
            columns += [
                Column(labels[statistic], _cell(end, bytes_text)),
                Column("+/-", _cell(difference, _signed)),
            ]
    if len(columns) > 1:
        section.add(Table(columns, rows))
    return section


def snapshot_sections(snapshots: Sequence[Snapshot]) -> Iterator[Section]:
    """Those that ran out of memory or peaked highest in full, the others as rows."""
    read = [snapshot for snapshot in snapshots if snapshot.problem is None]
    read.sort(key=_weight, reverse=True)
    shown = read[:_MAX_SNAPSHOTS]
    for snapshot in snapshots:
        if snapshot.problem is not None or snapshot in shown:
            yield _snapshot_section(snapshot)
    rows = [
        (snapshot, device)
        for snapshot in snapshots
        if snapshot.problem is None and snapshot not in shown
        for device in snapshot.devices
    ]
    if rows:
        section = Section(f"{counted(len(read) - len(shown), 'more snapshot')}")
        section.add(Table(SNAPSHOTS, rows))
        section.add("--rank N prints those of one rank in full, --json prints all")
        yield section


def _weight(snapshot: Snapshot) -> tuple[bool, int]:
    peaks = [device.peak_active_bytes for device in snapshot.devices]
    return any(device.oom for device in snapshot.devices), max(peaks, default=0)


def _snapshot_section(snapshot: Snapshot) -> Section:
    """The most important figures of each of its devices."""
    section = Section(f"snapshot {_snapshot_name(snapshot)}")
    if snapshot.problem is not None:
        section.add(f"not read: {snapshot.problem.what}")
    elif not snapshot.devices:
        section.add("It holds no segments and no events of any device.")
    for device in snapshot.devices:
        section.add(_device_section(f"device {device.device}", device))
    if snapshot.pinned_host_memory is not None:
        title = "pinned host memory, which is no memory of a device"
        section.add(_device_section(title, snapshot.pinned_host_memory))
    if snapshot.not_read:
        section.add(f"not read: {unread_text(snapshot.not_read)}")
    return section


def _device_section(title: str, device: DeviceFigures) -> Section:
    section = Section(title, list(_device_lines(device)))
    if device.holders:
        section.add(Table(SITES, device.holders))
    if device.annotations:
        section.add(Table(ANNOTATIONS, device.annotations))
    section.add(*(f"not recorded: {text}" for text in device.not_recorded))
    return section


def _snapshot_name(snapshot: Snapshot) -> str:
    """A file's path below the logdir; of a capture what it was taken for."""
    history = snapshot.history
    if history.path:
        return history.path
    step = "" if history.step is None else f"step {history.step:,}"
    parts = (f"rank {history.rank}", history.title, step)
    return ", ".join(filter(None, parts))


def _device_lines(device: DeviceFigures) -> Iterator[str]:
    yield f"peak: {_peak(device)}"
    segments = counted(device.num_segments, "segment")
    of = (
        ""
        if device.capacity_bytes is None
        else f" of {bytes_text(device.capacity_bytes)}"
    )
    yield (
        f"reserved: {bytes_text(device.reserved_bytes)} in {segments},"
        f" at most {bytes_text(device.peak_reserved_bytes)}{of}"
    )
    yield f"allocated: {bytes_text(device.allocated_bytes)}"
    yield f"largest free block: {bytes_text(device.largest_inactive_block_bytes)}"
    if device.oom:
        sizes = ", ".join(bytes_text(error["size"]) for error in device.oom[:_MAX_OOMS])
        more = len(device.oom) - _MAX_OOMS
        yield f"failed allocations: {sizes}" + (f" and {more} more" if more > 0 else "")
    if categories := device.categories_bytes:
        texts = [
            f"{NOUNS[category]} {bytes_text(size)}"
            for category, size in categories.items()
        ]
        requested = device.peak_active_bytes - device.rounding_bytes
        if bytes_text(requested) != bytes_text(device.peak_active_bytes):
            texts.append(f"rounding {bytes_text(device.rounding_bytes)}")
        yield f"categories at the peak: {', '.join(texts)}"


def _peak(device: DeviceFigures) -> str:
    """`1.66 GiB active, at event 11,206 of 23,105 (step 3)`."""
    size = bytes_text(device.peak_active_bytes)
    if not device.num_events:
        return f"{size} active; earlier peaks are not recorded"
    event = device.peak_active_event
    when = f"at event {event + 1:,} of {device.num_events:,}"
    if device.num_events == 1:
        when = "at the only event"
    if event < 0:
        when = "before the first event"
    where = []
    if device.peak_active_step is not None:
        where.append(f"step {device.peak_active_step}")
    if device.peak_active_ms is not None:
        where.append(time_text(device.peak_active_ms))
    return f"{size} active, {when}" + (f" ({', '.join(where)})" if where else "")


def values_of(column: npt.NDArray[np.generic]) -> list[Any]:
    """A column's numbers; None where nothing was recorded."""
    return [None if math.isnan(value) else value for value in column.tolist()]


def _cell(
    values: Sequence[float | None], text: Callable[[float | None], str]
) -> Callable[[int], str]:
    return lambda row: text(values[row])


def _signed(size: float | None) -> str:
    return bytes_text(size) if size is None or size < 0 else f"+{bytes_text(size)}"
