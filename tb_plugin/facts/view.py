"""A recorded run as a request sees it, and what its files say of how it was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from memboard.tb_plugin.analysis.findings.conditions import Setup, recorded_setup
from memboard.tb_plugin.api.overview import SourceStatus

if TYPE_CHECKING:
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.contract.parameters import Query
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run


Q_co = TypeVar("Q_co", bound="Query", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class View(Generic[Q_co]):
    """What a picture of a run is made of; its lock is held."""

    series: SeriesReader
    run: Run
    summary: RunSummary
    query: Q_co
    budget: Budget


def why_absent(
    run: Run,
    *sources: str,
    reason: str = "",
    remedy: str = "",
    cost: str = "",
) -> tuple[SourceStatus, ...]:
    """What ranks say of sources that they did not record; else the `reason`, if any.

    `sources`: with the parts of each; the first one is what is absent for that reason.
    """
    statuses = tuple(
        status
        for status in run.catalogue.recorded()
        if status.source.partition(".")[0] in sources and status.status != "recorded"
    )
    if statuses or not reason:
        return statuses
    return (SourceStatus(sources[0], "off", len(run.ranks), reason, remedy, cost),)


def setup_of(run: Run, rank: int | None = None) -> Setup:
    """How a run's processes ran, by the header of the last one; of one rank alone."""
    files = [
        file
        for attempt in run.attempts
        for number, file in attempt.files.items()
        if rank in (None, number)
    ]
    if not files:
        return Setup()
    header = files[-1].header
    return recorded_setup(header.device_type, header.versions, header.config)


def loader_workers(run: Run, rank: int) -> int | None:
    """Worker processes of the DataLoader that a rank's last training waited for.

    None: not recorded, or of several DataLoaders, each with another number.
    """
    files = run.rank_files(rank)
    attempt = files[-1][1].attempt if files else ""
    noted = {
        num
        for event in run.notes.events("loading")
        if (event.rank, event.attempt) == (rank, attempt)
        and type(num := event.data.get("num_workers")) is int
    }
    return noted.pop() if len(noted) == 1 else None
