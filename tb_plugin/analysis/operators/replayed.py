"""The calls that graphs captured, as slices of the trace that replays these.

Each lies from the start of its first kernel to the end of its last one, on a track of its
device. They took no time of the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, picked, places_in
from memboard.tb_plugin.analysis.operators.captured import matched, replays_of
from memboard.tb_plugin.analysis.trace.details import Operators, Replays
from memboard.tb_plugin.analysis.trace.nesting import nest
from memboard.tb_plugin.analysis.trace.trace import (
    CAPTURED,
    CAPTURED_OPERATOR,
    Slices,
    Track,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.operators.captured import CapturedGraph
    from memboard.tb_plugin.analysis.trace.trace import Trace

MAX_CALLS: Final = 2_000_000
"""Of all replays; those that come later stay in the row of their launch."""


class ReplayedTime(NamedTuple):
    """Sum over what graphs ran on devices."""

    total_ns: int
    unknown_ns: int
    """Of replays whose capture is not known."""


def replayed_time(trace: Trace) -> ReplayedTime:
    """Time of replayed work, of a trace `with_captured` or without."""
    works = np.concatenate([*replays_of(trace), np.empty(0, np.int64)])
    duration_ns = trace.slices.duration_ns[works].astype(np.int64)
    is_known = np.isin(works, trace.replays.row)
    return ReplayedTime(int(duration_ns.sum()), int(duration_ns[~is_known].sum()))


def with_captured(
    trace: Trace, graphs: Sequence[CapturedGraph], *, are_all: bool = True
) -> Trace:
    """A trace with the calls of what its graphs captured, as far as captures fit.

    Args:
        trace: replays graphs.
        graphs: of traces that recorded captures, also of `trace` itself.
        are_all: there are no other captures; else shapes are not known, which another one
            of another batch size may have.
    """
    if not graphs:
        return trace
    calls = _ReplayedCalls(trace)
    for graph, works in matched(trace, graphs, are_all=are_all):
        calls.add(graph, works)
    return calls.with_them()


class _ReplayedCalls:
    """The calls of captures at each replay, as slices behind all others of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._row_of_text = {text: row for row, text in enumerate(trace.strings)}
        self._columns: list[Ints] = []
        """By graph, of its calls at each replay (6, calls): device, start, end, name,
        category and parent; a parent is a place among all of them."""
        self._shapes: list[Ints] = []
        """(3, calls): rows of texts."""
        self._replays: list[Ints] = []
        """(2, work): row, and place of its caller."""
        self._num = 0

    def add(self, graph: CapturedGraph, works: Ints) -> None:
        """Add a capture's calls for each of its replays; `works`: (replays, launches)."""
        num = len(graph.calls)
        works = works[: (MAX_CALLS - self._num) // max(num, 1)]
        if not num or not len(works):
            return
        trace = self._trace
        start, end = self._spans(graph, works)
        place = self._num + num * np.arange(len(works))[:, None]
        parent = np.array([call.parent for call in graph.calls])
        device = trace.device_work.device[places_in(trace.device_work.row, works[:, 0])]
        of_calls = (
            np.broadcast_to(device[:, None], start.shape),
            start,
            end,
            np.broadcast_to(
                self._texts([call.name for call in graph.calls]), start.shape
            ),
            np.broadcast_to(
                self._texts([call.category for call in graph.calls]), start.shape
            ),
            np.where(parent == NOTHING, NOTHING, parent + place),
        )
        self._columns.append(np.stack([column.ravel() for column in of_calls]))
        shapes = [
            self._texts([call.shapes[k] for call in graph.calls]) for k in range(3)
        ]
        self._shapes.append(np.tile(np.stack(shapes), len(works)))
        is_called = graph.caller != NOTHING
        caller = graph.caller[is_called] + place
        self._replays.append(np.stack((works[:, is_called].ravel(), caller.ravel())))
        self._num += num * len(works)

    def _spans(self, graph: CapturedGraph, works: Ints) -> tuple[Ints, Ints]:
        """(replays, calls): from a call's first work to its last one's end."""
        slices = self._trace.slices
        shape = len(works), len(graph.calls)
        start = np.full(shape, np.iinfo(np.int64).max)
        end = np.full(shape, np.iinfo(np.int64).min)
        starts, ends = slices.starts(works), slices.ends(works)
        inner = [(call, launch) for launch, call in enumerate(graph.caller.tolist())]
        for call, launch in inner:
            if call != NOTHING:
                start[:, call] = np.minimum(start[:, call], starts[:, launch])
                end[:, call] = np.maximum(end[:, call], ends[:, launch])
        for call in range(len(graph.calls) - 1, -1, -1):
            around = graph.calls[call].parent
            if around != NOTHING:
                start[:, around] = np.minimum(start[:, around], start[:, call])
                end[:, around] = np.maximum(end[:, around], end[:, call])
        return start, end

    def _texts(self, texts: Sequence[str]) -> Ints:
        rows = self._row_of_text
        return np.array([rows.setdefault(text, len(rows)) for text in texts], np.int64)

    def with_them(self) -> Trace:
        """The trace with all that was added; its own rows stay as they are."""
        trace = self._trace
        if not self._num:
            return trace
        device, start, end, names, categories, parents = np.concatenate(
            self._columns, axis=1
        )
        devices, track = np.unique(device, return_inverse=True)
        nested = nest(track, start, end, len(devices))
        order, base = nested.order, len(trace.slices)
        row_of = np.empty(len(order), np.int64)
        row_of[order] = base + np.arange(len(order))
        slices = Slices.joined(
            (
                trace.slices,
                Slices(
                    track=track[order] + len(trace.tracks),
                    level=nested.level,
                    start_ns=start[order],
                    duration_ns=(end - start)[order],
                    name=names[order],
                    category=categories[order],
                    # By times two calls on streams side by side might seem nested.
                    parent=picked(row_of, parents[order]),
                    args=np.full(len(order), NOTHING),
                ),
            )
        )
        tracks = tuple(
            Track(
                f"device {device}" if device >= 0 else "device",
                CAPTURED,
                "device",
                rank=trace.facts.rank,
                device=device,
                first_row=base + rows[0],
                num_slices=rows[-1] - rows[0],
                level_rows=tuple(base + row for row in rows),
            )
            for device, rows in zip(devices.tolist(), nested.level_rows, strict=True)
        )
        works, callers = np.concatenate(self._replays, axis=1)
        by_row = np.argsort(works)
        return replace(
            trace,
            tracks=(*trace.tracks, *tracks),
            strings=tuple(self._row_of_text),
            slices=slices,
            operators=self._operators(categories, row_of),
            replays=Replays(works[by_row], row_of[callers[by_row]]),
        )

    def _operators(self, categories: Ints, row_of: Ints) -> Operators:
        shapes = np.concatenate(self._shapes, axis=1)
        chosen = np.flatnonzero(categories == self._row_of_text.get(CAPTURED_OPERATOR))
        chosen = chosen[np.argsort(row_of[chosen])]
        none = np.full(len(chosen), NOTHING)
        own = Operators(
            row=row_of[chosen],
            external_id=none,
            sequence=none,
            forward_thread=none,
            input_dims=shapes[0][chosen],
            input_types=shapes[1][chosen],
            concrete_inputs=shapes[2][chosen],
            call_stack=none,
        )
        return Operators.joined((self._trace.operators, own))
