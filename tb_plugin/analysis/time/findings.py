"""What slows a profiled training down, told from one trace.

Each function gives the facts of one finding, or None where it does not apply. Those that
torch-tb-profiler has keep its thresholds; the others ask for an effect worth mending.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.time.operators import is_eligible
from tb_plugin.analysis.time.slice_roles import Role
from tb_plugin.analysis.trace.texts import texts_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tb_plugin.analysis.time.device_use import DeviceUse
    from tb_plugin.analysis.trace.profile import TraceProfile

LOADING_SHARE: Final = 0.05
"""torch-tb-profiler's, as the next five."""
COMMUNICATION_SHARE: Final = 0.10
LOW_UTILIZATION: Final = 0.50
NEAR_CAPACITY: Final = 0.90
NCCL_CAPABILITY: Final = (3, 5)
TENSOR_CORE_CAPABILITY: Final = (7, 0)

HOST_SHARE: Final = 0.30
"""Of the steps, in which the device waited for the host."""
SMALL_KERNEL_NS: Final = 10_000
"""About what launching a kernel takes on the host."""
SMALL_SHARE: Final = 0.50
"""Of the kernels that are small."""
EMPTY_FACTOR: Final = 0.60
"""SM efficiency below this share of the utilization: kernels leave most SMs idle."""

_DATA_PARALLEL: Final = re.compile(r"DataParallel\.forward")
_DISTRIBUTED: Final = re.compile(r"DistributedDataParallel\.forward|FSDP::")
_CUDA: Final = 1
_HIP: Final = 6


@dataclass(frozen=True, slots=True)
class Loading:
    """Steps wait for data."""

    share: float


@dataclass(frozen=True, slots=True)
class SingleProcess:
    """Several devices are driven by one process through DataParallel."""

    num_devices: int


@dataclass(frozen=True, slots=True)
class NoNccl:
    """Ranks with devices talk through a backend of the host."""

    backend: str


@dataclass(frozen=True, slots=True)
class Communicating:
    """Communication that no computation hides."""

    share: float
    """Of the steps' time, exposed."""
    hidden: float
    """Of communication, what is hidden."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A device that has nothing to do most of the time."""

    device: int
    utilization: float


@dataclass(frozen=True, slots=True)
class NoTensorCores:
    """Matrix products without tensor cores, on a device that has them."""

    share: float
    """Of kernel time, that of operators which could use them."""


@dataclass(frozen=True, slots=True)
class NearCapacity:
    """A device is nearly full."""

    device: int
    peak_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class SmallKernels:
    """Many kernels so short that launching them takes as long."""

    share: float
    """Of the kernels."""
    num_per_step: float
    median_ns: int
    idle: float
    """Of the device's time, in which no kernel ran."""


@dataclass(frozen=True, slots=True)
class EmptyDevice:
    """Kernels run, and leave most of the device idle: batches are small."""

    device: int
    utilization: float
    sm_efficiency: float


@dataclass(frozen=True, slots=True)
class HostBound:
    """The device waits for the host between kernels."""

    share: float
    """Of the steps' time: runtime, operators and the rest, while nothing ran there."""
    role: Role
    """What most of it was."""


def loading(profile: TraceProfile) -> Loading | None:
    """Whether the steps wait for data."""
    share = float(profile.shares[Role.DATALOADER])
    return Loading(share) if share > LOADING_SHARE else None


def single_process(profile: TraceProfile) -> SingleProcess | None:
    """Whether DataParallel drives several devices."""
    names = _host_names(profile)
    parallel = any(
        _DATA_PARALLEL.search(name) and not name.startswith("Distributed")
        for name in names
    )
    num_devices = len(profile.devices)
    return SingleProcess(num_devices) if parallel and num_devices > 1 else None


def no_nccl(profile: TraceProfile) -> NoNccl | None:
    """Whether ranks with devices talk through the host."""
    facts = profile.trace.facts
    capable = [one for one in facts.devices if _capability(one) >= NCCL_CAPABILITY]
    if not profile.devices or not capable:
        return None
    backend = facts.backend
    distributed = any(_DISTRIBUTED.search(name) for name in _host_names(profile))
    uses_host = backend in ("gloo", "mpi", "ucc") or (
        not backend and distributed and _is_on_host(profile)
    )
    return NoNccl(backend or "gloo") if uses_host else None


def communicating(profile: TraceProfile) -> Communicating | None:
    """Whether exposed communication takes much of the steps."""
    parts = profile.parts
    total = int(parts.parts_ns.sum())
    if not total:
        return None
    share = int(parts.exposed_ns.sum()) / total
    all_ns = int(parts.communication_ns.sum())
    if share <= COMMUNICATION_SHARE:
        return None
    return Communicating(share, int(parts.overlap_ns.sum()) / all_ns)


