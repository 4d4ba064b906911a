"""What the steps of a trace wait for: data, other ranks, the host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import (
    count,
    duration_text,
    percent,
    seconds,
    share_text,
)
from memboard.tb_plugin.analysis.findings.trace import advice
from memboard.tb_plugin.analysis.findings.trace.finding import (
    HOST_TEXT,
    PEER,
    trace_finding,
)
from memboard.tb_plugin.analysis.kernel_names.kinds import (
    COMMUNICATION_VARIABLE,
    COMPUTATION_VARIABLE,
)
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.texts import texts_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.findings import Finding

LOADING_SHARE: Final = 0.05


def loading(profile: TraceProfile, num_workers: int | None = None) -> Iterator[Finding]:
    share = float(profile.shares[Role.DATALOADER])
    if share > LOADING_SHARE:
        yield trace_finding(
            profile,
            "loading",
            "Waiting for data",
            f"Steps wait for data {share_text(share)} of the time.",
            *advice.loading(profile, num_workers),
            evidence=(
                percent(
                    "loading",
                    "inside the dataloader's __next__",
                    share,
                    caveat="while no device, runtime call or collective is busy",
                ),
            ),
            cost=share,
            rule=f"{PEER}: more than {share_text(LOADING_SHARE)}",
        )


COMMUNICATION_SHARE: Final = 0.10


def communicating(profile: TraceProfile) -> Iterator[Finding]:
    """Communication that no computation hides."""
    parts = profile.parts
    total = int(parts.parts_ns.sum())
    share = int(parts.exposed_ns.sum()) / total if total else 0.0
    if share > COMMUNICATION_SHARE:
        hidden = int(parts.overlap_ns.sum()) / int(parts.communication_ns.sum())
        yield trace_finding(
            profile,
            "communicating",
            "Exposed communication",
            f"Exposed communication takes {share_text(share)} of the steps.",
            *advice.communication(profile),
            evidence=(
                percent("exposed", "exposed communication", share),
                percent(
                    "hidden",
                    "hidden behind computation",
                    hidden,
                    "all communication",
                    sure=False,
                ),
            ),
            cost=share,
            rule=f"{PEER}: more than {share_text(COMMUNICATION_SHARE)}; here of exposed"
            " communication alone",
        )


ASKED_SHARE: Final = 0.01
"""Of the kernels' time: less changes no figure that is read."""
_MAX_KERNELS: Final = 3
_MAX_NAME: Final = 80


def may_communicate(profile: TraceProfile) -> Iterator[Finding]:
    """Kernels of unknown names that seem to move data between ranks."""
    kernels, strings = profile.kernels, profile.trace.strings
    rows = np.flatnonzero(kernels.may_communicate)
    rows = rows[np.argsort(-kernels.total_ns[rows], kind="stable")]
    all_ns, own_ns = int(kernels.total_ns.sum()), int(kernels.total_ns[rows].sum())
    if not len(rows) or own_ns < ASKED_SHARE * all_ns:
        return
    share = own_ns / all_ns
    names = [strings[row] for row in kernels.name[rows[:_MAX_KERNELS]].tolist()]
    yield trace_finding(
        profile,
        "may_communicate",
        "Communication or computation?",
        f"{_subject(len(rows))} may be communication: {duration_text(own_ns / 1e9)},"
        f" {share_text(share)} of the kernels' time.",
        f"If so, set {COMMUNICATION_VARIABLE} to names, or parts of them, with commas"
        f" between, for TensorBoard or memboard report; else {COMPUTATION_VARIABLE}.",
        evidence=(
            percent("share", "time of such kernels", share, "kernel time"),
            *(
                seconds(
                    f"kernel_{place}", _shortened(name), total_ns / 1e9, "the trace"
                )
                for place, (name, total_ns) in enumerate(
                    zip(names, kernels.total_ns[rows].tolist(), strict=False)
                )
            ),
        ),
        rule=f"kernels of no known library, whose names say reduce, gather, scatter or the"
        f" like across ranks, take {share_text(ASKED_SHARE)} of the kernels' time",
        severity="info",
    )


