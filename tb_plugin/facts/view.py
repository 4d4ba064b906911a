"""A recorded run as a request sees it, and what its files say of how it was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from memboard.tb_plugin.analysis.findings.conditions import Setup, recorded_setup
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.routes import Q, Q_co, RouteRequest, route
from memboard.tb_plugin.facts.series.selection import RanksQuery, prefetcher
from memboard.tb_plugin.index.store import CHECK_SECONDS, REQUEST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.contract.parameters import Query
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

    V = TypeVar("V", bound=Callable[..., object])


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


def whole() -> float:
    """Seconds of a view that takes as long as any request may."""
    return REQUEST_SECONDS


def of_run(
    name: str,
    query: type[Q],
    *,
    reads: Callable[[RunReaders], tuple[Any, ...]] = lambda _: (),
    prefetches: Literal["series", "facts"] | None = None,
    seconds: Callable[[], float] | None = whole,
    comes_again: bool = True,
    version: Callable[[RunReaders], object] = lambda _: None,
) -> Callable[[V], V]:
    """Declare a view as the route `name`.

    It is called with a `View`, and what it `reads` beside series.

    Args:
        name: of the route.
        query: its parameters.
        reads: other readers that the view asks.
        prefetches: what is decoded of each file right after it was opened.
        seconds: the view's own, so that a run that takes long to open is shown all the
            same. None: it has what opening left, draws what takes too long more
            coarsely, and finer at one of the next polls.
        comes_again: whether the next poll gets more where its own did not suffice.
        version: what else than the run and the query decides the answer.
    """

    def declare(view: V) -> V:
        @route(name, query)
        def answer(asked: RouteRequest[Q]) -> object:
            state, query = asked.state, asked.query
            prefetch = _prefetch(state, prefetches, query)
            with state.reading(query.run, REQUEST_SECONDS, prefetch) as reading:
                run = reading.run
                if prefetches == "facts":
                    # A little at each poll, so that damage inside is named soon.
                    rank = query.rank if isinstance(query, RanksQuery) else None
                    run.check(Budget(CHECK_SECONDS), rank=rank)
                asked.decided_by(run.version, version(state))
                faults = run.num_faults
                budget = reading.budget if seconds is None else Budget(seconds())
                summary = state.summary(run)
                seen = View(state.store.series, run, summary, query, budget)
                made = view(seen, *reads(state))
                is_short = budget.put_off if seconds is None else budget.exhausted
                if is_short and comes_again:
                    run.expect_more()  # what was read is kept: it comes to an end
                # Reading may have found damage: the next poll shows it.
                run.note_new_faults(faults)
            return made

        return view

    return declare


def _prefetch(
    readers: RunReaders, read_ahead: str | None, query: Query
) -> Callable[[RankFile], object] | None:
    if read_ahead == "facts":
        return readers.facts.of_file
    if read_ahead == "series" and isinstance(query, RanksQuery):
        return prefetcher(readers.store.series, query)
    return None
