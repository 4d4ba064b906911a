"""The standing of each run, and the order in which a person should see them.

The logdir may hold hundreds of runs, and is polled: so what was read anyway counts, and
of small runs a little more is decoded at each poll.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from memboard.tb_plugin.api.base import RunStanding
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.ranks.hosts import growing_processes_of
from memboard.tb_plugin.facts.ranks.rank_facts import ALLOCATED, OOMS, RSS
from memboard.tb_plugin.facts.series.selection import capacity_of
from memboard.tb_plugin.index.store import SMALL_RUN_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from memboard.tb_plugin.api.base import RunStatus, RunSummary
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader, FileFacts
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
) -> RunStanding:
    """What is known of a run now; hold its lock.

    `worst_finding` returns the title of one beside errors, empty where there is none, and
    None where that is not known within a budget.
    """
    if run.made_of != "recording":
        return RunStanding(summary.id, None, None)
    is_small = run.is_whole and len(run.files) <= SMALL_RUN_FILES
    allowed = budget if is_small else Budget(-1.0)
    facts = {
        rank: reader.within(file, allowed)
        for attempt in run.attempts
        for rank, file in attempt.files.items()
    }
    known = {rank: one for rank, one in facts.items() if one is not None}
    is_known = bool(known) and len(known) == len(facts) and not run.unfinished
    peaks = [
        reading.value
        for one in known.values()
        if (reading := one.readings.get(ALLOCATED) or one.readings.get(RSS))
    ]
    status: RunStatus | None = None
    finding = ""
    if run.notes.events("oom") or any(map(_ran_out, known.values())):
        status = "out_of_memory"
    elif is_known and _leaks(run, known):
        status = "leak"
    elif summary.live or (run.attempts and run.attempts[-1].ended == "running"):
        status = "live"  # a rank writes on, whichever has closed already
    elif run.attempts and not run.unfinished and run.attempts[-1].ended in _STOPPED:
        status = "stopped"
    elif is_known and not summary.num_problems:
        title = worst_finding(allowed)
        if title is not None:
            status, finding = ("warned", title) if title else ("fine", "")
    peak = max(peaks, default=None) if is_known else None
    return RunStanding(summary.id, status, peak, finding)


def while_reading(standing: RunStanding, before: RunStanding) -> RunStanding:
    """Until all that a run wrote since `before` is read, its peak and its leak stay."""
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
    last_ms = {one.id: one.last_ms for one in runs}

    def need(one: RunStanding) -> tuple[int, int, float]:
        newest = last_ms[one.run]
        day = (
            datetime.fromtimestamp(newest / 1e3, timezone.utc).astimezone().toordinal()
        )
        bad = _BAD.index(one.status) if one.status in _BAD else len(_BAD)
        return -day, bad, -newest

    return tuple(sorted(standings, key=need))


def _ran_out(facts: FileFacts) -> bool:
    errors = facts.readings.get(OOMS)
    return errors is not None and errors.value > 0


def _leaks(run: Run, known: Mapping[int, FileFacts]) -> bool:
    """As the finding about it says."""
    if not any(ALLOCATED in one.readings for one in known.values()):
        return any(one.is_soon for one in growing_processes_of(run, known, RSS))
    limit = capacity_of(run, known, "device").size_bytes
    return any(
        (grows := one.growing(rank, one.readings[ALLOCATED].value, limit)) is not None
        and grows.is_soon
        for rank, one in known.items()
        if ALLOCATED in one.readings
    )
