"""Snapshots of the allocator in a report: the figures of each, device by device."""

from __future__ import annotations

import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from collector.cli.text import counted, printable, problem_lines, text_table, time_text
from collector.format.sizes import bytes_text
from tb_plugin.cli.report.values import plain
from tb_plugin.jobs.history_list import OwnCapture, listed, of_rank
from tb_plugin.pages.histories.figures import figures_of
from tb_plugin.pages.histories.history import facts_of
from tb_plugin.pages.verdict import report as markdown
from tb_plugin.server.errors import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tb_plugin.index.run import Run
    from tb_plugin.jobs.histories import HistoriesReader, Opening
    from tb_plugin.jobs.history_list import FoundHistory
    from tb_plugin.jobs.open_history import OpenHistory
    from tb_plugin.pages.verdict.judge import HistoryJudge

MAX_CAPTURES: Final = 20
"""Captures of a recording that are opened, the newest; files of other tools all are."""

_POLL_SECONDS: Final = 0.5
_MAX_OOMS: Final = 4
"""Failed allocations whose sizes are printed."""
_HEAD: Final = ("allocation site", "size", "share", "category", "blocks")


def snapshots_section(
    run: Run, rank: int | None, histories: HistoriesReader, judge: HistoryJudge
) -> Iterator[dict[str, Any]]:
    """Every snapshot of all ranks, or of one, by time, with its figures.

    Each is judged while it is open, so that the verdict need not open it again.
    """
    from tb_plugin.cli.recordings import unhurried

    with run.lock:
        found = of_rank(listed(run, unhurried()), rank)
    captures = [one for one in found if isinstance(one.source, OwnCapture)]
    left_out = {one.reference.id for one in captures[:-MAX_CAPTURES]}
    for one in found:
        if one.reference.id in left_out:
            continue
        opening = _opened(run, one, histories)
        judge.ask(run, one, open_it=True, seconds=threading.TIMEOUT_MAX)
        history, problem = opening.history, opening.problem
        yield {
            **plain(one.reference),
            "origin": one.origin,
            "problem": None if problem is None else plain(problem),
            "devices": [] if history is None else _devices(history),
            "settings": {} if history is None else _settings(history),
        }


def _opened(run: Run, found: FoundHistory, histories: HistoriesReader) -> Opening:
    """Wait until it is open, or failed; a terminal shows how far it is."""
    while True:
        try:
            opening = histories.open(run, found)
            break
        except NotReadyError:
            time.sleep(_POLL_SECONDS)
    while not opening.wait(_POLL_SECONDS):
        if sys.stderr.isatty():
            print(
                f"\r{found.reference.path or found.reference.id}:"
                f" {opening.progress:4.0%} {opening.doing}\033[K",
                end="",
                file=sys.stderr,
            )
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return opening


def _settings(history: OpenHistory) -> dict[str, str]:
    """As the page has them: a file may hold any values."""
    found = history.once("facts", partial(facts_of, history)).settings
    return {one.name: one.value for one in found}


def _devices(history: OpenHistory) -> list[dict[str, Any]]:
    return [plain(one) for one in figures_of(history)]


def snapshots_text(snapshots: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The most important figures of each, in units that fit."""
    for one in snapshots:
        yield f"snapshot {printable(name_of(one))}"
        if one["problem"] is not None:
            yield from (f"  {line}" for line in problem_lines(one["problem"]))
        elif not one["devices"]:
            yield "  It holds no segments and no events of any device."
        for device in one["devices"]:
            yield from _device_text(device)


def _device_text(device: Mapping[str, Any]) -> Iterator[str]:
    yield f"  device {device['device']}"
    for name, value in _rows(device):
        yield f"    {name}: {value}"
    if device["holders"]:
        yield "    top allocation sites at the peak:"
        held = _holders(device, lambda number: counted(number, "block"))
        rows = [tuple(map(printable, row)) for row in held]
        yield from (f"    {line}" for line in text_table(_HEAD, rows))
    yield from (f"    not recorded: {text}" for text in device["not_recorded"])


def _holders(
    device: Mapping[str, Any], blocks: Callable[[int], str]
) -> list[tuple[str, ...]]:
    """Who held memory at the peak: cells below `_HEAD`."""
    return [
        (
            one["label"] or "no stack trace",
            bytes_text(one["bytes"]),
            f"{one['share']:.1%}",
            one["category"],
            blocks(one["num_blocks"]),
        )
        for one in device["holders"]
    ]


def snapshots_markdown(snapshots: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The same as Markdown."""
    for one in snapshots:
        yield ""
        yield f"## Snapshot {markdown.plain(name_of(one))}"
        if one["problem"] is not None:
            yield ""
            yield from (
                f"- {markdown.plain(line)}" for line in problem_lines(one["problem"])
            )
        for device in one["devices"]:
            yield ""
            yield from markdown.markdown_table(
                (f"device {device['device']}", ""), _rows(device)
            )
            if device["holders"]:
                yield ""
                rows = _holders(device, "{:,}".format)
                yield from markdown.markdown_table(_HEAD, rows, right=(1, 2, 4))
            if device["not_recorded"]:
                yield ""
                yield "Not recorded:"
                yield ""
                yield from (f"- {text}" for text in device["not_recorded"])


def name_of(snapshot: Mapping[str, Any]) -> str:
    """A file's path below the logdir; of a capture what it was taken for."""
    if snapshot["path"]:
        return str(snapshot["path"])
    words = [
        f"rank {snapshot['rank']}",
        snapshot["label"] or snapshot["function"] or snapshot["origin"],
        snapshot["context"],
    ]
    if snapshot["step"] is not None:
        words.append(f"step {snapshot['step']}")
    return ", ".join(word for word in words if word)


def _peak(device: Mapping[str, Any]) -> str:
    """`1.66 GiB active, at event 11,206 of 23,105 (step 3)`."""
    size = bytes_text(device["peak_active_bytes"])
    if not device["num_events"]:
        return f"{size} active; earlier peaks are not recorded"
    event = device["peak_active_event"]
    where = []
    if device["peak_active_step"] is not None:
        where.append(f"step {device['peak_active_step']}")
    if device["peak_active_ms"] is not None:
        where.append(time_text(device["peak_active_ms"]))
    when = (
        "before the first event"
        if event < 0
        else f"at event {event + 1:,} of {device['num_events']:,}"
    )
    return f"{size} active, {when}" + (f" ({', '.join(where)})" if where else "")


def _rows(device: Mapping[str, Any]) -> list[tuple[str, str]]:
    segments = counted(device["num_segments"], "segment")
    reserved = (
        f"{bytes_text(device['reserved_bytes'])} in {segments},"
        f" at most {bytes_text(device['peak_reserved_bytes'])}"
    )
    if device["capacity_bytes"] is not None:
        reserved += f" of {bytes_text(device['capacity_bytes'])}"
    found = [
        ("peak", _peak(device)),
        ("reserved", reserved),
        ("allocated", bytes_text(device["allocated_bytes"])),
        ("largest free block", bytes_text(device["largest_inactive_block_bytes"])),
    ]
    if device["oom"]:
        sizes = ", ".join(bytes_text(one["size"]) for one in device["oom"][:_MAX_OOMS])
        more = len(device["oom"]) - _MAX_OOMS
        also = f" and {more} more" if more > 0 else ""
        found.append(("failed allocations", sizes + also))
    if categories := device["categories_bytes"]:
        texts = [f"{name} {bytes_text(size)}" for name, size in categories.items()]
        found.append(("categories at the peak", ", ".join(texts)))
    return found
