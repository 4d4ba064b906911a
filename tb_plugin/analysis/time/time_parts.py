"""The parts of each profiled step's time, and how much communication is hidden.

Each moment of a step counts for one role: of those under way then the first one of
`slice_roles.Role` (a kernel before a copy, both before what the host does meanwhile).
So the parts of a step add up to its length, and its communication is the exposed one.

Computation is kernels; where there are none, operators and annotations on the host, but
for those that a collective runs itself, and for what only starts communication or waits
for it (`c10d::`, `FSDP::`): while a thread is in one of these it computes as far as an
operator inside it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, sums
from memboard.tb_plugin.analysis.kernel_names.host_calls import WAITS
from memboard.tb_plugin.analysis.time.intervals import Overlay
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.time.intervals import Ranges
    from memboard.tb_plugin.analysis.time.profiled_steps import ProfiledSteps
    from memboard.tb_plugin.analysis.trace.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class TimeParts:
    parts_ns: Ints
    """(steps, 8): of each `Role`; a row adds up to the step's length."""
    computation_ns: Ints
    """(steps,): kernels, or where there are none what computes on the host."""
    communication_ns: Ints
    overlap_ns: Ints
    """Communication while computation ran: hidden."""

    @property
    def exposed_ns(self) -> Ints:
        return self.communication_ns - self.overlap_ns


def time_parts(trace: Trace, roles: Ints, steps: ProfiledSteps) -> TimeParts:
    """The parts of each step; `roles` by slice."""
    sets = _sets(trace, roles)
    on_device = bool((roles == Role.KERNEL).any())
    computing = sets[Role.KERNEL] if on_device else _computing(trace, roles)
    overlay = _over_steps(sets, steps, computing)
    of = steps.of(overlay.start_ns)
    inside = of >= 0
    parts = _sums(of, inside, overlay, len(steps), _roles_of(overlay))
    computation = overlay.covers[-1]
    communication = overlay.covers[Role.COMMUNICATION]
    computation_ns, communication_ns, overlap_ns = (
        _sums(of, inside & covered, overlay, len(steps))
        for covered in (computation, communication, computation & communication)
    )
    return TimeParts(parts, computation_ns, communication_ns, overlap_ns)


def parts_within(
    trace: Trace, roles: Ints, steps: ProfiledSteps, ranges: Ranges
) -> Ints:
    """(8,): of each `Role`, how long the parts of all steps lie in some ranges."""
    overlay = _over_steps(_sets(trace, roles), steps, ranges)
    of = steps.of(overlay.start_ns)
    inside = (of >= 0) & overlay.covers[-1]
    within: Ints = _sums(of, inside, overlay, len(steps), _roles_of(overlay)).sum(
        axis=0
    )
    return within


def _sets(trace: Trace, roles: Ints) -> list[Ranges]:
    """When each role but the last one is under way."""
    order = (role for role in Role if role != Role.OTHER)
    return [trace.slices.ranges(roles == role) for role in order]


def _over_steps(
    sets: Sequence[Ranges], steps: ProfiledSteps, ranges: Ranges
) -> Overlay:
    # The steps as two sets, so that edges between neighbours are kept.
    whole = np.stack((steps.start_ns, steps.end_ns), axis=1)
    return Overlay((*sets, whole[::2], whole[1::2], ranges))


def _roles_of(overlay: Overlay) -> Ints:
    """By piece, the first role that is under way."""
    return np.minimum(overlay.first(), Role.OTHER)


def _computing(trace: Trace, roles: Ints) -> Ranges:
    """When any thread of the host computes."""
    slices = trace.slices
    inside = SliceTree(slices, roles == Role.COMMUNICATION).parent != NOTHING
    # What a collective runs itself hides nothing of it.
    on_host = (roles == Role.CPU_EXEC) & ~inside
    wrapper = on_host & are(trace.strings, slices.name, WAITS.match)
    if not wrapper.any():
        return slices.ranges(on_host)
    tree = SliceTree(slices, on_host)
    # By track, as another thread may well compute while one waits.
    ranges = []
    for track in trace.tracks:
        own = slice(track.first_row, track.first_row + track.num_slices)
        rows = np.flatnonzero(on_host[own]) + track.first_row
        if wrapper[rows].any():
            ranges.append(_innermost(trace, rows, tree, wrapper))
        else:
            ranges.append(slices.ranges(rows))
    return np.concatenate(ranges)


def _innermost(trace: Trace, rows: Ints, tree: SliceTree, wrapper: Flags) -> Ranges:
    """When the innermost of some nested slices of a thread is no wrapper."""
    slices = trace.slices
    start, end = slices.starts(rows), slices.ends(rows)
    around = tree.parent[rows]
    behind = (around != NOTHING) & ~wrapper[np.maximum(around, 0)]
    # At each edge another slice is the innermost: one that begins, or the one around
    # what ends. At one time ends come first, of the inner before the outer; then
    # begins, of the outer before the inner.
    level = slices.level[rows].astype(np.int64)
    time_ns = np.concatenate((end, start))
    is_begin = np.repeat((False, True), len(rows))
    depth = np.concatenate((-level, level))
    computes = np.concatenate((behind, ~wrapper[rows]))
    taken = np.concatenate((slices.duration_ns[rows] > 0,) * 2)
    order = np.lexsort((depth, is_begin, time_ns))
    order = order[taken[order]]
    time_ns, computes = time_ns[order], computes[order]
    edges = np.stack((time_ns[:-1], time_ns[1:]), axis=1)
    ranges: Ranges = edges[computes[:-1]]
    return ranges


def _sums(
    of: Ints,
    counted: npt.NDArray[np.bool_],
    overlay: Overlay,
    num_steps: int,
    column: Ints | None = None,
) -> Ints:
    """Lengths of the pieces that count, by step, or by step and column."""
    width = 1 if column is None else len(Role)
    cell = of if column is None else of * width + column
    added = sums(cell[counted], overlay.length_ns[counted], num_steps * width)
    return added if column is None else added.reshape(num_steps, width)
