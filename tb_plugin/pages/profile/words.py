"""Findings of a trace in words: what was found, what that rests on, what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin import api
from tb_plugin.analysis.time import findings as found
from tb_plugin.analysis.time.slice_roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.analysis.trace.profile import TraceProfile

PEER: Final = "torch-tb-profiler 0.4.3"
OWN: Final = "MemBoard"

_HOST_WORDS: Final = {
    Role.RUNTIME: "calls of the device's runtime",
    Role.CPU_EXEC: "operators on the host",
    Role.OTHER: "code outside of operators",
}


def profile_findings(profile: TraceProfile) -> tuple[api.ProfileFinding, ...]:
    """All that was found, in the order in which it is worth mending."""
    return tuple(
        finding
        for words in (
            _loading,
            _communicating,
            _no_nccl,
            _single_process,
            _near_capacity,
            _host_bound,
            _small_kernels,
            _idle,
            _empty_devices,
            _no_tensor_cores,
        )
        for finding in words(profile)
    )


def pct(share: float) -> str:
    """A share in percent, to one digit below ten."""
    value = 100 * share
    return f"{value:.1f} %" if abs(value) < 10 else f"{value:.0f} %"


def _loading(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    one = found.loading(profile)
    if one is not None:
        yield api.ProfileFinding(
            key="loading",
            sentence=f"Steps wait for data {pct(one.share)} of the time.",
            evidence=(
                (
                    f"{pct(one.share)} of the profiled steps lies inside the dataloader's"
                    " __next__ while no device, runtime call or collective is busy."
                ),
            ),
            advice=(
                (
                    "Load in worker processes (num_workers), and prefetch more"
                    " (prefetch_factor)."
                ),
                (
                    "Use pin_memory=True and non_blocking copies; move decoding and"
                    " augmentation out of the training process."
                ),
            ),
            rule=f"{PEER}: more than {pct(found.LOADING_SHARE)}",
        )


def _communicating(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    one = found.communicating(profile)
    if one is not None:
        yield api.ProfileFinding(
            key="communicating",
            sentence=f"Exposed communication takes {pct(one.share)} of the steps.",
            evidence=(
                f"{pct(one.hidden)} of all communication is hidden behind computation.",
            ),
            advice=(
                (
                    "Accumulate gradients over several batches, and communicate once"
                    " (no_sync, set_requires_gradient_sync)."
                ),
                (
                    "Let it overlap: bucket sizes and static_graph of DDP, prefetching of"
                    " FSDP2; or compress gradients (DDP communication hooks)."
                ),
            ),
            rule=f"{PEER}: more than {pct(found.COMMUNICATION_SHARE)}; here of exposed"
            " communication alone",
        )


def _no_nccl(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    one = found.no_nccl(profile)
    if one is not None:
        yield api.ProfileFinding(
            key="no_nccl",
            sentence=f"Ranks with GPUs talk through {one.backend}.",
            evidence=(f"The backend is {one.backend}; the trace has CUDA devices.",),
            advice=('Initialise with backend="nccl" (or "cpu:gloo,cuda:nccl").',),
            rule=f"{PEER}: distributed training without NCCL on devices that have it",
        )


def _single_process(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    one = found.single_process(profile)
    if one is not None:
        yield api.ProfileFinding(
            key="single_process",
            sentence=f"One process drives {one.num_devices} devices by DataParallel.",
            evidence=("DataParallel.forward is in the trace.",),
            advice=("Use DistributedDataParallel, or FSDP2: one process per device.",),
            rule=f"{PEER}: DataParallel with more than one device",
        )


def _near_capacity(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    for one in found.near_capacity(profile):
        share = one.peak_bytes / one.total_bytes
        yield api.ProfileFinding(
            key="near_capacity",
            sentence=f"Device {one.device} was {pct(share)} full.",
            evidence=(
                (
                    f"{_gib(one.peak_bytes)} allocated at the peak, of"
                    f" {_gib(one.total_bytes)}."
                ),
            ),
            advice=(
                (
                    "Checkpoint activations, train in mixed precision, or shard states"
                    " (FSDP2): see Allocations and Modules for what holds the memory."
                ),
            ),
            rule=f"{PEER}: more than {pct(found.NEAR_CAPACITY)} of the device",
        )


def _host_bound(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    one = found.host_bound(profile)
    if one is not None:
        yield api.ProfileFinding(
            key="host_bound",
            sentence=f"The device waits for the host {pct(one.share)} of the time.",
            evidence=(f"Most of that is {_HOST_WORDS[one.role]}.",),
            advice=(
                "Compile the model (torch.compile), or capture CUDA graphs.",
                (
                    "Avoid what makes the host wait: .item(), .cpu(), printing losses each"
                    " step; use fused or foreach optimizers."
                ),
            ),
            rule=f"{OWN}: more than {pct(found.HOST_SHARE)} of the steps without"
            " device work, loading or communication",
        )


def _small_kernels(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    one = found.small_kernels(profile)
    if one is not None:
        yield api.ProfileFinding(
            key="small_kernels",
            sentence=f"{one.num_per_step:,.0f} kernel{'s' * (one.num_per_step >= 1.5)} a step, of which {pct(one.share)}"
            " are hardly worth their launch.",
            evidence=(
                (
                    f"Half of the kernels take {one.median_ns / 1e3:.1f} µs or less; no"
                    f" kernel runs {pct(one.idle)} of the time."
                ),
            ),
            advice=(
                (
                    "Fuse them (torch.compile, fused optimizers), capture CUDA graphs, or"
                    " make batches larger."
                ),
            ),
            rule=f"{OWN}: half of the kernels below"
            f" {found.SMALL_KERNEL_NS / 1e3:.0f} µs on a device that idles",
        )


def _idle(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    for one in found.idle(profile):
        yield api.ProfileFinding(
            key="idle",
            sentence=f"GPU {one.device} is used {pct(one.utilization)} of the time.",
            evidence=("So long ran at least one kernel, of the profiled steps.",),
            advice=(
                (
                    "Make batches larger: that may change how the model converges, so"
                    " retune the learning rate."
                ),
            ),
            rule=f"{PEER}: utilization below {pct(found.LOW_UTILIZATION)}",
        )


def _empty_devices(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    for one in found.empty_devices(profile):
        yield api.ProfileFinding(
            key="empty_device",
            sentence=f"Kernels leave most of GPU {one.device} idle: est. SM efficiency"
            f" {pct(one.sm_efficiency)}.",
            evidence=(
                (
                    f"A kernel ran {pct(one.utilization)} of the time, with too few blocks"
                    " to fill the device."
                ),
            ),
            advice=("Make batches or matrices larger; fuse small kernels.",),
            rule=f"{OWN}: SM efficiency below {found.EMPTY_FACTOR:g} of the utilization",
        )


def _no_tensor_cores(profile: TraceProfile) -> Iterator[api.ProfileFinding]:
    one = found.no_tensor_cores(profile)
    if one is not None:
        yield api.ProfileFinding(
            key="no_tensor_cores",
            sentence="No kernel uses tensor cores.",
            evidence=(f"Operators that could take {pct(one.share)} of kernel time.",),
            advice=(
                (
                    "Train in mixed precision (torch.autocast, bfloat16), or allow TF32"
                    " (torch.set_float32_matmul_precision)."
                ),
            ),
            rule=f"{PEER}: eligible operators, no tensor cores, on capability 7.0 and up",
        )


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.2f} GiB"
