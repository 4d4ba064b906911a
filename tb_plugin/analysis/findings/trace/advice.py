"""Advice on a trace: what the names in it show to be in use already is not advised."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.sizes import capitalized, counted
from memboard.tb_plugin.analysis.kernel_names.matrix_cores import is_amd
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.trace.devices import graphs_of_device
from memboard.tb_plugin.analysis.trace.texts import texts_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.analysis.trace.trace import Trace

AMPERE: Final = (8, 0)
"""Compute capability from which on tensor cores know bfloat16 and TF32."""

MAX_NAMES: Final = 200_000
"""Names that are looked at."""


@dataclass(frozen=True, slots=True)
class TraceSetup:
    """How a traced program ran, by the names of what it did."""

    trains: bool
    """A backward or an optimizer ran."""
    has_workers: bool
    """Batches came from worker processes of a DataLoader."""
    loads_itself: bool
    """Batches came from a DataLoader without any."""
    uses_ddp: bool
    uses_fsdp: bool
    is_compiled: bool
    uses_graphs: bool
    reads_device: bool
    """The host read values of the device, and waited for them."""
    optimizes: bool
    """An optimizer ran that updates one parameter at a time."""


_SEEN: Final[dict[str, re.Pattern[str]]] = {
    "trains": re.compile(r"autograd::engine|Optimizer\.step#|Backward\d+$"),
    "has_workers": re.compile(r"_MultiProcessingDataLoaderIter"),
    "loads_itself": re.compile(r"_SingleProcessDataLoaderIter"),
    "uses_ddp": re.compile(r"DistributedDataParallel\.forward"),
    "uses_fsdp": re.compile(r"FSDP::|FullyShardedDataParallel"),
    "is_compiled": re.compile(
        r"Torch-Compiled Region|CompiledFunction|CompiledFxGraph|^triton_"
    ),
    "uses_graphs": re.compile(r"^(cuda|cu|hip)GraphLaunch$"),
    "reads_device": re.compile(r"^aten::(item|_local_scalar_dense|is_nonzero)$"),
    "optimizes": re.compile(r"Optimizer\.step#"),
}
_TOGETHER: Final = re.compile(r"^aten::_(foreach|fused)_")
"""Operators that update many parameters at once."""


def setup_of(trace: Trace) -> TraceSetup:
    """By the names of a trace's slices."""
    names = texts_in(trace.strings, trace.slices.name)
    seen = dict.fromkeys(_SEEN, False)
    together = False
    for _, name in islice(names, MAX_NAMES):
        together = together or bool(_TOGETHER.search(name))
        for key, pattern in _SEEN.items():
            seen[key] = seen[key] or bool(pattern.search(name))
    seen["optimizes"] &= not together
    return TraceSetup(**seen)


_PREFETCH: Final = (
    "let them prefetch more batches (prefetch_factor), and keep them alive between epochs"
    " (persistent_workers=True)."
)


def load_in_workers(num: int | None, has_some: bool | None = None) -> str:
    """On waits for a DataLoader of `num` workers; None: how many is not known.

    `has_some`: whether it has any; None: not known.
    """
    if num:
        return (
            f"Give the DataLoader more than its {counted(num, 'worker')} (num_workers),"
            f" {_PREFETCH}"
        )
    if num == 0:
        return "Load in worker processes, which prefetch (prefetch_factor): num_workers is 0."
    if has_some:
        return f"Give the DataLoader more workers (num_workers), {_PREFETCH}"
    if has_some is None:
        return (
            "Load in worker processes, or in more of them (num_workers). If there are"
            f" some, {_PREFETCH}"
        )
    return "Load in worker processes (num_workers), which prefetch (prefetch_factor)."


def loading(profile: TraceProfile, num_workers: int | None) -> Iterator[str]:
    """On steps that wait for a DataLoader; of how many workers, where that is known."""
    setup = setup_of(profile.trace)
    if num_workers is None and setup.loads_itself and not setup.has_workers:
        num_workers = 0
    yield load_in_workers(num_workers, setup.has_workers)
    yield "Move decoding and augmentation out of the training process."
    if profile.devices:
        yield "Use pin_memory=True and non_blocking copies."


