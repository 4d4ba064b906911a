"""The category of each allocation of a trace, and the module and phase it was for.

By the rules of recorded histories (`attribution_rules`: where it was made, when it went,
first one that fits), on what the slices around its events say (`trace_marks`) instead of
stacks, and by some that need what only a trace has. Where none fits it is `other`:
nothing is guessed. What was allocated before the trace began is known by its release
alone, and only if that lies in the trace.

Its module is the innermost one around it; in a backward the one of the forward operator
that an arrow `fwdbwd` names; else the unit of FSDP2 that was under way. Its phase is
FSDP2's annotation around it, or forward, backward, optimizer, ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.arrays import NOTHING, Table, changes, numbered, sums
from memboard.tb_plugin.analysis.categories.marks import (
    ALL_GATHER,
    MODULE,
    REDUCE_SCATTER,
    UNSHARD,
)
from memboard.tb_plugin.analysis.categories.phases import BACKWARD_PHASE, FORWARD, NONE
from memboard.tb_plugin.analysis.categories.rules import RULES, LifeFacts
from memboard.tb_plugin.analysis.trace_memory.autograd_nodes import backward_lives
from memboard.tb_plugin.analysis.trace_memory.event_places import EventPlaces
from memboard.tb_plugin.analysis.trace_memory.marks import COLLECTIVE, ZERO_GRAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes
    from memboard.tb_plugin.analysis.time.profiled_steps import ProfiledSteps
    from memboard.tb_plugin.analysis.trace.details import MemoryEvents
    from memboard.tb_plugin.analysis.trace_memory.events import MemoryPairs

OTHER: Final = CATEGORIES.index("other")
_MAX_PHASES: Final = 5
_FSDP_BUFFERS: Final = UNSHARD | ALL_GATHER | REDUCE_SCATTER


@dataclass(frozen=True, slots=True, eq=False)
class TraceLives(Table):
    """Allocations of a trace on all devices; columns of equal length, by `event`."""

    event: Ints
    """Memory event that made it; of what was there before, the one that freed it."""
    born: Ints
    """That event; NOTHING: before the trace began."""
    gone: Ints
    """Event that freed it; the number of events: it was still there."""
    is_lost: Flags
    """Its address was allocated again, and no release was seen: nobody knows when it
    went."""
    num_bytes: Ints
    category: Ints  # Index in `memboard.collector.format.memory.CATEGORIES`
    evidence: Ints  # Index in `EVIDENCE`
    module: Ints
    """Index in `modules`, or NOTHING."""
    phase: Ints
    """Index in `phases`, or NOTHING: in none."""
    modules: tuple[str, ...]
    phases: tuple[str, ...]


class _Facts(LifeFacts):
    """With what only traces have."""

    freed_by: Ints
    """Marks of what freed it; 0: nothing did, or it was not seen."""
    step_before_forward: Flags
    """Made in a step outside of any phase, before a forward that the step ran."""
    in_operator: Flags
    """Freed before the outermost operator that made it ended."""


_TRACE_RULES: Final[tuple[tuple[str, str, Callable[[_Facts], Flags]], ...]] = (
    (
        "a buffer of reduce-scatter's own",
        "reduce_scatter",
        lambda facts: facts.has(COLLECTIVE) & facts.has(REDUCE_SCATTER),
    ),
    (
        "freed by zero_grad",
        "grad",
        lambda facts: (
            (facts.freed_by & ZERO_GRAD != 0) & ~facts.has(ZERO_GRAD | _FSDP_BUFFERS)
        ),
    ),
    (
        "made by a backward, and freed when FSDP had reduced it",
        "unsharded_grad",
        lambda facts: (
            (facts.freed_by & REDUCE_SCATTER != 0)
            & (facts.made == BACKWARD_PHASE)
            & ~facts.has(_FSDP_BUFFERS)
        ),
    ),
    (
        "made by a backward, and let go of as it was accumulated",
        "grad",
        lambda facts: facts.backward.is_parameter_gradient & ~facts.has(_FSDP_BUFFERS),
    ),
    (
        "handed on by one node of a backward, and let go of behind another",
        "activation_grad",
        lambda facts: facts.backward.is_activation_gradient & ~facts.has(_FSDP_BUFFERS),
    ),
)
_LAST_RULES: Final[tuple[tuple[str, str, Callable[[_Facts], Flags]], ...]] = (
    (
        "made by a step before its forward, and held for it",
        "input",
        lambda facts: (
            facts.step_before_forward
            & facts.outlives
            & (facts.went != NOTHING)
            & (facts.num_phases <= _MAX_PHASES)
        ),
    ),
    ("freed by the operator that made it", "temp", lambda facts: facts.in_operator),
)
_ALL_RULES: Final = (*_TRACE_RULES, *RULES, *_LAST_RULES)
EVIDENCE: Final = ("no rule fits", *(rule_text for rule_text, _, _ in _ALL_RULES))
"""Evidence for a category, in words."""


def trace_lives(
    times: OperatorTimes, pairs: MemoryPairs, steps: ProfiledSteps
) -> TraceLives:
    """Every allocation of a trace; none where it has no addresses."""
    memory = times.trace.memory
    num_events = len(memory)
    made = (memory.num_bytes > 0) & pairs.are_known
    lost = (memory.num_bytes < 0) & (pairs.allocation == NOTHING) & pairs.are_known
    event = np.flatnonzero(made | lost)
    born = np.where(made[event], event, NOTHING)
    gone = np.where(made[event], pairs.release[event], event)
    gone = np.where(gone == NOTHING, num_events, gone)
    is_lost = pairs.is_reused[event]
    around = EventPlaces(times)
    facts = _facts(around, steps, event, born, gone)
    facts.is_cut |= is_lost
    category = np.full(len(event), OTHER)
    evidence = np.zeros(len(event), dtype=np.int64)
    for row, (_, category_name, fits) in enumerate(_ALL_RULES):
        decided = (evidence == 0) & fits(facts)
        category[decided] = CATEGORIES.index(category_name)
        evidence[decided] = row + 1
    is_seen = born != NOTHING
    modules, module = _numbered(around.module_names(), event, is_seen)
    phases, phase = _numbered(around.phase_names(), event, is_seen)
    return TraceLives(
        event=event,
        born=born,
        gone=gone,
        is_lost=is_lost,
        num_bytes=np.abs(memory.num_bytes[event].astype(np.int64)),
        category=category,
        evidence=evidence,
        module=module,
        phase=phase,
        modules=modules,
        phases=phases,
    )


def _numbered(
    names: list[str], event: Ints, is_seen: Flags
) -> tuple[tuple[str, ...], Ints]:
    """The names that occur, and by life its index; NOTHING where it has none."""
    number_by_name: dict[str, int] = {}
    numbers = [
        number_by_name.setdefault(names[place], len(number_by_name))
        if seen and names[place]
        else NOTHING
        for place, seen in zip(event.tolist(), is_seen.tolist(), strict=True)
    ]
    return tuple(number_by_name), np.array(numbers, dtype=np.int64)


def _facts(
    around: EventPlaces, steps: ProfiledSteps, event: Ints, born: Ints, gone: Ints
) -> _Facts:
    memory, phases = around.trace.memory, around.phases
    marks, is_seen = around.marks, born != NOTHING
    of_event = np.append(phases.of_event, len(phases))
    born_in = np.where(is_seen, of_event[event], 0)
    gone_in = of_event[gone]
    is_last = (gone_in == len(phases)) & (born_in == len(phases) - 1)
    facts = _Facts(
        np.where(is_seen, marks[event], 0),
        born_in,
        gone_in,
        phases.kind,
        is_last & (phases.kind[born_in] == FORWARD),
    )
    is_freed = gone < len(memory)
    release = np.where(is_freed, gone, 0)
    if len(memory):
        is_freed &= (memory.num_bytes < 0)[release]
        facts.freed_by = np.where(is_freed, marks[release], 0)
        ends = around.operator_end_ns[event]
        gone_ns = memory.time_ns[release].astype(np.int64)
        facts.in_operator = is_seen & is_freed & (gone_ns < ends)
    else:
        facts.freed_by, facts.in_operator = np.zeros(0, np.int64), np.zeros(0, bool)
    facts.backward = backward_lives(
        around.times,
        around.slice_marks,
        born,
        np.where(is_freed, gone, NOTHING),
    )
    facts.step_before_forward = is_seen & _before_forward(around, steps, event, born_in)
    return facts


def _before_forward(
    around: EventPlaces, steps: ProfiledSteps, event: Ints, born_in: Ints
) -> Flags:
    """Made in a step outside of phases, where a forward comes next in the step."""
    phases, begins_ns = around.phases, around.phase_begins_ns
    after = np.append(phases.kind[1:], NONE)[born_in] == FORWARD
    if not len(steps) or not len(event):
        return np.zeros(len(event), dtype=bool)
    next_ns = np.append(begins_ns, np.iinfo(np.int64).max)[born_in]
    time_ns = around.trace.memory.time_ns[event].astype(np.int64)
    index = np.searchsorted(steps.host_start_ns, time_ns, "right") - 1
    ends_ns = steps.host_end_ns[np.maximum(index, 0)]
    outside = around.marks[event] & (MODULE | ZERO_GRAD) == 0
    outside &= around.kinds[event] == NONE
    is_before: Flags = (
        after & outside & (index >= 0) & (time_ns < ends_ns) & (next_ns < ends_ns)
    )
    return is_before


@dataclass(frozen=True, slots=True, eq=False)
class MemoryHolders:
    """What is alive at one moment; columns of equal length, most bytes first."""

    time_ns: int
    allocated_bytes: int | None
    """The allocator's total; None: the trace does not say it."""
    seen_bytes: int
    """Of what the trace shows events of."""
    unseen_bytes: int
    """Of the total, what no event explains."""
    unknown_bytes: int
    """Unseen, or of no known category."""
    category: Ints
    module: Ints
    """Index in `TraceLives.modules`, or NOTHING; likewise the phase it was made in."""
    phase: Ints
    num_bytes: Ints
    num_allocations: Ints

    def __len__(self) -> int:
        return len(self.category)


