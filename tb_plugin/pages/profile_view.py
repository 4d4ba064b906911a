"""Routes about the profile of a trace; empty while it is being opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from memboard.tb_plugin.analysis.trace.build import EMPTY_TRACE
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.contract.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.profile import ProfileChoice
from memboard.tb_plugin.facts.traces.profiled import SourceQuery, shown

S = TypeVar("S", bound=SourceQuery)


View: TypeAlias = "Callable[[RunSummary, ProfileChoice, TraceProfile, S], object]"


_EMPTY: Final = TraceProfile(EMPTY_TRACE)


def of_profile(name: str, query: type[S]) -> Callable[[View[S]], View[S]]:
    """Declare a view of a profiled trace as the route `name`; empty while it is opened."""

    def declare(view: View[S]) -> View[S]:
        @route(name, query)
        def answer(asked: RouteRequest[S]) -> object:
            found = shown(asked.state, asked.query)
            asked.decided_by(*found.stamp)
            profile = found.profile
            choice = found.choice(asked.query)
            return view(found.run, choice, profile or _EMPTY, asked.query)

        return view

    return declare
