"""The routes: which there are, what declares one, and how one is answered.

A route, its parameters and what builds its answer stand together, in a module of
`memboard.tb_plugin.pages` that is imported at the route's first request: what stands between
a start and its first picture is all that a start pays for.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from memboard.tb_plugin.contract.errors import HeldError

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request

    from memboard.tb_plugin.contract.parameters import Query
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.server.state import State

ROUTES: Final = {
    "allocation_block": "memory.events",
    "allocation_holders": "memory.live",
    "allocation_live": "memory.live",
    "allocation_range": "memory.live",
    "allocations": "memory.blocks",
    "allocator_events": "memory.events",
    "compare": "compare.moments",
    "compare_runs": "compare.runs",
    "compare_traces": "compare.traces",
    "distributed": "distributed.distributed",
    "distributed_heatmap": "distributed.heatmap",
    "findings": "findings.findings",
    "functions": "calls.calls",
    "heatmap": "timeline.heatmap",
    "histories": "histories.histories",
    "history": "histories.histories",
    "host": "timeline.host",
    "kernels": "operators.kernels",
    "module": "modules.module",
    "module_timeline": "modules.modules",
    "module_times": "operators.operators",
    "modules": "modules.modules",
    "operator": "operators.operators",
    "operator_memory": "operators.memory",
    "operators": "operators.operators",
    "overview": "overview.overview",
    "peak_composition": "overview.peak_composition",
    "profile": "profile.profile",
    "rank_histories": "histories.ranks",
    "run_table": "compare.run_table",
    "runs": "overview.runs",
    "segment_timeline": "memory.blocks",
    "segments": "memory.segments",
    "snapshot_files": "histories.files",
    "stacks": "memory.live",
    "step": "steps.step",
    "step_heatmap": "steps.step",
    "steps": "steps.steps",
    "stragglers": "distributed.stragglers",
    "timeline": "timeline.timeline",
    "trace": "trace.trace",
    "trace_file": "trace_files.traces",
    "trace_idle": "trace.idle",
    "trace_path": "trace.path",
    "trace_merged": "trace_files.merged_download",
    "trace_range": "trace.slice",
    "trace_report": "trace_files.reports",
    "trace_reports": "trace_files.reports",
    "trace_search": "trace.slice",
    "trace_slice": "trace.slice",
    "trace_slices": "trace.slices",
    "traces": "trace_files.traces",
}
"""By the name of each data route: the module of `memboard.tb_plugin.pages` that declares it."""

Q = TypeVar("Q", bound="Query")
Q_co = TypeVar("Q_co", bound="Query", covariant=True)

_DECLARED: Final[
    dict[str, tuple[type[Any], Callable[[RouteRequest[Any]], object]]]
] = {}


class RouteRequest(Generic[Q_co]):
    """One request of a route, and what all requests share."""

    def __init__(
        self, state: State, route_name: str, query: Q_co, request: Request | None
    ) -> None:
        self.state: Final = state
        self.query: Final = query
        self.etag = ""
        self._name = route_name
        self._request = request

    @property
    def request(self) -> Request:
        """As it came over HTTP; the command line has none."""
        if self._request is None:
            raise TypeError(f"{self._name} is answered over HTTP alone")
        return self._request

    def decided_by(self, *keys: object) -> None:
        """Say what decides the answer beside its parameters, before it is made.

        Raises:
            HeldError: the client holds this answer already.
        """
        self.etag = etag_of(self.state.store.epoch, self._name, self.query, *keys)
        if self._request is not None and is_held(self._request, self.etag):
            raise HeldError(self.etag)


def route(
    name: str, query: type[Q]
) -> Callable[
    [Callable[[RouteRequest[Q]], object]], Callable[[RouteRequest[Q]], object]
]:
    """Declare what answers `/<name>`.

    It returns a response of `api` after `RouteRequest.decided_by`, or a `Response` of its own.
    """

    def declare(
        answer: Callable[[RouteRequest[Q]], object],
    ) -> Callable[[RouteRequest[Q]], object]:
        _DECLARED[name] = (query, answer)
        return answer

    return declare


def answer_of(readers: RunReaders, route_name: str, query: Query) -> Any:
    """The answer of a route that needs the readers of runs alone, for the command line.

    Raises:
        RequestError: as the page is told.
    """
    state = cast("State", readers)
    _, answer = declared(route_name)
    return answer(RouteRequest(state, route_name, query, None))


def etag_of(*parts: object) -> str:
    """A short validator of whatever decides an answer."""
    text = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return hashlib.sha256(text).hexdigest()[:20]


def is_held(request: Request, etag: str) -> bool:
    """Whether the client holds this version already."""
    return request.if_none_match.contains_weak(etag)


def query_of(route_name: str) -> type[Query]:
    """The parameters of a route."""
    return declared(route_name)[0]


def declared(
    route_name: str,
) -> tuple[type[Any], Callable[[RouteRequest[Any]], object]]:
    """What a route takes, and what answers it."""
    import_module(f"memboard.tb_plugin.pages.{ROUTES[route_name]}")
    return _DECLARED[route_name]
