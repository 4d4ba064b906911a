"""The finding about reference cycles: memory that only the garbage collector frees.

Between two runs of the collector such memory rises step by step, and falls in the step of
the run: a sawtooth. What falls with it in other steps is the program's own doing, and a
collector that runs, or collects, in most steps proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.arrays import median
from memboard.tb_plugin.analysis.findings.conditions import advice_if, advice_of
from memboard.tb_plugin.analysis.findings.text import (
    count,
    num_bytes,
    of_rank,
    percent,
    share_text,
    size_text,
)
from memboard.tb_plugin.analysis.series.growth import NOISE, theil_sen
from memboard.tb_plugin.api.findings import Finding

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.api.findings import Advice, Evidence


MIN_FALLS: Final = 2
LARGE: Final = 0.25
"""Of the largest fall: smaller ones are noise."""
WORTH: Final = 0.05
"""Of the highest value: what a fall has to return in the median."""
LEAST_BYTES: Final = 1 << 20
EXPLAINED: Final = 0.9
"""Of all that fell: what has to fall in steps in which the collector collected something."""
CHANCE: Final = 1e-3
"""Of falls that have nothing to do with the collector: the chance that all are in steps in
which it collected as much."""
AT_ONCE: Final = 0.5
"""Of what a fall returns: what may have risen in one step. More is no accumulation."""
MIN_LOWS: Final = 5
"""Full collections after which something was left: fewer prove no growth."""
RISING: Final = 0.75
"""Of the steps from one of them to the next: in so many has to be more left."""
AUTOMATIC: Final = 100
"""Partial collections since the last full one, from which on the next is the collector's
own: its thresholds ask for 11 times 11. After fewer the program called gc.collect()."""
IN_MOST: Final = 0.75
"""Of slow steps: with full runs in so many, these may be their cause."""
IN_FEW: Final = 0.05
"""Of the other steps: full runs in more of them are no cause of slow ones."""
NOTABLE: Final = 0.05
"""Of the capacity: from here on the finding is a warning."""


@dataclass(frozen=True, slots=True)
class Collections:
    """What the collector's counters say, by step; running counts."""

    partial: Floats
    full: Floats
    objects: Floats


@dataclass(frozen=True, slots=True)
class CollectedSteps:
    """Full runs of the collector in some steps of a rank."""

    has_run: Floats
    """By step: 1 where one ran, 0 where none did; NaN: not recorded."""
    frees_cycles: bool
    """Reference cycles hold memory between its runs."""

    def full_runs(self, measured: Flags, slow: Flags) -> bool | None:
        """Whether full runs are in most of the slow steps, and hardly in any other.

        `slow`: of the steps that are `measured`. None: not recorded.
        """
        has_run = self.has_run[measured]
        own, others = has_run[slow], has_run[~slow]
        own, others = own[~np.isnan(own)], others[~np.isnan(others)]
        if not len(own) or not len(others):
            return None
        return bool(own.mean() >= IN_MOST and others.mean() <= IN_FEW)

    @property
    def advice(self) -> str:
        """What to do where these runs make steps slow."""
        if self.frees_cycles:
            return (
                "A full run of Python's garbage collector frees memory that reference"
                f" cycles hold, and is needed for that: break them, e.g. {CYCLES_ADVICE}"
            )
        return (
            "Make full runs of Python's garbage collector shorter, or rarer: call"
            " gc.freeze() once after the setup, so that they no longer walk its objects, or"
            " gc.disable() and gc.collect() where a pause costs least. No reference cycles"
            " were seen to hold memory."
        )


@dataclass(frozen=True, slots=True)
class Leak:
    """Growth of what full collections leave, in bytes: no cycles hold it."""

    pace: float  # Per step
    rise: float
    """From the first of these collections to the last."""
    num_steps: int  # Between these two


@dataclass(frozen=True, slots=True)
class Sawtooth:
    """Memory that rises step by step and falls when the collector runs; bytes."""

    num_falls: int
    num_steps: int
    fall: float
    """What a fall returns, in the median."""
    largest_fall: float
    explained: float
    """Share of all that fell that fell in steps with a collection."""
    num_objects: int
    """Collected in the step of a fall, in the median."""
    is_called: bool
    """Most falls are at full collections that the program itself called for."""
    rise: float = 0.0
    """What it rose by since the last fall."""
    num_since: int = 0
    pace: float = 0.0
    """What a step adds until a fall returns it, in the median."""
    leak: Leak | None = None
    """Of what full collections leave; None: it is not proved."""

    @property
    def held_bytes(self) -> int:
        """The most that cycles hold after the last step; a bound: lists rise as well."""
        return int(min(self.rise, max(self.largest_fall, self.pace * self.num_since)))


