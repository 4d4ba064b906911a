"""How far each rank's clock is from the reference's, by Composer's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.analysis.ranks.clock_line import SAME, Reading, clock_line
from tb_plugin.analysis.ranks.clocks import RankClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_plugin.merging.heads import ClockSync

_LEAST_ERROR_US: Final = 1
"""Composer cuts times to whole microseconds."""


def composer_clocks(
    syncs: Mapping[int, Mapping[str, ClockSync]],
) -> dict[int, RankClock]:
    """By rank, from the clock syncs of Composer's files by rank and cycle.

    The lowest rank is the reference. Both ranks read their clocks after the first barrier
    of the pair let the last of them in and before the second let the first out: each
    rank's own bound holds for both, so the smaller one does.
    """
    clocks: dict[int, RankClock] = {}
    if not syncs:
        return clocks
    lowest = min(syncs)
    for rank, of in syncs.items():
        readings = []
        for cycle, sync in of.items():
            base = syncs[lowest].get(cycle)
            if base is not None:
                bounds = [one.bound_us for one in (sync, base) if one.bound_us]
                error = (min(bounds) + _LEAST_ERROR_US) * 1000 if bounds else None
                offset = (base.time_us - sync.time_us) * 1000
                readings.append(Reading(sync.time_us * 1000, offset, error))
        line = clock_line(readings)
        if rank == lowest:
            clocks[rank] = RankClock(SAME, "reference")
        elif line is not None:
            clocks[rank] = RankClock(line, "barriers")
    return clocks