def memory_holders(
    memory: MemoryEvents, lives: TraceLives, events: Ints, window_ns: tuple[int, int]
) -> MemoryHolders | None:
    """At the highest moment of a device in a range; `events`: its own, in order.

    None where no event lies in the range.
    """
    times = memory.time_ns[events]
    inside = events[(times >= window_ns[0]) & (times <= window_ns[1])]
    if not len(inside):
        return None
    own = np.zeros(len(memory), dtype=bool)
    own[events] = True
    rows = np.flatnonzero(own[lives.event] & ~lives.is_lost)
    moment = _highest(memory, lives, rows, inside)
    alive = rows[(lives.born[rows] <= moment) & (lives.gone[rows] > moment)]
    total = int(memory.allocated_bytes[moment])
    seen = int(lives.num_bytes[alive].sum())
    unseen = max(total - seen, 0)
    columns = [values[alive] for values in (lives.category, lives.module, lives.phase)]
    first, group = numbered(*columns)
    num_bytes = sums(group, lives.num_bytes[alive], len(first))
    order = np.argsort(-num_bytes, kind="stable")
    category, module, phase = (column[first[order]] for column in columns)
    num_bytes = num_bytes[order]
    of_other = int(num_bytes[category == OTHER].sum())
    return MemoryHolders(
        time_ns=int(memory.time_ns[moment]),
        allocated_bytes=None if total == NOTHING else total,
        seen_bytes=seen,
        unseen_bytes=unseen,
        unknown_bytes=unseen + of_other,
        category=category,
        module=module,
        phase=phase,
        num_bytes=num_bytes,
        num_allocations=np.bincount(group, minlength=len(first))[order],
    )


def _highest(memory: MemoryEvents, lives: TraceLives, rows: Ints, inside: Ints) -> int:
    """The event behind which most is allocated."""
    totals = memory.allocated_bytes[inside]
    if (totals >= 0).any():
        return int(inside[np.argmax(totals)])
    born, gone = np.maximum(lives.born[rows], 0), lives.gone[rows]
    live_bytes = np.cumsum(changes(born, gone, lives.num_bytes[rows], len(memory))[0])
    return int(inside[np.argmax(live_bytes[inside])])
