"""The route `/profile`: where the time of profiled steps went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from memboard.tb_plugin.analysis.findings.render import with_markdown
from memboard.tb_plugin.analysis.findings.trace.rules import trace_findings
from memboard.tb_plugin.analysis.kernel_names.matrix_cores import is_amd
from memboard.tb_plugin.analysis.time.device_use import use_at
from memboard.tb_plugin.analysis.time.slice_roles import ROLES, Role
from memboard.tb_plugin.analysis.trace.devices import device_kind, device_title
from memboard.tb_plugin.api.base import f64, i32_clipped
from memboard.tb_plugin.api.findings import Place
from memboard.tb_plugin.api.time.profile import (
    ProfileFact,
    ProfilePart,
    ProfileResponse,
)
from memboard.tb_plugin.contract.parameters import Count
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.traces.core_columns import (
    DEVICE_CORES,
    in_vendor_words,
    known_notes,
)
from memboard.tb_plugin.facts.traces.profiled import (
    MS,
    SourceQuery,
    shown,
)
from memboard.tb_plugin.facts.view import loader_workers
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from memboard.tb_plugin.analysis.time.device_use import UseInAll
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.trace import Trace, TraceFacts
    from memboard.tb_plugin.api.tables import TableRows

_MAX_TEXT: Final = 300

MAX_STEPS: Final = 2_000
"""Profiled steps that are shown; the first ones."""


class ProfileQuery(SourceQuery, frozen=True):
    """One step of a trace, where devices are to tell of it alone."""

    step: Count | None = None


@route("profile", ProfileQuery)
def answer(asked: RouteRequest[ProfileQuery]) -> ProfileResponse:
    """The profile of a trace.

    It is empty while the trace is being opened. Devices tell of `query.step` alone where
    the trace has it.
    """
    state, query = asked.state, asked.query
    trace = shown(state, query)
    num_workers = None
    if trace.opening is not None and trace.opening.state == "ready":
        rank = trace.opening.found.rank
        with state.reading(query.run) as (run, _):
            num_workers = None if rank is None else loader_workers(run, rank)
    asked.decided_by(*trace.stamp, num_workers)
    profile, choice = trace.profile, trace.choice(query)
    if profile is None:
        return ProfileResponse(run=trace.run, choice=choice)
    steps, first = profile.steps, slice(MAX_STEPS)
    parts_ns = profile.parts.parts_ns
    chosen = profile.steps.index_of(query.step)
    findings = [
        structs.replace(
            finding,
            place=Place(
                "trace", "Show the trace", rank=finding.rank, source=choice.source
            ),
        )
        for finding in (
            () if trace.run.virtual_gpu else trace_findings(profile, num_workers)
        )
    ]
    # What a trace cannot have (kernels without a device) is left out.
    had = [role for role in Role if role == Role.OTHER or parts_ns[:, role].any()]
    lasted = (steps.end_ns - steps.start_ns) / MS
    return ProfileResponse(
        run=trace.run,
        choice=choice,
        step=i32_clipped(steps.number[first]),
        are_marked=steps.are_marked,
        duration_ms=f64(lasted[first]),
        mean_ms=float(lasted.sum()) / max(len(lasted), 1),
        parts=tuple(_parts(profile, had, first)),
        roles=_roles(profile, had, chosen),
        devices=_devices(profile, chosen),
        findings=with_markdown(
            sorted(findings, key=lambda finding: finding.cost or 0.0, reverse=True)
        ),
        facts=tuple(_facts(profile)),
    )


def _parts(
    profile: TraceProfile, roles: Iterable[Role], shown: slice
) -> Iterator[ProfilePart]:
    """Of the roles that the trace has."""
    for role in roles:
        ms = f64(profile.parts.parts_ns[shown, role] / MS)
        key, label, colour, about = ROLES[role]
        yield ProfilePart(role=key, label=label, help=about, colour=colour, ms=ms)


_ROLE_COLUMNS: Final = (
    Column("role", "Role", unit="text", bar="row"),
    Column(
        "ms",
        "Time",
        unit="ms",
        help="Per step. Each moment counts once, for the first role that is under way, in the"
        " order kernels, copies, fills, communication, runtime calls, dataloader, host"
        " operators: so they add up to the step.",
    ),
    Column("share", "Share", unit="share", help="Of the step", bar="row"),
)


def _roles(profile: TraceProfile, roles: list[Role], step: int | None) -> TableRows:
    """`step`: which one alone, by its place."""
    of = slice(step, None if step is None else step + 1)
    picked = profile.parts.parts_ns[of, roles]
    _, labels, colours, hints = zip(*(ROLES[role] for role in roles), strict=True)
    sums = picked.sum(axis=0)
    table = table_of(
        _ROLE_COLUMNS,
        {
            "role": labels,
            "ms": sums / max(len(picked), 1),
            "share": sums / max(sums.sum(), 1),
        },
        "ms",
        more={"role": {"hints": hints}},
        colours=colours,
    )
    return titled(table, f"Roles{_whose(profile, step)}")


def _whose(profile: TraceProfile, step: int | None) -> str:
    return "" if step is None else f", step {profile.steps.number[step]}"


_NOT_THERE: Final = "Not in the trace"

_DEVICES: Final = (
    Column("device", "Device", unit="text"),
    Column(
        "total_bytes",
        "Memory",
        unit="bytes",
        help="All of the device's memory, as the profiler wrote it; not what was used.",
        absent=_NOT_THERE,
    ),
    Column(
        "num_kernels",
        "Kernels",
        help="Kernels that ran on it while the profiler did, those of collectives"
        " included; of one step those that began in it.",
    ),
    Column(
        "utilization",
        "Utilization",
        unit="share",
        help="Time in which at least one kernel ran ÷ time from the first profiled step's"
        " start to the last one's end, or the length of the chosen step. A kernel of one"
        " thread counts as much as one that fills the device: 100 % may be a device that"
        " is nearly idle.",
        absent=_NOT_THERE,
    ),
    Column(
        "sm_efficiency",
        "Est. SM\nefficiency",
        unit="share",
        help="Mean over the same time of min(1, blocks per SM of the kernels that run): 64"
        " blocks on 80 SMs are 0.8. A block of one thread counts as much as a full one.",
        absent=_NOT_THERE,
    ),
    Column(
        "occupancy",
        "Est.\noccupancy",
        unit="share",
        help="Est. achieved occupancy, mean of the kernels weighted by their time: active"
        " warps of an SM ÷ those it could have, estimated from the launch configuration"
        " and not measured. 15 to 30 % may be as good as it gets.",
        absent=_NOT_THERE,
    ),
    *DEVICE_CORES,
)


def _devices(profile: TraceProfile, step: int | None) -> TableRows | None:
    """`step`: which one alone, by its place."""
    whole, steps = profile.devices, profile.device_steps
    uses = whole if step is None else [use_at(by_step, step) for by_step in steps]
    if not uses:
        return None
    described = {
        device["id"]: device
        for device in profile.trace.facts.devices
        if type(device.get("id")) is int
    }
    facts = [described.get(use.device, {}) for use in uses]
    totals = [fact.get("totalGlobalMem") for fact in facts]
    values: dict[str, Iterable[Any]] = {
        "device": [
            _device_name(profile.trace, use, fact)
            for use, fact in zip(uses, facts, strict=True)
        ],
        "total_bytes": [total if type(total) is int else None for total in totals],
        **{
            column.key: [getattr(use, column.key) for use in uses]
            for column in _DEVICES[2:]
        },
    }
    table = table_of(
        _DEVICES,
        values,
        "num_kernels",
        more={
            "device": {"notes": tuple(map(_capability, facts))},
            "tensor_core_share": {
                "notes": known_notes(use.tensor_core_known_share for use in uses)
            },
        },
    )
    table = in_vendor_words(table, profile.trace)
    return titled(table, f"Devices{_whose(profile, step)}")


def _device_name(trace: Trace, use: UseInAll, facts: Mapping[str, Any]) -> str:
    model = facts.get("name")
    named = f" · {model[:_MAX_TEXT]}" if isinstance(model, str) and model else ""
    return f"{device_title(trace, use.device)}{named}"


def _capability(facts: Mapping[str, Any]) -> str:
    major, minor = facts.get("computeMajor"), facts.get("computeMinor")
    has_version = type(major) is type(minor) is int
    if not has_version:
        return ""
    if is_amd((facts,)):
        return f"gfx{major}{minor:x}x"
    return f"compute capability {major}.{minor}"


def _facts(profile: TraceProfile) -> Iterator[ProfileFact]:
    facts: TraceFacts = profile.trace.facts
    told: dict[str, object] = {
        "rank": facts.rank if facts.rank >= 0 else None,
        "world_size": facts.world_size if facts.world_size >= 0 else None,
        "host": facts.host_name,
        "backend": facts.backend,
        "device": device_kind(profile.trace) if profile.devices else "CPU",
        "devices": len(facts.devices) or None,
        "events": sum(profile.trace.num_events.values()),
        **{name: "yes" if on else "no" for name, on in facts.flags.items()},
    }
    for key, value in told.items():
        if value is not None and value != "":
            yield ProfileFact(name=key, value=str(value)[:_MAX_TEXT])
