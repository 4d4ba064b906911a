"""How a run in which nothing is wrong uses its devices, for advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.findings.conditions import memory_fraction_in
from memboard.tb_plugin.analysis.findings.improvements import (
    MIN_STEPS,
    MemoryUse,
    Room,
    TrackedStep,
    UnusedReserve,
)
from memboard.tb_plugin.facts.modules.choice import WindowQuery, choose
from memboard.tb_plugin.facts.modules.tracked_peak import tracked_peak
from memboard.tb_plugin.facts.ranks.columns import ALLOCATED, DEVICE_USED, RESERVED
from memboard.tb_plugin.facts.ranks.headroom import device_headroom
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.ranks.rank_strip import strip_of
from memboard.tb_plugin.facts.series.selection import RanksQuery, chosen_ranks
from memboard.tb_plugin.facts.view import View, setup_of

if TYPE_CHECKING:
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.ranks.rank_strip import Strip
    from memboard.tb_plugin.formats.recording.captures.modules import ModulesReader


def memory_use_of(
    view: View[RanksQuery], facts: FactsReader, modules: ModulesReader
) -> MemoryUse | None:
    """Of the shown ranks; None where no advice can rest on it.

    On a virtual GPU what is left is predicted, which has its own page. Under a limit of the
    process, what is left on the device is not its own.
    """
    run = view.run
    numbers = RankNumbers(facts, run, view.budget)
    strip = strip_of(run, chosen_ranks(run, view.query), numbers)
    settings = [file.header.allocator_settings for file in run.files.values()]
    if (
        view.summary.virtual_gpu
        or strip.capacity_kind != "device"
        or strip.peak != ALLOCATED
        or strip.num_steps < MIN_STEPS
        or memory_fraction_in(settings) is not None
    ):
        return None
    room = _room(numbers, strip)
    if room is None:
        return None
    return MemoryUse(
        room=room,
        unused=_unused(numbers, strip),
        tracked=_tracked(view, modules),
        setup=setup_of(run),
        has_history=bool(run.histories.all(run, view.budget)),
    )


def _room(numbers: RankNumbers, strip: Strip) -> Room | None:
    """None where a rank lacks it: that one may have the least."""
    free = device_headroom(numbers, strip).value
    if not len(free) or np.isnan(free).any():
        return None
    used = numbers.highest(strip.ranks, DEVICE_USED).value
    index = int(np.argmin(free))
    return Room(
        rank=strip.ranks[index],
        is_only_rank=len(strip.ranks) == 1,
        capacity_bytes=float(strip.capacity_bytes[index]),
        free_bytes=float(free[index]),
        counts_others=not np.isnan(used).any(),
    )


def _unused(numbers: RankNumbers, strip: Strip) -> UnusedReserve | None:
    unused = numbers.fragmentation(strip.ranks, RESERVED).value
    if np.isnan(unused).all():
        return None
    index = int(np.nanargmax(unused))
    reserved = numbers.highest(strip.ranks, RESERVED).value
    return UnusedReserve(
        strip.ranks[index], float(reserved[index]), float(unused[index])
    )


def _tracked(view: View[RanksQuery], modules: ModulesReader) -> TrackedStep | None:
    """The tracked step that Modules opens at; None where it does not train on a device."""
    query = WindowQuery(run=view.query.run, rank=view.query.rank)
    choice = choose(
        modules, View(view.series, view.run, view.summary, query, view.budget)
    )
    if choice is None or choice.opened is None or choice.device_name.startswith("cpu"):
        return None
    memory = choice.opened.memory
    peak = tracked_peak(memory, choice.device)
    states = memory.states(choice.device)
    if peak is None or "peak_backward" not in states:
        return None
    return TrackedStep(
        step=choice.ranks[choice.rank].step,
        rank=choice.rank,
        by_category=peak.by_category,
        input_bytes=peak.input_bytes,
        recomputes="pre_forward_ac" in states,
    )
