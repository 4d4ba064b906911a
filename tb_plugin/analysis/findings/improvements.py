"""Advice where nothing is wrong: what the recorded numbers of a training leave to gain.

Time comes first where memory is left, memory where it is not: of both, only one is short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from memboard.collector.format.sizes import fixed
from memboard.tb_plugin.analysis.findings.conditions import advice_of
from memboard.tb_plugin.analysis.findings.text import (
    num_bytes,
    share_text,
    size_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.tb_plugin.analysis.findings.conditions import Setup
    from memboard.tb_plugin.api.findings import Advice, Evidence, Finding

MIN_STEPS: Final = 10
"""Fewer may not have reached the peak of the training."""
FREE_SHARE: Final = 0.25
"""Of a device: with as much left, memory is not what limits a training."""
UNUSED_SHARE: Final = 0.15
"""Of a device: as much that is reserved and not allocated would be room for more."""
ACTIVATIONS_SHARE: Final = 0.4
OPTIMIZER_SHARE: Final = 0.25
"""Of the peak of a tracked step: less of these would be felt."""
WHOLE_STATES: Final = 1.9
"""Optimizer state, in the bytes of the parameters: with two states in 8 bits it is one at
most, of parameters in 16 bits."""


@dataclass(frozen=True, slots=True)
class Room:
    """Memory left on the device of the rank that has the least left."""

    rank: int
    is_only_rank: bool
    capacity_bytes: float
    free_bytes: float
    """When most of the device was used."""
    counts_others: bool
    """Whether that is less what other processes used, too."""

    @property
    def share(self) -> float:
        return self.free_bytes / self.capacity_bytes


@dataclass(frozen=True, slots=True)
class UnusedReserve:
    """What a rank had reserved at its highest and no tensor used."""

    rank: int
    reserved_bytes: float
    unused_bytes: float


@dataclass(frozen=True, slots=True)
class TrackedStep:
    """What a step of training held at its peak, by category."""

    step: int | None
    rank: int
    by_category: Mapping[str, float]
    input_bytes: float
    """Of the activations: what no module can recompute."""
    recomputes: bool
    """Whether a module ran again in backward."""

    @property
    def peak_bytes(self) -> float:
        return sum(self.by_category.values())

    @property
    def text(self) -> str:
        """`step 412 on rank 3`."""
        of = "the tracked call" if self.step is None else f"step {self.step:,}"
        return f"{of} on rank {self.rank}"


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """How a run in which nothing is wrong uses its devices; None: not recorded."""

    room: Room
    unused: UnusedReserve | None
    tracked: TrackedStep | None
    setup: Setup
    has_history: bool


def with_improvements(peak: Finding, use: MemoryUse) -> Finding:
    """The finding about the highest peak, with what would make the training better."""
    ways = _ways(use)
    items = list(ways)
    if not items:
        return peak
    return structs.replace(
        peak,
        advice=tuple(advice for advice, _ in items),
        evidence=(*peak.evidence, *(row for _, rows in items for row in rows)),
        rule=f"advice on speed with {share_text(FREE_SHARE)} of the device left, on memory"
        f" with less: {share_text(UNUSED_SHARE)} of it reserved and unused, or"
        f" {share_text(ACTIVATIONS_SHARE)} of a tracked peak in activations,"
        f" {share_text(OPTIMIZER_SHARE)} in the optimizer's state",
    )


def _ways(use: MemoryUse) -> Iterator[tuple[Advice, tuple[Evidence, ...]]]:
    room, tracked = use.room, use.tracked
    if room.share >= FREE_SHARE:
        # Another process may have what is left.
        if room.counts_others:
            yield _use_room(room, tracked)
        return
    if use.unused is not None:
        yield from _find_unused(use.unused, room, use)
    if tracked is not None:
        yield from _recompute(tracked)
        yield from _smaller_states(tracked)


def _use_room(
    room: Room, tracked: TrackedStep | None
) -> tuple[Advice, tuple[Evidence, ...]]:
    least = "" if room.is_only_rank else ", which has the least left"
    text = (
        f"{size_text(room.free_bytes)} of the device's {size_text(room.capacity_bytes)}"
        f" stay free on rank {room.rank}{least}: there is room for a larger batch."
    )
    if tracked is not None and tracked.recomputes:
        text += (
            " Activations are recomputed in backward: storing those of some layers uses"
            " the room as well, and saves their second forward pass."
        )
    free = num_bytes(
        "free", "free when most was used", room.free_bytes, f"rank {room.rank}"
    )
    return advice_of(text, None, "free"), (free,)


def _find_unused(
    unused: UnusedReserve, room: Room, use: MemoryUse
) -> Iterator[tuple[Advice, tuple[Evidence, ...]]]:
    if unused.unused_bytes < UNUSED_SHARE * room.capacity_bytes:
        return
    if use.has_history:
        see = "Segments shows what pins it."
    elif use.setup.can_record_history:
        see = (
            "Record the allocator's history (history=True); Segments then shows what"
            " pins it."
        )
    else:
        return
    scope = f"rank {unused.rank}"
    text = (
        f"{size_text(unused.unused_bytes)} of the {size_text(unused.reserved_bytes)} that"
        f" rank {unused.rank} reserves hold no tensor, even at the peak. {see}"
    )
    yield (
        advice_of(text, unused.unused_bytes, "unused"),
        (
            num_bytes("unused", "reserved and unused", unused.unused_bytes, scope),
            num_bytes(
                "reserved", "reserved peak", unused.reserved_bytes, scope, sure=False
            ),
        ),
    )


def _recompute(
    tracked: TrackedStep,
) -> Iterator[tuple[Advice, tuple[Evidence, ...]]]:
    activations = tracked.by_category.get("activation", 0.0) - tracked.input_bytes
    is_large = activations >= ACTIVATIONS_SHARE * tracked.peak_bytes
    if not is_large or tracked.recomputes:
        return
    apart = " without inputs" if tracked.input_bytes else ""
    text = (
        f"Activations{apart} are {size_text(activations)},"
        f" {share_text(activations / tracked.peak_bytes)} of the peak of {tracked.text}, and"
        " no module recomputes them: checkpointing the layers that hold the most"
        " (torch.utils.checkpoint.checkpoint, use_reentrant=False) makes room for a larger"
        " batch, at the price of a second forward pass of these."
    )
    label = f"activations{apart} at the peak"
    row = num_bytes("activations", label, activations, tracked.text)
    yield advice_of(text, None, "activations"), (row,)


def _smaller_states(
    tracked: TrackedStep,
) -> Iterator[tuple[Advice, tuple[Evidence, ...]]]:
    states = tracked.by_category.get("optimizer", 0.0)
    params = tracked.by_category.get("param", 0.0)
    is_large = states >= OPTIMIZER_SHARE * tracked.peak_bytes
    if not is_large or not params or states < WHOLE_STATES * params:
        return
    text = (
        f"The optimizer's state is {size_text(states)},"
        f" {share_text(states / tracked.peak_bytes)} of the peak of {tracked.text} and"
        f" {fixed(states / params, 1)} times the parameters: in 8 bits (bitsandbytes'"
        " AdamW8bit) it takes half as much or less."
    )
    yield (
        advice_of(text, states / 2, "states"),
        (
            num_bytes("states", "optimizer state at the peak", states, tracked.text),
            num_bytes(
                "params", "parameters at the peak", params, tracked.text, sure=False
            ),
        ),
    )