def sawtooth(memory: Floats, collections: Collections) -> Sawtooth | None:
    """The sawtooth in the memory at the end of consecutive steps; None: there is none."""
    columns = (memory, collections.partial, collections.full, collections.objects)
    measured = ~np.isnan(np.stack(columns)).any(axis=0)
    memory, partial, full, objects = (column[measured] for column in columns)
    if len(memory) < MIN_FALLS + 1:
        return None
    change = np.diff(memory)
    # The counts are read just before the memory: a run in between is in the next row.
    collected = np.diff(objects)
    collected = np.maximum(collected, np.append(collected[1:], 0))
    fallen = -np.minimum(change, 0)
    largest = float(fallen.max())
    falls = np.flatnonzero(fallen >= max(LARGE * largest, 1.0))
    fall = median(fallen[falls]) if len(falls) else 0.0
    if len(falls) < MIN_FALLS or fall < max(WORTH * float(memory.max()), LEAST_BYTES):
        return None
    explained = float(fallen[collected > 0].sum() / fallen.sum())
    least = collected[falls].min()
    share = np.count_nonzero(collected >= least) / len(collected)
    if explained < EXPLAINED or least <= 0 or share ** len(falls) > CHANCE:
        return None
    if not _accumulates(change, fallen, falls, collected):
        return None
    return Sawtooth(
        num_falls=len(falls),
        num_steps=len(change),
        fall=fall,
        largest_fall=largest,
        explained=explained,
        num_objects=int(median(collected[falls])),
        is_called=_is_called(partial, full, falls),
        rise=max(0.0, float(memory[-1] - memory[falls[-1] + 1])),
        num_since=len(change) - 1 - int(falls[-1]),
        pace=float(np.median(fallen[falls[1:]] / np.diff(falls))),
        leak=_leak(memory, full, falls),
    )


def _leak(memory: Floats, full: Floats, falls: Ints) -> Leak | None:
    """What grows below the sawtooth, seen where full collections have freed all cycles.

    Younger collections leave cycles, which would look like a leak until a full one.
    """
    runs = np.append(np.diff(full) > 0, False)
    lows = falls[runs[falls] | runs[falls + 1]] + 1
    if len(lows) < MIN_LOWS:
        return None
    left = memory[lows]
    pace = theil_sen(lows.astype(np.float64), left)
    num_steps = int(lows[-1] - lows[0])
    rest = left - pace * lows
    noise = median(np.abs(rest - median(rest)))
    rise = pace * num_steps
    is_seen = rise >= max(LEAST_BYTES, NOISE * noise)
    if not is_seen or np.mean(np.diff(left) > 0) < RISING:
        return None
    return Leak(pace, rise, num_steps)


def _accumulates(
    change: Floats, fallen: Floats, falls: Ints, collected: Floats
) -> bool:
    """Whether most falls return what rose over several steps, an object or more in each."""
    # What rose before the first fall is not known: the rows may begin within it.
    gradual = []
    for before, fall in pairwise(falls.tolist()):
        rises = np.maximum(change[before + 1 : fall], 0)
        num_rises = np.count_nonzero(rises)
        is_slow = num_rises > 1 and rises.max() <= AT_ONCE * fallen[fall]
        gradual.append(bool(is_slow and collected[fall] >= num_rises))
    return 2 * sum(gradual) > len(gradual)


def _is_called(partial: Floats, full: Floats, falls: Ints) -> bool:
    """Whether most falls are at full collections after too few partial ones."""
    runs = np.flatnonzero(np.diff(full) > 0)
    since = np.diff(partial[runs + 1], prepend=partial[0])
    called = runs[since < AUTOMATIC]
    is_called = np.isin(falls, called) | np.isin(falls + 1, called)
    num_called = int(np.count_nonzero(is_called))
    return 2 * num_called > len(falls)


def leak_text(leak: Leak) -> str:
    """The sentence behind the sawtooth's."""
    return (
        f" What full collections leave grows as well, by {size_text(leak.pace)} per step,"
        f" {size_text(leak.rise)} in {counted(leak.num_steps, 'step')}: no cycle holds that,"
        " the program still refers to it."
    )


FALL_LABEL: Final = "freed by a collection, median"


