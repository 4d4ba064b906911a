"""Route `/trace_idle`: why the devices of a trace were idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_plugin.analysis.trace.idle import idle_times
from tb_plugin.api.trace import DeviceIdle, TraceIdleResponse
from tb_plugin.contract.wire import finite
from tb_plugin.pages.profile.asked import MS, US, SourceQuery, of_profile

if TYPE_CHECKING:
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.api.base import RunSummary
    from tb_plugin.api.profile import ProfileChoice

MAX_ROWS = 200


@of_profile("trace_idle", SourceQuery)
def trace_idle(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, query: SourceQuery
) -> TraceIdleResponse:
    """Devices, and their streams."""
    del run, query
    return TraceIdleResponse(
        state=choice.state,
        source=choice.source,
        rows=tuple(
            DeviceIdle(
                device=one.device,
                stream=None if one.stream < 0 else one.stream,
                num_works=one.num_works,
                span_ms=one.span_ns / MS,
                host_ms=one.host_ns / MS,
                kernel_ms=one.kernel_ns / MS,
                other_ms=one.other_ns / MS,
                num_launched=one.num_launched,
                delay_p50_us=finite(one.delay_p50_ns / US),
                delay_p95_us=finite(one.delay_p95_ns / US),
                queue_mean=finite(one.queue_mean),
                queue_max=finite(one.queue_max),
            )
            for one in idle_times(profile.trace)[:MAX_ROWS]
        ),
    )
