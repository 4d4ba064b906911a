"""Routes of a recorded run: it is brought up to date, and its lock is held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.series.selection import RanksQuery, prefetcher
from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.index.store import CHECK_SECONDS, REQUEST_SECONDS
from memboard.tb_plugin.server.routes import Q, RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.contract.parameters import Query
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.rank_file import RankFile

    V = TypeVar("V", bound=Callable[..., object])


class Stamped(Protocol):
    """Something with a stamp: another one where it is something else."""

    @property
    def stamp(self) -> tuple[object, ...]: ...


def whole() -> float:
    """Seconds of a view that takes as long as any request may."""
    return REQUEST_SECONDS


def of_run(
    name: str,
    query: type[Q],
    *,
    first: Callable[[RunReaders, Q], Stamped] | None = None,
    reads: Callable[[RunReaders], tuple[Any, ...]] = lambda _: (),
    prefetches: Literal["series", "facts"] | None = None,
    seconds: Callable[[], float] | None = whole,
    comes_again: bool = True,
    version: Callable[[RunReaders], object] = lambda _: None,
) -> Callable[[V], V]:
    """Declare a view as the route `name`.

    It is called with a `View`, what was read `first`, and what it `reads` beside series.

    Args:
        name: of the route.
        query: its parameters.
        first: what takes time before the run's lock is held, and decides the answer.
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
            before = () if first is None else (first(state, query),)
            stamps = [stamped.stamp for stamped in before]
            prefetch = _prefetch(state, prefetches, query)
            with state.reading(query.run, REQUEST_SECONDS, prefetch) as reading:
                run = reading.run
                if prefetches == "facts":
                    # A little at each poll, so that damage inside is named soon.
                    rank = query.rank if isinstance(query, RanksQuery) else None
                    run.check(Budget(CHECK_SECONDS), rank=rank)
                asked.decided_by(run.version, version(state), *stamps)
                faults = run.num_faults
                budget = reading.budget if seconds is None else Budget(seconds())
                summary = state.summary(run)
                seen = View(state.store.series, run, summary, query, budget)
                made = view(seen, *before, *reads(state))
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
