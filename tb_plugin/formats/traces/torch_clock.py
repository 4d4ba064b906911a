"""Since when torch's events count, where their file does not say it.

Composer's `JSONTraceHandler` copies torch's events, which count from a moment of torch's,
beside its own, which count from 1970, and leaves `baseTimeNanoseconds` out. Torch takes
the last multiple of a quarter of a year before the process began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.columns.details import Growing
    from memboard.tb_plugin.formats.traces.columns.gathering import Gathering

RELATIVE_BELOW_NS: Final = 8 * 10**15
"""Torch writes times since a moment at most three months ago; other times are since
1970."""

_PERIOD_NS: Final = 7_889_238 * 10**9


def base_at(time_ns: int) -> int:
    """What torch's times count from in a process that began at a time since 1970."""
    return time_ns // _PERIOD_NS * _PERIOD_NS


def join_clocks(gathered: Gathering) -> int | None:
    """Move torch's events to the clock of the others, in a file that says no base.

    Returns:
        What was added to their times; None where nothing was: all events are of one
        clock, or torch's would not lie among the others.
    """
    columns = [times for _, _, times in _columns(gathered)]
    times = np.concatenate(columns) if columns else np.empty(0, np.int64)
    is_relative = times < RELATIVE_BELOW_NS
    if is_relative.all() or not is_relative.any():
        return None
    own, since_1970 = times[is_relative], times[~is_relative]
    first, last = int(since_1970.min()), int(since_1970.max())
    base = base_at(first)
    # The process may have begun in the quarter before.
    for base_ns in (base, base - _PERIOD_NS):
        if own.min() + base_ns <= last and own.max() + base_ns >= first:
            _move(gathered, base_ns)
            return base_ns
    return None


def _columns(gathered: Gathering) -> Iterator[tuple[Growing, str, npt.NDArray[Any]]]:
    """Every table that has rows, with the name and the values of its times."""
    tables = (gathered.slices, gathered.edges, gathered.instants, gathered.memory)
    for table in (*tables, gathered.flows):
        if len(table):
            column = "start_ns" if table is gathered.slices else "time_ns"
            yield table, column, table.peek(column)


def _move(gathered: Gathering, base_ns: int) -> None:
    for table, column, times in list(_columns(gathered)):
        table.put(column, np.where(times < RELATIVE_BELOW_NS, times + base_ns, times))
    for points, _ in gathered.points.values():
        points[:] = [
            time_ns + base_ns if time_ns < RELATIVE_BELOW_NS else time_ns
            for time_ns in points
        ]