def idle(profile: TraceProfile) -> tuple[Idle, ...]:
    """Devices with a low utilization."""
    return tuple(
        Idle(use.device, use.utilization)
        for use in profile.devices
        if use.utilization is not None and use.utilization < LOW_UTILIZATION
    )


def no_tensor_cores(profile: TraceProfile) -> NoTensorCores | None:
    """Whether operators could use tensor cores, and no kernel does."""
    capable = any(
        _capability(one) >= TENSOR_CORE_CAPABILITY
        for one in profile.trace.facts.devices
    )
    if not capable or any(use.tensor_core_share for use in profile.devices):
        return None
    table, strings = profile.operators, profile.trace.strings
    kernel_ns = sum(use.kernel_ns for use in profile.devices)
    eligible_ns = sum(
        int(own)
        for name, own in zip(table.name, table.kernel_self_ns, strict=True)
        if own and is_eligible(strings[int(name)])
    )
    return NoTensorCores(eligible_ns / kernel_ns) if eligible_ns else None


def near_capacity(profile: TraceProfile) -> tuple[NearCapacity, ...]:
    """Devices whose peak comes close to what they have."""
    memory = profile.trace.memory
    totals = {
        int(one.get("id", -1)): int(one.get("totalGlobalMem", 0))
        for one in profile.trace.facts.devices
        if isinstance(one.get("id"), int) and isinstance(one.get("totalGlobalMem"), int)
    }
    found = []
    on_gpu = np.isin(memory.device_type, (_CUDA, _HIP))
    for device in np.unique(memory.device[on_gpu]).tolist():
        chosen = on_gpu & (memory.device == device)
        peak = int(memory.allocated_bytes[chosen].max())
        total = totals.get(device, 0)
        if total and peak > NEAR_CAPACITY * total:
            found.append(NearCapacity(device, peak, total))
    return tuple(found)


def small_kernels(profile: TraceProfile) -> SmallKernels | None:
    """Whether the device idles between kernels that are hardly worth their launch."""
    durations = _kernel_durations(profile)
    if not len(durations) or not profile.devices:
        return None
    share = float((durations < SMALL_KERNEL_NS).mean())
    busy = max(use.utilization or 0.0 for use in profile.devices)
    if share < SMALL_SHARE or busy >= LOW_UTILIZATION:
        return None
    return SmallKernels(
        share,
        len(durations) / max(len(profile.steps), 1),
        int(np.median(durations)),
        1 - busy,
    )


def empty_devices(profile: TraceProfile) -> tuple[EmptyDevice, ...]:
    """Devices that are busy, but with kernels that fill a part of them only."""
    return tuple(
        EmptyDevice(use.device, use.utilization, use.sm_efficiency)
        for use in profile.devices
        if use.utilization is not None
        and use.sm_efficiency is not None
        and use.utilization >= LOW_UTILIZATION
        and use.sm_efficiency < EMPTY_FACTOR * use.utilization
        and not _is_mostly_communication(profile, use)
    )


def host_bound(profile: TraceProfile) -> HostBound | None:
    """Whether the device waits for the host in the middle of steps."""
    if not profile.devices:
        return None
    waits = {
        role: float(profile.shares[role])
        for role in (Role.RUNTIME, Role.CPU_EXEC, Role.OTHER)
    }
    share = sum(waits.values())
    if not share > HOST_SHARE:
        return None
    return HostBound(share, max(waits, key=lambda role: waits[role]))


def _host_names(profile: TraceProfile) -> list[str]:
    """Names of operators and annotations."""
    trace = profile.trace
    names = trace.slices.name[profile.times.nodes.kept]
    return [text for _, text in texts_in(trace.strings, names)]


def _is_on_host(profile: TraceProfile) -> bool:
    own = profile.collectives
    return len(own) > 0 and not np.isin(own.row, profile.trace.device_work.row).any()


def _is_mostly_communication(profile: TraceProfile, use: DeviceUse) -> bool:
    """Kernels of collectives take few SMs, by design."""
    return int(profile.parts.communication_ns.sum()) * 2 > use.busy_ns


def _kernel_durations(profile: TraceProfile) -> Any:
    rows = profile.trace.device_work.row
    kernels = rows[profile.roles[rows] == Role.KERNEL]
    return profile.trace.slices.duration_ns[kernels]


def _capability(device: Mapping[str, Any]) -> tuple[int, int]:
    """Compute capability; (0, 0) where the trace does not say it."""
    found = device.get("computeMajor"), device.get("computeMinor")
    return found if all(type(one) is int for one in found) else (0, 0)  # type: ignore[return-value]
