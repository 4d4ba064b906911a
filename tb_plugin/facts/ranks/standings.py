"""The standing of each run, and the order in which a person should see them.

The logdir may hold a thousand runs, and is polled: so what was read anyway counts, a little
more is decoded at each poll, and what is decided stays until the run changes.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from memboard.tb_plugin.api.base import RunStanding
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.ranks.columns import OOMS, RSS
from memboard.tb_plugin.facts.ranks.hosts import growing_processes_of
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.ranks.rank_strip import peak_column, strip_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memboard.tb_plugin.api.base import RunStatus, RunSummary
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.index.run import Run

SECONDS: Final = 0.1
"""Time of one poll for what decides the standing of runs that nobody opened."""

_BAD: Final[tuple[RunStatus | None, ...]] = (
    "out_of_memory",
    "leak",
    "stopped",
    "warned",
)
_STOPPED: Final = ("exception", "lost")


class Verdict(NamedTuple):
    """What the findings beside errors make of a run."""

    status: RunStatus | None
    """None: its machine was overloaded, so that nobody can say that nothing is wrong."""
    finding: str = ""
    """Title of the worst one."""


VerdictReader: TypeAlias = "Callable[[Run, RunSummary, Budget], Verdict | None]"
"""None: it is not known within the budget; the next call goes on. The lock is held."""


class _Look(NamedTuple):
    run_version: int
    standing: RunStanding
    is_final: bool
    """Whether only a change of the run changes it."""
    num_tries: int = 0
    """Verdicts that their budget did not suffice for."""


class Standings:
    """How runs stand. Safe for threads."""

    def __init__(self, facts: FactsReader, verdict: VerdictReader) -> None:
        self._facts = facts
        self._verdict = verdict
        self._looks: dict[str, _Look] = {}
        self._first = ""
        """The run that comes first at the next look, by its id."""

    def note(self, run_id: str, version: int, standing: RunStanding) -> None:
        """Take what is known of that version of a run by other means."""
        self._looks[run_id] = _Look(version, standing, is_final=True)

    def look(
        self, runs: Sequence[tuple[Run, RunSummary]], seconds: float
    ) -> list[RunStanding]:
        """How each run stands now.

        Those that are not decided take turns: each look decides at least one of them, a
        large one after a few turns.
        """
        budget, next_first = Budget(seconds), ""
        standings: dict[str, RunStanding] = {}
        ids = [summary.id for _, summary in runs]
        start = ids.index(self._first) if self._first in ids else 0
        for run, summary in (*runs[start:], *runs[:start]):
            with run.lock:
                look = self._looks.get(summary.id)
                is_current = look is not None and look.run_version == run.version
                if look is None or not (is_current and look.is_final):
                    may_read = budget.allows()
                    if not (may_read or next_first):
                        next_first = summary.id
                    # What changed may be over: that costs next to nothing.
                    if look is None or may_read or not is_current:
                        look = self._looked(run, summary, look, budget)
                        self._looks[summary.id] = look
                standings[summary.id] = look.standing
        self._first = next_first
        return [standings[run_id] for run_id in ids]

    def _looked(
        self, run: Run, summary: RunSummary, before: _Look | None, budget: Budget
    ) -> _Look:
        version = run.version
        is_same = before is not None and before.run_version == version
        num_tries = before.num_tries if before is not None and is_same else 0

        def verdict() -> Verdict | None:
            nonlocal num_tries
            if not budget.allows():
                return None
            num_tries += 1
            return self._verdict(run, summary, Budget(SECONDS * num_tries))

        standing, is_final = standing_of(run, summary, self._facts, budget, verdict)
        if before is not None and standing.peak_bytes is None:
            standing = while_reading(standing, before.standing)
        return _Look(version, standing, is_final, num_tries)


def standing_of(
    run: Run,
    summary: RunSummary,
    reader: FactsReader,
    budget: Budget,
    verdict_of: Callable[[], Verdict | None],
) -> tuple[RunStanding, bool]:
    """What is known of a run now, and whether that is all there is; hold its lock.

    Peak and growth are of what was read so far, once each rank was read, as on the
    Overview.
    """
    if run.made_of != "recording":
        return RunStanding(summary.id, None, None), False
    numbers = RankNumbers(reader, run, budget if run.is_whole else Budget(-1.0))
    ranks = run.ranks
    is_read = numbers.are_whole(run)
    # Numbers of an earlier look are not cached as those of the run's version now.
    is_known = is_read and numbers.are_current(ranks) and not run.unfinished
    ooms = numbers.total(ranks, OOMS)
    verdict: Verdict | None = None
    status: RunStatus | None = None
    if run.notes.events("oom") or np.nansum(ooms) > 0:
        status = "out_of_memory"
    elif is_read and _leaks(run, ranks, numbers):
        status = "leak"
    elif summary.live or (run.attempts and run.attempts[-1].ended == "running"):
        status = "live"  # a rank writes on, whichever has closed already
    elif run.attempts and not run.unfinished and run.attempts[-1].ended in _STOPPED:
        status = "stopped"
    elif is_known and not summary.num_problems:
        verdict = verdict_of()
        is_known = verdict is not None
    if verdict is None:
        verdict = Verdict(status)
    peaks = numbers.highest(ranks, peak_column(run, numbers)).value
    peak = finite(np.nanmax(peaks)) if is_read and not np.isnan(peaks).all() else None
    return RunStanding(summary.id, verdict.status, peak, verdict.finding), is_known


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
