"""The route `/profile`: where the time of profiled steps went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import structs

from tb_plugin.analysis.findings.trace import trace_findings
from tb_plugin.analysis.time.slice_roles import Role
from tb_plugin.api.findings import Place
from tb_plugin.api.profile import (
    ProfiledDevice,
    ProfileFact,
    ProfilePart,
    ProfileResponse,
)
from tb_plugin.contract.parameters import Count
from tb_plugin.contract.routes import Asked, route
from tb_plugin.contract.wire import f64, finite, i32
from tb_plugin.pages.distributed.distributed import straggler
from tb_plugin.pages.profile.asked import MS, SourceQuery, profile_of, profiles, shown
from tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tb_plugin.analysis.arrays import Ints
    from tb_plugin.analysis.time.device_use import DeviceUse
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.analysis.trace.trace import TraceFacts
    from tb_plugin.api.profile import ProfileRole
    from tb_plugin.formats.recording.profiles import RankSummary
    from tb_plugin.jobs.trace_sources import FoundSource
    from tb_plugin.server.state import State

MAX_BESIDE: Final = 64 << 20
"""Bytes of the files of a cycle's ranks that are opened to tell who of them comes last;
of more the ones that were looked at already count."""

_MAX_TEXT: Final = 300
MAX_STEPS: Final = 2_000
"""Profiled steps that are shown; the first ones."""

_ROLES: Final[tuple[ProfileRole, ...]] = (
    *("kernel", "memcpy", "memset", "communication", "runtime", "dataloader"),
    *("cpu_exec", "other"),
)


class ProfileQuery(SourceQuery, frozen=True):
    """One step of a trace, where devices are to tell of it alone."""

    step: Count | None = None


@route("profile", ProfileQuery)
def answer(asked: Asked[ProfileQuery]) -> ProfileResponse:
    """The profile of a trace, with who of its cycle's ranks comes last.

    It is empty while the trace is being opened. Devices tell of `query.step` alone where
    the trace has it.
    """
    state, query = asked.state, asked.query
    found = shown(state, query)
    beside: list[RankSummary] = []
    if found.opening is not None and found.opening.state == "ready":
        beside = compared_with(state, query.run, found.traces, found.opening.found)
    asked.decided_by(*found.stamp, len(beside))
    profile, choice = profile_of(state, found), found.choice(query)
    if profile is None:
        return ProfileResponse(run=found.run, choice=choice)
    steps, parts = profile.steps, profile.parts
    first = slice(MAX_STEPS)
    chosen = profile.steps.index_of(query.step)
    start = steps.start_ns - (steps.start_ns[0] if len(steps) else 0)
    findings = [
        structs.replace(
            one,
            place=Place("trace", "Show the trace", rank=one.rank, source=choice.source),
        )
        for one in trace_findings(profile)
    ]
    if len(beside) > 1:
        findings += straggler(beside, profiles(state).compared(beside))
    return ProfileResponse(
        run=found.run,
        choice=choice,
        step=i32(np.minimum(steps.number[first], np.iinfo(np.int32).max)),
        are_marked=steps.are_marked,
        start_ms=f64(start[first] / MS),
        duration_ms=f64((steps.end_ns - steps.start_ns)[first] / MS),
        parts=tuple(_parts(profile, parts.parts_ns, first)),
        computation_ms=f64(parts.computation_ns[first] / MS),
        communication_ms=f64(parts.communication_ns[first] / MS),
        overlap_ms=f64(parts.overlap_ns[first] / MS),
        devices=tuple(_devices(profile, _uses(profile, chosen))),
        devices_step=None if chosen is None else query.step,
        findings=tuple(sorted(findings, key=lambda one: one.cost or 0.0, reverse=True)),
        facts=tuple(_facts(profile)),
    )


def compared_with(
    state: State, run_id: str, traces: Sequence[FoundSource], found: FoundSource
) -> list[RankSummary]:
    """What there is of the ranks of a trace's cycle, one for each."""
    own = [one for one in traces if one.cycle == found.cycle]
    if len(own) < 2:
        return []
    is_small = sum(one.num_bytes for one in own) <= MAX_BESIDE
    opens = is_small and not any(is_remote(one.path or "") for one in own)
    known = profiles(state).beside(run_id, own, opens=opens)
    by_rank = {one.rank: one for one in known}
    return [by_rank[rank] for rank in sorted(by_rank)]


def _parts(
    profile: TraceProfile, parts_ns: Ints, shown: slice
) -> Iterator[ProfilePart]:
    shares = profile.shares
    num = max(len(parts_ns), 1)
    for role in Role:
        column = parts_ns[:, role]
        # What a trace cannot have (kernels without a device) is left out.
        if role != Role.OTHER and not column.any():
            continue
        yield ProfilePart(
            role=_ROLES[role],
            ms=f64(column[shown] / MS),
            mean_ms=float(column.sum()) / num / MS,
            share=finite(float(shares[role])) or 0.0,
        )


def _uses(profile: TraceProfile, step: int | None) -> Sequence[DeviceUse]:
    if step is None:
        return profile.devices
    return [one.at(step) for one in profile.device_steps]


def _devices(
    profile: TraceProfile, uses: Sequence[DeviceUse]
) -> Iterator[ProfiledDevice]:
    described = {
        one["id"]: one
        for one in profile.trace.facts.devices
        if type(one.get("id")) is int
    }
    for use in uses:
        yield _device(use, described.get(use.device, {}))


def _device(use: DeviceUse, facts: Mapping[str, Any]) -> ProfiledDevice:
    major, minor = facts.get("computeMajor"), facts.get("computeMinor")
    total, name = facts.get("totalGlobalMem"), facts.get("name")
    return ProfiledDevice(
        device=use.device,
        name=name[:_MAX_TEXT] if isinstance(name, str) else None,
        total_bytes=float(total) if type(total) is int else None,
        capability=f"{major}.{minor}" if type(major) is type(minor) is int else None,
        num_kernels=use.num_kernels,
        utilization=use.utilization,
        sm_efficiency=use.sm_efficiency,
        occupancy=use.occupancy,
        tensor_core_share=use.tensor_core_share,
    )


def _facts(profile: TraceProfile) -> Iterator[ProfileFact]:
    facts: TraceFacts = profile.trace.facts
    told: dict[str, object] = {
        "rank": facts.rank if facts.rank >= 0 else None,
        "world_size": facts.world_size if facts.world_size >= 0 else None,
        "host": facts.host_name,
        "backend": facts.backend,
        "device": "GPU" if profile.devices else "CPU",
        "devices": len(facts.devices) or None,
        "events": sum(profile.trace.num_events.values()),
        **{name: "yes" if on else "no" for name, on in facts.flags.items()},
    }
    for name, value in told.items():
        if value is not None and value != "":
            yield ProfileFact(name=name, value=str(value)[:_MAX_TEXT])
