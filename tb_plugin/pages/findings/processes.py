"""Errors of several snapshots, by the process that made them.

A program that tries again writes a snapshot at each error, and each tells of the errors
before it as well, unless its history was cleared. Files that share an error, or a rank,
are of one process; its last error is the one that may have ended it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.analysis.oom.errors import HistoryErrors, OomError
    from tb_plugin.jobs.history_list import FoundHistory


class ErrorOfFile(NamedTuple):
    """One error and the file that tells of it."""

    history: FoundHistory
    error: OomError


@dataclass(slots=True)
class Process:
    """The errors of one process."""

    errors: list[ErrorOfFile] = field(default_factory=list)
    """Each once, in order of time, from the file that goes on longest behind it."""
    num_errors: int = 0
    """All there were, also those that were not judged."""


def processes(
    judged: Sequence[tuple[FoundHistory, HistoryErrors]],
) -> list[Process]:
    """The errors of some files, by process."""
    found: list[Process] = []
    of_error: dict[tuple[object, ...], Process] = {}
    of_rank: dict[object, Process] = {}
    told: dict[tuple[object, ...], ErrorOfFile] = {}
    for history, errors in judged:
        if not errors.errors:
            continue
        keys = [_key(history, error) for error in errors.errors]
        rank = history.reference.rank
        known = [of_error[key] for key in keys if key in of_error]
        if rank is not None and rank in of_rank:
            known.append(of_rank[rank])
        process = known[0] if known else Process()
        if not known:
            found.append(process)
        num_new = sum(key not in told for key in keys)
        process.num_errors += num_new + errors.num_errors - len(keys)
        if rank is not None:
            of_rank[rank] = process
        for key, error in zip(keys, errors.errors, strict=True):
            of_error[key] = process
            before = told.get(key)
            if before is None or error.num_later > before.error.num_later:
                told[key] = ErrorOfFile(history, error)
    for key, one in told.items():
        of_error[key].errors.append(one)
    for process in found:
        process.errors.sort(key=_when)
    return found


def _key(history: FoundHistory, error: OomError) -> tuple[object, ...]:
    """The same for one error in two files; without a time no other file's is."""
    asked = error.case.facts.requested_bytes
    if error.time_us is None:
        return (history.key, error.device, error.event)
    return (history.reference.rank, error.device, error.time_us, asked)


def _when(one: ErrorOfFile) -> tuple[float, float, int, int]:
    time_us = one.error.time_us
    return (
        -1.0 if time_us is None else float(time_us),
        one.history.reference.time_ms,
        one.error.device,
        one.error.event,
    )
