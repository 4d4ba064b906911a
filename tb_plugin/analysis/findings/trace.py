"""Rules over one profiled trace: what slows its steps down.

Those that torch-tb-profiler has keep its thresholds; the others ask for an effect worth
mending.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings import trace_advice as advised
from memboard.tb_plugin.analysis.findings.evidence import (
    STEPS,
    count,
    num_bytes,
    percent,
    seconds,
)
from memboard.tb_plugin.analysis.findings.text import (
    duration_text,
    share_text,
    size_text,
)
from memboard.tb_plugin.analysis.findings.trace_advice import capability
from memboard.tb_plugin.analysis.time.operators import is_eligible
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.texts import texts_in
from memboard.tb_plugin.api.findings import Advice, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.findings import Evidence

_PEER: Final = "torch-tb-profiler 0.4.3"


def trace_findings(
    profile: TraceProfile, num_workers: int | None = None
) -> tuple[Finding, ...]:
    """All that was found, in the order in which it is worth mending.

    `num_workers`: of the DataLoader, where it was recorded beside the trace.
    """
    return (
        *loading(profile, num_workers),
        *(finding for rule in RULES for finding in rule(profile)),
    )


LOADING_SHARE: Final = 0.05


def loading(profile: TraceProfile, num_workers: int | None = None) -> Iterator[Finding]:
    share = float(profile.shares[Role.DATALOADER])
    if share > LOADING_SHARE:
        yield _finding(
            profile,
            "loading",
            "Waiting for data",
            f"Steps wait for data {share_text(share)} of the time.",
            *advised.loading(profile, num_workers),
            evidence=(
                percent(
                    "loading",
                    "inside the dataloader's __next__",
                    share,
                    caveat="while no device, runtime call or collective is busy",
                ),
            ),
            cost=share,
            rule=f"{_PEER}: more than {share_text(LOADING_SHARE)}",
        )


COMMUNICATION_SHARE: Final = 0.10


def communicating(profile: TraceProfile) -> Iterator[Finding]:
    """Communication that no computation hides."""
    parts = profile.parts
    total = int(parts.parts_ns.sum())
    share = int(parts.exposed_ns.sum()) / total if total else 0.0
    if share > COMMUNICATION_SHARE:
        hidden = int(parts.overlap_ns.sum()) / int(parts.communication_ns.sum())
        yield _finding(
            profile,
            "communicating",
            "Exposed communication",
            f"Exposed communication takes {share_text(share)} of the steps.",
            *advised.communication(profile),
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
            rule=f"{_PEER}: more than {share_text(COMMUNICATION_SHARE)}; here of exposed"
            " communication alone",
        )


NCCL_CAPABILITY: Final = (3, 5)
_DISTRIBUTED: Final = re.compile(r"DistributedDataParallel\.forward|FSDP::")


def no_nccl(profile: TraceProfile) -> Iterator[Finding]:
    """Ranks with devices talk through a backend of the host."""
    facts = profile.trace.facts
    capable = any(capability(device) >= NCCL_CAPABILITY for device in facts.devices)
    if not profile.devices or not capable:
        return
    backend, own = facts.backend, profile.collectives.row
    on_host = len(own) > 0 and not np.isin(own, profile.trace.device_work.row).any()
    if not backend and on_host and any(map(_DISTRIBUTED.search, _host_names(profile))):
        backend = "gloo"
    # These two may pass data between devices as well.
    if backend == "gloo" or (backend in ("mpi", "ucc") and on_host):
        yield _finding(
            profile,
            "no_nccl",
            "Collectives on the host",
            f"Ranks with GPUs communicate through {backend}.",
            'Initialise the process group with backend="nccl" (or "cpu:gloo,cuda:nccl").',
            evidence=(count("devices", "CUDA devices", len(facts.devices)),),
            rule=f"{_PEER}: distributed training without NCCL on devices that have it",
        )


_DATA_PARALLEL: Final = re.compile(r"DataParallel\.forward")


def single_process(profile: TraceProfile) -> Iterator[Finding]:
    """Several devices are driven by one process through DataParallel."""
    num_devices = len(profile.devices)
    if num_devices > 1 and any(
        _DATA_PARALLEL.search(name) and not name.startswith("Distributed")
        for name in _host_names(profile)
    ):
        yield _finding(
            profile,
            "single_process",
            "DataParallel",
            f"One process drives {num_devices} devices by DataParallel.",
            "Use DistributedDataParallel, or FSDP2: one process per device.",
            evidence=(count("devices", "devices of one process", num_devices),),
            rule=f"{_PEER}: DataParallel with more than one device",
        )


NEAR_CAPACITY: Final = 0.90
_ON_GPU: Final = (1, 6)
"""Types of devices as traces number them: CUDA, HIP."""


def near_capacity(profile: TraceProfile) -> Iterator[Finding]:
    """Devices whose peak comes close to what they have."""
    memory = profile.trace.memory
    totals = {
        device["id"]: device["totalGlobalMem"]
        for device in profile.trace.facts.devices
        if isinstance(device.get("id"), int)
        and isinstance(device.get("totalGlobalMem"), int)
    }
    on_gpu = np.isin(memory.device_type, _ON_GPU)
    for device in np.unique(memory.device[on_gpu]).tolist():
        peak = int(memory.allocated_bytes[on_gpu & (memory.device == device)].max())
        total = totals.get(device, 0)
        if not total or peak <= NEAR_CAPACITY * total:
            continue
        yield _finding(
            profile,
            "near_capacity",
            "Nearly full device",
            f"Device {device} was {share_text(peak / total)} full:"
            f" {size_text(peak)} of {size_text(total)} allocated at the peak.",
            advised.memory(profile),
            device=device,
            evidence=(
                num_bytes("peak", "allocated at the peak", peak, f"device {device}"),
                num_bytes(
                    "total", "device memory", total, f"device {device}", sure=False
                ),
            ),
            rule=f"{_PEER}: more than {share_text(NEAR_CAPACITY)} of the device",
        )


HOST_SHARE: Final = 0.30
"""Of the steps, in which the device waited for the host."""
_HOST_TEXT: Final = {
    Role.RUNTIME: "device runtime calls",
    Role.CPU_EXEC: "operators on the host",
    Role.OTHER: "code outside operators",
}


def host_bound(profile: TraceProfile) -> Iterator[Finding]:
    """The device waits for the host in the middle of steps."""
    waits = {role: float(profile.shares[role]) for role in _HOST_TEXT}
    share, most = sum(waits.values()), max(waits, key=lambda role: waits[role])
    if profile.devices and share > HOST_SHARE:
        yield _finding(
            profile,
            "host_bound",
            "Waiting for the host",
            f"The device waits for the host {share_text(share)} of the time, mostly for"
            f" {_HOST_TEXT[most]}.",
            *advised.host(profile),
            evidence=(
                percent("host", "no device work, loading or communication", share),
                *(
                    percent(role.name.lower(), text, waits[role], sure=False)
                    for role, text in _HOST_TEXT.items()
                ),
            ),
            cost=share,
            rule=f"more than {share_text(HOST_SHARE)} of the steps without device work,"
            " loading or communication",
        )


SMALL_KERNEL_NS: Final = 10_000
"""About what launching a kernel takes on the host."""
SMALL_SHARE: Final = 0.50
"""Of the kernels that are small."""
LOW_UTILIZATION: Final = 0.50


def small_kernels(profile: TraceProfile) -> Iterator[Finding]:
    """The device idles between kernels that are too short to be worth their launch."""
    rows = profile.trace.device_work.row
    kernels = rows[profile.roles[rows] == Role.KERNEL]
    durations = profile.trace.slices.duration_ns[kernels]
    if not len(durations) or not profile.devices:
        return
    share = float((durations < SMALL_KERNEL_NS).mean())
    busy = max(use.utilization or 0.0 for use in profile.devices)
    if share < SMALL_SHARE or busy >= LOW_UTILIZATION:
        return
    per_step = len(durations) / max(len(profile.steps), 1)
    num = counted(round(per_step), "kernel") if per_step >= 1 else "less than one"
    yield _finding(
        profile,
        "small_kernels",
        "Small kernels",
        f"{share_text(share)} of the kernels are shorter than"
        f" {duration_text(SMALL_KERNEL_NS / 1e9)}: too short to be worth their launch. A"
        f" step runs {num}.",
        *advised.launches(profile),
        "Larger batches make larger kernels, where memory allows.",
        evidence=(
            percent("small", "small kernels", share, "all kernels"),
            seconds("median", "median kernel", np.median(durations) / 1e9, STEPS),
            percent("idle", "no kernel runs", 1 - busy, sure=False),
        ),
        rule=f"half of the kernels below {duration_text(SMALL_KERNEL_NS / 1e9)} on a"
        " device that idles",
    )


def idle(profile: TraceProfile) -> Iterator[Finding]:
    """Devices that have nothing to do most of the time."""
    for use in profile.devices:
        if use.utilization is not None and use.utilization < LOW_UTILIZATION:
            yield _finding(
                profile,
                "idle",
                "Idle device",
                f"GPU {use.device} is used {share_text(use.utilization)} of the time.",
                advised.work(profile, tuple(_HOST_TEXT)),
                device=use.device,
                evidence=(
                    percent("utilization", "at least one kernel runs", use.utilization),
                ),
                cost=1 - use.utilization,
                rule=f"{_PEER}: utilization below {share_text(LOW_UTILIZATION)}",
            )


EMPTY_FACTOR: Final = 0.60
"""SM efficiency below this share of the utilization: kernels leave most SMs idle."""


def empty_devices(profile: TraceProfile) -> Iterator[Finding]:
    """Devices that are busy, but with kernels that fill a part of them only."""
    for use in profile.devices:
        busy, filled = use.utilization, use.sm_efficiency
        if busy is None or filled is None or busy < LOW_UTILIZATION:
            continue
        # Kernels of collectives take few SMs, by design.
        talks = int(profile.parts.communication_ns.sum()) * 2 > use.busy_ns
        if filled >= EMPTY_FACTOR * busy or talks:
            continue
        yield _finding(
            profile,
            "empty_device",
            "Kernels too small for the device",
            f"Kernels leave most of GPU {use.device} idle: estimated SM efficiency"
            f" {share_text(filled)}.",
            "Use larger batches or matrices; fuse small kernels.",
            device=use.device,
            evidence=(
                percent("sm_efficiency", "estimated SM efficiency", filled),
                percent("utilization", "at least one kernel runs", busy, sure=False),
            ),
            rule=f"SM efficiency below {EMPTY_FACTOR:g} of the utilization",
        )


TENSOR_CORE_CAPABILITY: Final = (7, 0)
AMD_WARP_SIZE: Final = 64


def no_tensor_cores(profile: TraceProfile) -> Iterator[Finding]:
    """Operators could use tensor cores, and no kernel does."""
    devices = profile.trace.facts.devices
    # AMD's number theirs otherwise, and their kernels have other names.
    capable = any(
        capability(device) >= TENSOR_CORE_CAPABILITY
        and device.get("warpSize") != AMD_WARP_SIZE
        for device in devices
    )
    if not capable or any(use.tensor_core_share for use in profile.devices):
        return
    table, strings = profile.operators, profile.trace.strings
    kernel_ns = sum(use.kernel_ns for use in profile.devices)
    eligible_ns = sum(
        int(own)
        for name, own in zip(table.name, table.kernel_self_ns, strict=True)
        if own and is_eligible(strings[int(name)])
    )
    if eligible_ns:
        share = eligible_ns / kernel_ns
        yield _finding(
            profile,
            "no_tensor_cores",
            "No tensor cores",
            f"No kernel uses tensor cores; operators that could take {share_text(share)} of"
            " the kernels' time.",
            advised.data_types(profile),
            evidence=(
                percent(
                    "eligible", "operators that could use them", share, "kernel time"
                ),
            ),
            rule=f"{_PEER}: eligible operators, no tensor cores, on capability 7.0 and up",
        )


RULES: Final = (
    communicating,
    no_nccl,
    single_process,
    near_capacity,
    host_bound,
    small_kernels,
    idle,
    empty_devices,
    no_tensor_cores,
)


def _finding(
    profile: TraceProfile,
    key: str,
    title: str,
    sentence: str,
    *advice: str,
    evidence: tuple[Evidence, ...],
    rule: str,
    cost: float | None = None,
    device: int | None = None,
) -> Finding:
    rank = profile.trace.facts.rank
    return Finding(
        id=key if device is None else f"{key}-{device}",
        key=key,
        severity="warning",
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


def _host_names(profile: TraceProfile) -> list[str]:
    """Names of operators and annotations."""
    trace = profile.trace
    names = trace.slices.name[profile.times.nodes.kept]
    return [text for _, text in texts_in(trace.strings, names)]