def _subject(num: int) -> str:
    if num == 1:
        return "1 kernel counts as computation, and its name says that it"
    return (
        f"{counted(num, 'kernel')} count as computation, and their names say that they"
    )


def _shortened(kernel_name: str) -> str:
    is_short = len(kernel_name) <= _MAX_NAME
    return kernel_name if is_short else f"{kernel_name[: _MAX_NAME - 1]}…"


NCCL_CAPABILITY: Final = (3, 5)
_DISTRIBUTED: Final = re.compile(r"DistributedDataParallel\.forward|FSDP::")


def no_nccl(profile: TraceProfile) -> Iterator[Finding]:
    """Ranks with devices talk through a backend of the host."""
    facts = profile.trace.facts
    capable = any(
        advice.capability(device) >= NCCL_CAPABILITY for device in facts.devices
    )
    if not profile.devices or not capable:
        return
    backend, own = facts.backend, profile.collectives.row
    on_host = len(own) > 0 and not np.isin(own, profile.trace.device_work.row).any()
    if not backend and on_host and any(map(_DISTRIBUTED.search, _host_names(profile))):
        backend = "gloo"
    # These two may pass data between devices as well.
    if backend == "gloo" or (backend in ("mpi", "ucc") and on_host):
        yield trace_finding(
            profile,
            "no_nccl",
            "Collectives on the host",
            f"Ranks with GPUs communicate through {backend}.",
            'Initialise the process group with backend="nccl" (or "cpu:gloo,cuda:nccl").',
            evidence=(count("devices", "GPUs", len(facts.devices)),),
            rule=f"{PEER}: distributed training without NCCL on devices that have it",
        )


_DATA_PARALLEL: Final = re.compile(r"DataParallel\.forward")


def single_process(profile: TraceProfile) -> Iterator[Finding]:
    """Several devices are driven by one process through DataParallel."""
    num_devices = len(profile.devices)
    if num_devices > 1 and any(
        _DATA_PARALLEL.search(name) and not name.startswith("Distributed")
        for name in _host_names(profile)
    ):
        yield trace_finding(
            profile,
            "single_process",
            "DataParallel",
            f"One process drives {num_devices} devices by DataParallel.",
            "Use DistributedDataParallel, or FSDP2: one process per device.",
            evidence=(count("devices", "devices of one process", num_devices),),
            rule=f"{PEER}: DataParallel with more than one device",
        )


HOST_SHARE: Final = 0.30
"""Of the steps, in which the device waited for the host."""


def host_bound(profile: TraceProfile) -> Iterator[Finding]:
    """The device waits for the host in the middle of steps."""
    is_long = float(profile.shares[list(HOST_TEXT)].sum()) > HOST_SHARE
    if not profile.devices or not is_long:
        return
    own = profile.shares - profile.late_shares
    waits = {role: float(own[role]) for role in HOST_TEXT}
    share, most = sum(waits.values()), max(waits, key=lambda role: waits[role])
    if share <= HOST_SHARE:
        return
    late = float(profile.late_shares[list(HOST_TEXT)].sum())
    yield trace_finding(
        profile,
        "host_bound",
        "Waiting for the host",
        f"The device waits for the host {share_text(share)} of the time, mostly for"
        f" {HOST_TEXT[most]}.",
        *advice.host(profile),
        advice.work(profile, tuple(HOST_TEXT)),
        evidence=(
            percent("host", "no device work, loading or communication", share),
            *(
                percent(role.name.lower(), text, waits[role], sure=False)
                for role, text in HOST_TEXT.items()
            ),
            *(
                (percent("late", "not counted: launched in time and late", late),)
                if late > 0
                else ()
            ),
        ),
        cost=share,
        rule=f"more than {share_text(HOST_SHARE)} of the steps without device work,"
        " loading or communication, before the device's next work was launched",
    )


def _host_names(profile: TraceProfile) -> list[str]:
    """Names of operators and annotations."""
    trace = profile.trace
    names = trace.slices.name[profile.times.nodes.kept]
    return [text for _, text in texts_in(trace.strings, names)]
