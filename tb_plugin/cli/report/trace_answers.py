"""Answers of the pages about a run's profiled trace, and about the ranks of its cycle."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from memboard.tb_plugin.server.routes import answer_of, query_of

if TYPE_CHECKING:
    from memboard.tb_plugin.api.time.distributed import DistributedResponse
    from memboard.tb_plugin.api.time.kernels import KernelsResponse
    from memboard.tb_plugin.api.time.operators import OperatorsResponse
    from memboard.tb_plugin.api.time.profile import ProfileResponse
    from memboard.tb_plugin.api.time.trace import TraceIdleResponse, TracePathResponse
    from memboard.tb_plugin.facts.readers import RunReaders

_POLL_SECONDS: Final = 0.05


class TraceAnswers(Struct, frozen=True, kw_only=True):
    """The trace that the pages show first; each answer is that of the route of its name."""

    profile: ProfileResponse
    operators: OperatorsResponse
    categories: OperatorsResponse
    """That of the route `operators` by category."""
    kernels: KernelsResponse
    trace_idle: TraceIdleResponse
    trace_path: TracePathResponse
    distributed: DistributedResponse | None
    """None where one rank alone was chosen."""


def trace_answers(
    readers: RunReaders, run_id: str, rank: int | None
) -> TraceAnswers | None:
    """Wait until the trace is open; None where the run has none that can be opened."""

    def ask(route_name: str, **parameters: object) -> Any:
        make_query: Any = query_of(route_name)
        return answer_of(readers, route_name, make_query(run=run_id, **parameters))

    profile: ProfileResponse = ask("profile", rank=rank)
    while profile.choice.state == "opening":
        time.sleep(_POLL_SECONDS)
        profile = ask("profile", rank=rank)
    source = profile.choice.source
    if source is None or profile.choice.state != "ready":
        return None
    return TraceAnswers(
        profile=profile,
        operators=ask("operators", source=source),
        categories=ask("operators", source=source, by="category"),
        kernels=ask("kernels", source=source),
        trace_idle=ask("trace_idle", source=source),
        trace_path=ask("trace_path", source=source),
        distributed=_distributed(ask) if rank is None else None,
    )


def _distributed(ask: Any) -> DistributedResponse:
    answer: DistributedResponse = ask("distributed")
    while answer.num_opening:
        time.sleep(_POLL_SECONDS)
        answer = ask("distributed")
    return answer
