"""Routes of a run's open traces: of a profile, of tracks, of one row.

They are made of what is open alone. A profile that is still being opened is answered too:
the answer says which it is and how far, and the page asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from memboard.tb_plugin.analysis.trace.build import EMPTY_TRACE
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.contract.errors import BadRequestError
from memboard.tb_plugin.facts.traces.axis import COUNTERS, PlacedSource, TracksQuery
from memboard.tb_plugin.facts.traces.profiled import SourceQuery, shown
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.time.profile import ProfileChoice
    from memboard.tb_plugin.facts.traces.run_traces import RowQuery


S = TypeVar("S", bound=SourceQuery)

View: TypeAlias = "Callable[[RunSummary, ProfileChoice, TraceProfile, S], object]"

_EMPTY: Final = TraceProfile(EMPTY_TRACE)


def of_profile(name: str, query: type[S]) -> Callable[[View[S]], View[S]]:
    """Declare a view of a profiled trace as the route `name`; empty while it is opened."""

    def declare(view: View[S]) -> View[S]:
        @route(name, query)
        def answer(asked: RouteRequest[S]) -> object:
            chosen = shown(asked.state, asked.query)
            asked.decided_by(*chosen.stamp)
            profile = chosen.profile
            choice = chosen.choice(asked.query)
            return view(chosen.run, choice, profile or _EMPTY, asked.query)

        return view

    return declare


def places_of(asked: RouteRequest[TracksQuery]) -> dict[str, PlacedSource]:
    """What a picture of tracks is made of, by source.

    Raises:
        RequestError: a source is not there, or not open.
        HeldError: the client holds the answer already.
    """
    query, traces = asked.query, asked.state.traces
    ids = [source_id for source_id, _ in query.tracks]
    listed = traces.listed(query.run)
    places = traces.places(query.run, listed, ids)
    numbers = any(source_id.startswith(COUNTERS) for source_id in ids)
    asked.decided_by(*_stamp(places), listed.version if numbers else 0)
    return places


def row_of(asked: RouteRequest[RowQuery]) -> tuple[PlacedSource, int]:
    """The source of a row, and the row.

    Raises:
        RequestError: they are not named, or the source is not there, or not open.
        HeldError: the client holds the answer already.
    """
    query, traces = asked.query, asked.state.traces
    if query.source is None or query.row is None:
        raise BadRequestError(
            "A source and a row must be given.", "source, row", "Reload the page."
        )
    places = traces.places(query.run, traces.listed(query.run), [query.source])
    asked.decided_by(*_stamp(places))
    return places[query.source], query.row


def _stamp(places: dict[str, PlacedSource]) -> tuple[object, ...]:
    placed_sources = list(places.values())
    return [place.source.found.key for place in placed_sources], [
        place.zero_ns for place in placed_sources
    ]
