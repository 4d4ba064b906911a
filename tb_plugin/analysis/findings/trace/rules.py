"""Rules over one profiled trace: what slows its steps down.

Those that torch-tb-profiler has keep its thresholds; the others ask for an effect worth
mending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.findings.trace import devices, efficiency, waiting

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.findings import Finding

RULES: Final = (
    waiting.communicating,
    waiting.may_communicate,
    waiting.no_nccl,
    waiting.single_process,
    devices.near_capacity,
    waiting.host_bound,
    devices.small_kernels,
    devices.idle,
    devices.empty_devices,
    devices.no_tensor_cores,
    efficiency.slow_matmuls,
)


def trace_findings(
    profile: TraceProfile, num_workers: int | None = None
) -> tuple[Finding, ...]:
    """All that was found, in the order in which it is worth mending.

    `num_workers`: of the DataLoader, where it was recorded beside the trace.
    """
    findings = (
        *waiting.loading(profile, num_workers),
        *(finding for rule in RULES for finding in rule(profile)),
    )
    # That a device idles is said once: by what it waits for, where that is known.
    waits = sum(
        finding.cost or 0.0
        for finding in findings
        if finding.key in ("loading", "host_bound")
    )
    return tuple(
        finding
        for finding in findings
        if finding.key != "idle" or 2 * waits < (finding.cost or 0.0)
    )