def communication(profile: TraceProfile) -> Iterator[str]:
    """On communication that no computation hides."""
    setup = setup_of(profile.trace)
    if setup.uses_ddp:
        yield "Accumulate gradients over several batches, and communicate once (no_sync)."
        yield (
            "Overlap it with computation (bucket_cap_mb and static_graph of DDP), or"
            " compress gradients (DDP communication hooks)."
        )
    if setup.uses_fsdp:
        yield (
            "Accumulate gradients over several batches, and communicate once"
            " (set_requires_gradient_sync of FSDP2, no_sync of FSDP1)."
        )
        yield (
            "Gather parameters earlier (set_modules_to_forward_prefetch of FSDP2,"
            " forward_prefetch of FSDP1)."
        )
    if not (setup.uses_ddp or setup.uses_fsdp):
        yield (
            "Overlap it with computation: start collectives with async_op=True, and wait"
            " where their results are needed."
        )


def memory(profile: TraceProfile) -> str:
    """On a device that is nearly full."""
    setup = setup_of(profile.trace)
    if not setup.trains:
        return "Use smaller batches, or a smaller data type."
    shard = ""
    if profile.trace.facts.world_size > 1 and not setup.uses_fsdp:
        shard = ", or shard states (FSDP2)"
    return f"Checkpoint activations, or train in mixed precision{shard}."


def host(profile: TraceProfile) -> Iterator[str]:
    """On a device that waits for the host."""
    yield from launches(profile)
    if setup_of(profile.trace).reads_device:
        yield (
            "Avoid calls that make the host wait: .item(), .cpu(), printing losses at"
            " each step."
        )


def launches(profile: TraceProfile) -> Iterator[str]:
    """Ways to launch fewer kernels that are not in use; nothing where all are."""
    setup = setup_of(profile.trace)
    ways = [
        ("compile the model (torch.compile)", not setup.is_compiled),
        (f"capture {graphs_of_device(profile.trace)}", not setup.uses_graphs),
        ("use a fused or foreach optimizer", setup.optimizes),
    ]
    new = [way for way, is_new in ways if is_new]
    if new:
        text = " or ".join(filter(None, (", ".join(new[:-1]), new[-1])))
        yield f"{capitalized(text)}."


_FOUND_APART: Final = {
    Role.DATALOADER: "data",
    Role.COMMUNICATION: "communication",
}
"""Waits that are findings of their own."""


def work(profile: TraceProfile, on_host: Collection[Role]) -> str:
    """On an idle device: larger batches help where it waits for the host's own work."""
    shares = profile.shares
    role = max(_FOUND_APART, key=lambda candidate: float(shares[candidate]))
    if float(shares[role]) > sum(float(shares[host_role]) for host_role in on_host):
        return f"Most of what it waits for is {_FOUND_APART[role]}: shorten that first."
    retune = ""
    if setup_of(profile.trace).trains:
        retune = ", and retune the learning rate: the model may converge differently"
    return f"Use larger batches, where memory allows{retune}."


def data_types(profile: TraceProfile) -> str:
    """Types for which all of the devices have tensor cores."""
    if is_amd(profile.trace.facts.devices):
        return "Use mixed precision (torch.autocast, bfloat16)."
    if min(map(capability, profile.trace.facts.devices)) >= AMPERE:
        return (
            "Use mixed precision (torch.autocast, bfloat16), or allow TF32"
            " (torch.set_float32_matmul_precision)."
        )
    scaler = ", with torch.amp.GradScaler" if setup_of(profile.trace).trains else ""
    return (
        f"Use mixed precision (torch.autocast, float16{scaler}): before capability 8.0"
        " tensor cores know neither bfloat16 nor TF32."
    )


def capability(device: Mapping[str, Any]) -> tuple[int, int]:
    """Compute capability; (0, 0) where the trace does not say it."""
    major, minor = device.get("computeMajor"), device.get("computeMinor")
    if isinstance(major, int) and isinstance(minor, int):
        return major, minor
    return 0, 0
