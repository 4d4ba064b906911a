"""The routes about profiles: where time and memory of profiled steps went.

They are made of a trace that is open alone. One that is still being opened is answered
too: the answer says how far it is, and the page asks again.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tb_plugin import api
from tb_plugin.profile_query import ProfileQuery, parse_profile_query
from tb_plugin.readers.profiles import Profiles
from tb_plugin.server.respond import data_answer, etag_of, not_modified
from tb_plugin.storage import is_remote
from tb_plugin.views.distributed import Cycle, distributed, straggler
from tb_plugin.views.distributed_heatmap import distributed_heatmap
from tb_plugin.views.kernels import kernels
from tb_plugin.views.module_times import module_times
from tb_plugin.views.operator_memory import operator_memory_of
from tb_plugin.views.operators import operator, operators
from tb_plugin.views.profile import profile_of
from tb_plugin.views.profile_choice import (
    candidates_of,
    choice_of,
    profiler_traces,
)
from tb_plugin.wire import CONTENT_TYPE, envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from werkzeug.wrappers import Request, Response

    from tb_plugin.analysis.trace_profile import TraceProfile
    from tb_plugin.readers.profiles import RankSummary
    from tb_plugin.readers.trace_sources import FoundSource, Opening
    from tb_plugin.trace_routes import TraceRoutes

ROUTES: Final = (
    *("profile", "operators", "operator", "kernels", "module_times"),
    *("operator_memory", "distributed", "distributed_heatmap"),
)

OPEN_SECONDS: Final = 2.0
"""How long an answer waits for a trace that is being opened."""

MAX_TRIED: Final = 8
"""Traces that are opened to find one that can be."""

MAX_BESIDE: Final = 64 << 20
"""Bytes of the files of a cycle's ranks that are opened to tell who of them comes last;
of more the ones that were looked at already count."""

MAX_AHEAD: Final = 256 << 20
"""Bytes of a file that is opened before anybody asks: some seconds of a processor."""


class ProfileRoutes:
    """Answers by the route's name."""

    def __init__(self, traces: TraceRoutes, epoch: str) -> None:
        """`epoch`: part of every ETag."""
        self._traces = traces
        self._epoch = epoch
        self.profiles: Final = Profiles(traces.sources)

    def answer(self, name: str, request: Request) -> Response:
        """The answer of `/<name>`.

        Raises:
            RequestError: what was asked for means nothing, or there is no such run.
        """
        query = parse_profile_query(request.args)
        if name in ("distributed", "distributed_heatmap"):
            return self._distributed(name, request, query)
        run, sources = self._traces.listed(query.run)
        traces = profiler_traces(sources)
        opening, passed_over = self._opened(query, traces)
        state = None
        if opening is not None:
            state = (opening.state, opening.progress, opening.doing)
        keys = [(one.id, *one.key) for one in traces]
        beside: list[RankSummary] = []
        if name == "profile" and opening is not None and opening.state == "ready":
            beside = self._beside(query.run, traces, opening.found)
        tried = [one.found.id for one in (*passed_over, opening) if one is not None]
        etag = etag_of(self._epoch, name, query, keys, tried, state, len(beside))
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        choice = choice_of(traces, opening, query.source, passed_over)
        profile = None if opening is None else self.profiles.profile_of(opening)
        response = _view(name, run, choice, profile, query)
        if isinstance(response, api.ProfileResponse) and len(beside) > 1:
            last = straggler(beside, self.profiles.compared(beside))
            response = replace(response, findings=(*response.findings, *last))
        return data_answer(request, envelope(response), etag)

    def _opened(
        self, query: ProfileQuery, traces: Sequence[FoundSource]
    ) -> tuple[Opening | None, list[Opening]]:
        """The trace to show, and what failed before it; where all fail, the first.

        A newest trace is torn while it is written, and for ever after a crash.
        """
        passed_over: list[Opening] = []
        deadline = time.monotonic() + OPEN_SECONDS
        candidates = candidates_of(traces, query.source, query.rank)[:MAX_TRIED]
        for found in candidates:
            opening = self._traces.sources.open(query.run, found)
            if opening.failed_before is None or len(candidates) == 1:
                opening.wait(max(0.0, deadline - time.monotonic()))
            if opening.failure is None:
                return opening, passed_over
            passed_over.append(opening)
        return (passed_over[0] if passed_over else None), []

    def _beside(
        self, run_id: str, traces: Sequence[FoundSource], found: FoundSource
    ) -> list[RankSummary]:
        """What there is of the ranks of a trace's cycle, one for each."""
        own = [one for one in traces if one.cycle == found.cycle]
        if len(own) < 2:
            return []
        is_small = sum(one.num_bytes for one in own) <= MAX_BESIDE
        opens = is_small and not any(is_remote(one.path or "") for one in own)
        known = self.profiles.beside(run_id, own, opens=opens)
        by_rank = {one.rank: one for one in known}
        return [by_rank[rank] for rank in sorted(by_rank)]

    def open_ahead(self, run_id: str) -> None:
        """Begin to open the trace that a run's Overview shows first."""
        traces = profiler_traces(self._traces.listed(run_id)[1])
        for found in candidates_of(traces, None)[:1]:
            if found.num_bytes <= MAX_AHEAD and not is_remote(found.path or ""):
                self._traces.sources.open(run_id, found)

    def _distributed(
        self, name: str, request: Request, query: ProfileQuery
    ) -> Response:
        run, sources = self._traces.listed(query.run)
        traces = profiler_traces(sources)
        cycles = sorted({one.cycle for one in traces if one.cycle is not None})
        newest = traces[-1].cycle if traces else None
        number = query.cycle if query.cycle in cycles else newest
        own = [
            one
            for one in traces
            if one.cycle == number and query.has_rank(one.rank or 0)
        ]
        found, failed = self.profiles.summaries(query.run, own, OPEN_SECONDS)
        keys = [(one.id, *one.key) for one in traces]
        etag = etag_of(self._epoch, name, query, keys, len(found), len(failed))
        unchanged = not_modified(request, etag, CONTENT_TYPE)
        if unchanged is not None:
            return unchanged
        cycle = Cycle(tuple(cycles), number, len(own), found, failed)
        if name == "distributed":
            together = self.profiles.compared(found)
            response: object = distributed(run, cycle, together, query)
        else:
            response = distributed_heatmap(run, cycle, query)
        return data_answer(request, envelope(response), etag)


def _view(
    name: str,
    run: api.RunSummary,
    choice: api.ProfileChoice,
    profile: TraceProfile | None,
    query: ProfileQuery,
) -> object:
    if name == "module_times":
        return module_times(run, choice, profile)
    view = {
        "profile": profile_of,
        "operators": operators,
        "operator": operator,
        "kernels": kernels,
        "operator_memory": operator_memory_of,
    }[name]
    return view(run, choice, profile, query)
