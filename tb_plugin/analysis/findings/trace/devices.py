"""What the devices of a trace leave unused: time, multiprocessors, tensor cores; or lack."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import (
    STEPS,
    duration_text,
    num_bytes,
    percent,
    seconds,
    share_text,
    size_text,
)
from memboard.tb_plugin.analysis.findings.trace import advice
from memboard.tb_plugin.analysis.findings.trace.finding import (
    HOST_TEXT,
    PEER,
    trace_finding,
)
from memboard.tb_plugin.analysis.kernel_names.matrix_cores import (
    AMD_WARP_SIZE,
    KNOWN_SHARE,
    is_amd,
    may_use_cores,
)
from memboard.tb_plugin.analysis.operators.operators import is_eligible
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.devices import device_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.findings import Finding

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
        yield trace_finding(
            profile,
            "near_capacity",
            "Nearly full device",
            f"Device {device} was {share_text(peak / total)} full:"
            f" {size_text(peak)} of {size_text(total)} allocated at the peak.",
            advice.memory(profile),
            device=device,
            evidence=(
                num_bytes("peak", "allocated at the peak", peak, f"device {device}"),
                num_bytes(
                    "total", "device memory", total, f"device {device}", sure=False
                ),
            ),
            rule=f"{PEER}: more than {share_text(NEAR_CAPACITY)} of the device",
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
    yield trace_finding(
        profile,
        "small_kernels",
        "Small kernels",
        f"{share_text(share)} of the kernels are shorter than"
        f" {duration_text(SMALL_KERNEL_NS / 1e9)}: too short to be worth their launch. A"
        f" step runs {num}.",
        *advice.launches(profile),
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
            yield trace_finding(
                profile,
                "idle",
                "Idle device",
                f"{device_title(profile.trace, use.device)} is used"
                f" {share_text(use.utilization)} of the time.",
                advice.work(profile, tuple(HOST_TEXT)),
                device=use.device,
                evidence=(
                    percent("utilization", "at least one kernel runs", use.utilization),
                ),
                cost=1 - use.utilization,
                rule=f"{PEER}: utilization below {share_text(LOW_UTILIZATION)}",
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
        yield trace_finding(
            profile,
            "empty_device",
            "Kernels too small for the device",
            f"Kernels leave most of {device_title(profile.trace, use.device)} idle:"
            " estimated SM efficiency"
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
"""Of NVIDIA's; AMD numbers its devices otherwise."""
_INSTINCT: Final = re.compile(r"\bMI\d{3}")
_MATRIX_CORE_GFX: Final = (9, 4)
"""gfx94 and later have matrix cores; before them only those called Instinct MI100 to MI250."""


def no_tensor_cores(profile: TraceProfile) -> Iterator[Finding]:
    """Operators could use tensor cores, no kernel does, and that is known of enough."""
    devices = profile.trace.facts.devices
    times, cores = profile.times, profile.times.matrix_cores
    if not any(map(_has_cores, devices)) or (cores.is_used & times.are_kernels).any():
        return
    decidable = times.are_kernels & may_use_cores(profile.trace)
    decidable_ns = int(times.work_ns[decidable].sum())
    known_ns = int(times.work_ns[decidable & cores.is_known].sum())
    if known_ns < KNOWN_SHARE * decidable_ns:
        return
    table, strings = profile.operators, profile.trace.strings
    kernel_ns = sum(use.kernel_ns for use in profile.devices)
    eligible_ns = sum(
        int(own)
        for name_row, own in zip(table.name, table.kernel_self_ns, strict=True)
        if own and is_eligible(strings[int(name_row)])
    )
    if eligible_ns and decidable_ns:
        share, known_share = eligible_ns / kernel_ns, known_ns / decidable_ns
        core_name = "matrix cores" if is_amd(devices) else "tensor cores"
        yield trace_finding(
            profile,
            "no_tensor_cores",
            f"No {core_name}",
            f"No kernel uses {core_name}; operators that could take {share_text(share)} of"
            " the kernels' time.",
            advice.data_types(profile),
            evidence=(
                percent(
                    "eligible", "operators that could use them", share, "kernel time"
                ),
                percent(
                    "known",
                    f"known not to use {core_name}",
                    known_share,
                    "time of kernels that could",
                    sure=known_share == 1,
                ),
            ),
            rule=f"{PEER}: eligible operators, no tensor cores, on capability 7.0 and up;"
            f" here also on AMD Instinct, and only where {share_text(KNOWN_SHARE)} of the"
            " time of kernels that could use them are known",
        )


def _has_cores(device: Mapping[str, Any]) -> bool:
    if is_amd((device,)):
        is_instinct = _INSTINCT.search(str(device.get("name", ""))) is not None
        return is_instinct or (
            device.get("warpSize") == AMD_WARP_SIZE
            and advice.capability(device) >= _MATRIX_CORE_GFX
        )
    return advice.capability(device) >= TENSOR_CORE_CAPABILITY
