"""The standing of each run, and the order in which a person should see them.

The logdir may hold hundreds of runs, and is polled: so what was read anyway counts, and
of small runs a little more is decoded at each poll.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from memboard.tb_plugin.api.base import RunStanding
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.ranks.columns import OOMS, RSS
from memboard.tb_plugin.facts.ranks.hosts import growing_processes_of
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.ranks.rank_strip import peak_column, strip_of
from memboard.tb_plugin.index.store import is_large

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memboard.tb_plugin.api.base import RunStatus, RunSummary
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.index.run import Run

SECONDS: Final = 0.05
"""Time of one poll for decoding facts of runs that nobody opened."""

_BAD: Final[tuple[RunStatus | None, ...]] = (
    "out_of_memory",
    "leak",
    "stopped",
    "warned",
)
_STOPPED: Final = ("exception", "lost")


def standing_of(
    run: Run,
    summary: RunSummary,
    reader: FactsReader,
    budget: Budget,
    worst_finding: Callable[[Budget], str | None],
) -> tuple[RunStanding, bool]:
    """What is known of a run now, and whether that is all there is; hold its lock.

    Peak and growth are of what was read so far, once each rank was read, as on the
    Overview. `worst_finding` returns the title of one beside errors, empty where there is
    none, and None where that is not known within a budget.
    """
    if run.made_of != "recording":
        return RunStanding(summary.id, None, None), False
    numbers = RankNumbers(reader, run, budget if run.is_whole else Budget(-1.0))
    ranks = run.ranks
    is_read = numbers.are_whole(run)
    # Numbers of an earlier look are not cached as those of the run's version now.
    is_known = is_read and numbers.are_current(ranks) and not run.unfinished
    ooms = numbers.total(ranks, OOMS)
    status: RunStatus | None = None
    finding = ""
    if run.notes.events("oom") or np.nansum(ooms) > 0:
        status = "out_of_memory"
    elif is_read and _leaks(run, ranks, numbers):
        status = "leak"
    elif summary.live or (run.attempts and run.attempts[-1].ended == "running"):
        status = "live"  # a rank writes on, whichever has closed already
    elif run.attempts and not run.unfinished and run.attempts[-1].ended in _STOPPED:
        status = "stopped"
    elif is_known and not summary.num_problems:
        title = worst_finding(Budget(-1.0) if is_large(run) else budget)
        if title is not None:
            status, finding = ("warned", title) if title else ("fine", "")
    peaks = numbers.highest(ranks, peak_column(run, numbers)).value
    peak = finite(np.nanmax(peaks)) if is_read and not np.isnan(peaks).all() else None
    is_final = is_known and peak is not None and status is not None
    return RunStanding(summary.id, status, peak, finding), is_final


def while_reading(standing: RunStanding, before: RunStanding) -> RunStanding:
    """Until each rank was read, also one that is new, peak and leak stay as they were."""
    is_leak = before.status == "leak" and standing.status in (None, "live")
    peak = standing.peak_bytes
    return replace(
        standing,
        status=before.status if is_leak else standing.status,
        peak_bytes=before.peak_bytes if peak is None else peak,
    )


def by_need(
    standings: Iterable[RunStanding], runs: Iterable[RunSummary]
) -> tuple[RunStanding, ...]:
    """The newest day first, of a day the worst run, of equals the newest."""
    last_ms = {run.id: run.last_ms for run in runs}

    def need(standing: RunStanding) -> tuple[int, int, float]:
        newest = last_ms[standing.run]
        day = (
            datetime.fromtimestamp(newest / 1e3, timezone.utc).astimezone().toordinal()
        )
        bad = _BAD.index(standing.status) if standing.status in _BAD else len(_BAD)
        return -day, bad, -newest

    return tuple(sorted(standings, key=need))


def _leaks(run: Run, ranks: Sequence[int], numbers: RankNumbers) -> bool:
    """As the finding about it says."""
    if peak_column(run, numbers) == RSS:
        processes = growing_processes_of(run, numbers.last_of(ranks), RSS)
        return any(process.is_soon for process in processes)
    growing = strip_of(run, ranks, numbers).growing_ranks()
    return any(rank.is_soon for rank in growing)