def cycles_text(teeth: Sawtooth, memory: str) -> str:
    """The sentence; `memory`: what rises, as its subject."""
    when = "Python's garbage collector runs"
    unless = ""
    if teeth.is_called:
        when = "the program calls gc.collect()"
        unless = ", unless the program frees it in the same steps"
    return (
        f"{memory} rises from step to step and falls by {size_text(teeth.fall)} when"
        f" {when}, {counted(teeth.num_falls, 'time')} in"
        f" {counted(teeth.num_steps, 'step')}, and hardly ever otherwise: reference cycles"
        f" hold it until then{unless}."
    )


def reference_cycles(
    rank: int, teeth: Sawtooth, *, memory: str, capacity: float | None
) -> Finding:
    """The finding. `memory`: `device memory` or `host memory`; `capacity`: of the device."""
    scope = f"rank {rank}, the last {counted(teeth.num_steps, 'step')}"
    is_large = capacity is None or teeth.largest_fall >= NOTABLE * capacity
    return Finding(
        id=f"reference_cycles-{rank}",
        key="reference_cycles",
        severity="warning" if is_large else "info",
        title="Memory in reference cycles",
        sentence=cycles_text(teeth, f"The {memory} of rank {rank}")
        + ("" if teeth.leak is None else leak_text(teeth.leak)),
        rank=rank,
        cost=teeth.largest_fall,
        evidence=(
            num_bytes("fall", FALL_LABEL, teeth.fall, scope),
            num_bytes("largest_fall", "the largest", teeth.largest_fall, scope),
            percent(
                "explained",
                "of all that was freed between steps, in steps with a collection",
                teeth.explained,
                scope,
                "what the program frees in the same steps counts as well",
            ),
            count("falls", "falls", teeth.num_falls, scope),
            count("objects", "objects collected, median", teeth.num_objects, scope),
            *_leak_evidence(teeth, scope),
        ),
        advice=cycles_advice(teeth, on_device=memory == "device memory"),
        place=of_rank("timeline", rank),
        rule=f"at least {MIN_FALLS} falls of {share_text(WORTH)} of the highest value;"
        f" {share_text(EXPLAINED)} of all that fell is in steps in which the collector"
        " collected objects, too rare for chance, and rose over several steps before",
    )


def _leak_evidence(teeth: Sawtooth, scope: str) -> tuple[Evidence, ...]:
    if teeth.leak is None:
        return ()
    label = "growth per step of what full collections leave"
    return (num_bytes("leak", label, teeth.leak.pace, scope),)


CYCLES_ADVICE: Final = (
    "an object that refers to itself through a hook, closure or callback (use weakref), an"
    " exception kept with its traceback, backward(create_graph=True)."
)
UNCOLLECTED_ADVICE: Final = (
    "Python's garbage collector made no full run in these steps. If gc.collect() every few"
    f" steps ends the growth, reference cycles hold the memory: break them, e.g."
    f" {CYCLES_ADVICE}"
)
"""On memory that grows, where only that condition is known."""
EXPERIMENT_ADVICE: Final = (
    "What Python's garbage collector did was not recorded. Call gc.collect() every few steps"
    " once: if that ends the growth, reference cycles hold the memory; if it does not,"
    " something still refers to it."
)
"""On memory that grows at no line that is known, where nothing is known of the collector."""
RELEASED_ADVICE: Final = (
    "If the program clears no list there, reference cycles hold the memory until the garbage"
    f" collector runs: break them, e.g. {CYCLES_ADVICE} Until then, gc.collect() every few"
    " steps bounds what they hold."
)
"""On memory that was freed before together with that of other rounds."""
_DEVICE_LEAK: Final = (
    "Look for lists and dicts that grow, and for tensors kept with their graphs."
)
_HOST_LEAK: Final = "tracemalloc or memray names the lines that allocated what is kept."
_DRAWN: Final = " torch.utils.viz._cycles.warn_tensor_cycles() draws the cycles that hold CUDA tensors."


def cycles_advice(teeth: Sawtooth, *, on_device: bool) -> tuple[Advice, ...]:
    """What to do about cycles that were recorded."""
    broken = advice_of(
        f"Break the cycles: {CYCLES_ADVICE}{_DRAWN if on_device else ''}",
        teeth.largest_fall,
        "largest_fall",
    )
    bounded = advice_if(
        not teeth.is_called,
        "Until they are broken, gc.collect() every few steps bounds what they hold; a"
        " call takes milliseconds to seconds.",
        None,
        "fall",
    )
    leaked = advice_if(
        teeth.leak is not None,
        "Find what else is retained from step to step: no collection frees it."
        f" {_DEVICE_LEAK if on_device else _HOST_LEAK}",
        None if teeth.leak is None else teeth.leak.rise,
        "leak",
    )
    return (broken, *bounded, *leaked)
