"""What a rule over a trace rests on: whose thresholds, what it waits for, its finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.api.findings import Advice, Finding

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.findings import Evidence, Severity

PEER: Final = "torch-tb-profiler 0.4.3"
"""Rules that it has too keep its thresholds."""

HOST_TEXT: Final = {
    Role.RUNTIME: "device runtime calls",
    Role.CPU_EXEC: "operators on the host",
    Role.OTHER: "code outside operators",
}
"""What a device waits for on the host, by role."""


def trace_finding(
    profile: TraceProfile,
    key: str,
    title: str,
    sentence: str,
    *advice: str,
    evidence: tuple[Evidence, ...],
    rule: str,
    cost: float | None = None,
    device: int | None = None,
    severity: Severity = "warning",
) -> Finding:
    """Of the trace's rank; `cost`: a share of the steps."""
    rank = profile.trace.facts.rank
    return Finding(
        id=key if device is None else f"{key}-{device}",
        key=key,
        severity=severity,
        title=title,
        sentence=sentence,
        rank=rank if rank >= 0 else None,
        device=device,
        cost=None if cost is None else 100 * cost,
        unit="percent",
        evidence=evidence,
        advice=tuple(map(Advice, advice)),
        rule=rule,
    )
