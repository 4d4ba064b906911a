"""What graphs captured: by its calls their kernels belong to operators and modules.

A trace of a program that replays a CUDA or HIP graph has all kernels of a replay below one
call, `cudaGraphLaunch`. A trace of the capture has the calls that made the graph: launches
that ran nothing, in operators, annotations and modules. Both fit where a replay ran as much
as the capture launched, in its order: by names where the runtime writes the kernel's with
its launch (HIP does), else by number and kind on a single stream.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, picked, places_in
from memboard.tb_plugin.analysis.operators.module_times import module_names
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.categories import ANNOTATION, OPERATORS
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.analysis.trace.trace import (
    CAPTURED_ANNOTATION,
    CAPTURED_MODULE,
    CAPTURED_OPERATOR,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace

_BEGIN: Final = re.compile(r"(?:cuda|cu|hip)StreamBeginCapture\w*")
_END: Final = re.compile(r"(?:cuda|cu|hip)StreamEndCapture\w*")
_LAUNCH: Final = re.compile(
    r"(?:cuda|cu|hip)(?:\w*Launch(?!Host)\w*(?:Kernel|ByPtr)\w*|Mem(?:cpy|set)\w*)"
)
_COPY: Final = re.compile(r"(?:cuda|cu|hip)Mem(?:cpy|set)\w*")
_REPLAY: Final = re.compile(r"(?:cuda|cu|hip)GraphLaunch\w*")
_CATEGORY: Final = dict.fromkeys(OPERATORS, CAPTURED_OPERATOR) | {
    ANNOTATION: CAPTURED_ANNOTATION
}


_NO_SHAPES: Final = ("", "", "")


class Call(NamedTuple):
    """An operator, annotation or module that was called during a capture."""

    name: str
    category: str
    parent: int
    """Index of the call around it, or NOTHING; lower than its own."""
    shapes: tuple[str, str, str]
    """Of an operator: dimensions, types and values of its inputs as written; else empty."""


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """One capture: what it launched, in order, and the calls around that."""

    kernels: tuple[str, ...]
    """By launch the kernel's name, or empty where the trace does not say it."""
    is_copy: Flags  # (launches,): it copies or fills memory
    caller: Ints  # (launches,): index of the innermost call, or NOTHING
    calls: tuple[Call, ...]

    def order_of(
        self, names: Sequence[str], is_copy: Flags, *, is_serial: bool
    ) -> Ints:
        """Of a replay's work, in order of time, the one that each launch made.

        Args:
            names: by work.
            is_copy: (work,).
            is_serial: it ran on one stream.

        Returns:
            (launches,) indices of work; empty where the replay is not of this capture.
        """
        num = len(self.kernels)
        if num != len(names):
            return np.empty(0, np.int64)
        # A copy may be done by a kernel of the runtime's.
        fits = all(
            kernel == name if kernel else own_copies or not copies
            for kernel, own_copies, name, copies in zip(
                self.kernels,
                self.is_copy.tolist(),
                names,
                is_copy.tolist(),
                strict=True,
            )
        )
        if fits and (is_serial or all(self.kernels)):
            return np.arange(num)
        if sorted(self.kernels) != sorted(names):
            return np.empty(0, np.int64)
        # Streams ran side by side: the first of a name is the first that was launched.
        own = sorted(range(num), key=self.kernels.__getitem__)
        order = np.empty(num, np.int64)
        order[own] = sorted(range(num), key=names.__getitem__)
        return order


def replays_of(trace: Trace) -> list[Ints]:
    """Of launches of graphs that ran anything the work in order of time; slices."""
    names = trace.slices.name[trace.launches.row]
    is_replay = are(trace.strings, names, _REPLAY.fullmatch)
    if not is_replay.any():
        return []
    pairs = trace.launch_pairs
    pairs = pairs[np.isin(pairs[:, 0], trace.launches.row[is_replay])]
    if not len(pairs):
        return []
    pairs = pairs[np.lexsort((trace.slices.start_ns[pairs[:, 1]], pairs[:, 0]))]
    return np.split(pairs[:, 1], np.flatnonzero(np.diff(pairs[:, 0])) + 1)


def captured_graphs(trace: Trace) -> list[CapturedGraph]:
    """The captures that a trace recorded, in order of time."""
    slices, launches = trace.slices, trace.launches
    rows = launches.row.astype(np.int64)
    names = slices.name[rows]
    is_begin, is_end, is_launch = (
        are(trace.strings, names, pattern.fullmatch)
        for pattern in (_BEGIN, _END, _LAUNCH)
    )
    begins = np.sort(slices.ends(rows[is_begin]))
    ends = np.sort(slices.starts(rows[is_end]))
    if not len(begins) or not len(ends):
        return []
    is_launch &= ~np.isin(rows, trace.launch_pairs[:, 0])
    # Of a call of the runtime and the driver's in it the outer one counts.
    launched = np.zeros(len(slices), bool)
    launched[rows[is_launch]] = True
    is_launch &= SliceTree(slices, launched).parent[rows] == NOTHING
    order = np.argsort(slices.start_ns[rows], kind="stable")
    places = order[is_launch[order]]
    starts = slices.starts(rows[places])
    around = _CallsAround(trace)
    graphs, until = [], 0
    for begin in begins.tolist():
        end = int(np.searchsorted(ends, begin))
        if begin < until or end == len(ends):
            continue  # the driver's call inside the runtime's, or a capture cut short
        until = int(ends[end])
        inside = places[(starts >= begin) & (starts < until)]
        if len(inside):
            graphs.append(around.graph(inside, begin))
    return graphs


class _CallsAround:
    """Operators, annotations and modules of a trace that recorded captures."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._is_module = np.isin(trace.slices.name, list(module_names(trace)))
        is_call = are(
            trace.strings, trace.slices.category, lambda text: text.lower() in _CATEGORY
        )
        self._tree = SliceTree(trace.slices, is_call | self._is_module)

    def graph(self, launches: Ints, begin_ns: int) -> CapturedGraph:
        """A capture that began at a time; `launches`: places in `Trace.launches`."""
        trace, slices = self._trace, self._trace.slices
        caller = self._tree.parent[trace.launches.row[launches]]
        caller = np.where(picked(slices.start_ns, caller) >= begin_ns, caller, NOTHING)
        around: set[int] = set()
        for call in np.unique(caller[caller != NOTHING]).tolist():
            while call not in around and self._is_inside(call, begin_ns):
                around.add(call)
                call = int(self._tree.parent[call])  # noqa: PLW2901
        rows = np.array(sorted(around), np.int64)
        # Parents first.
        rows = rows[np.lexsort((slices.start_ns[rows], slices.level[rows]))]
        index = np.full(len(slices), NOTHING, np.int64)
        index[rows] = np.arange(len(rows))
        parents = picked(index, self._tree.parent[rows])
        kernels = trace.launches.kernel[launches].tolist()
        names = trace.slices.name[trace.launches.row[launches]]
        return CapturedGraph(
            kernels=tuple(trace.strings[max(kernel, 0)] for kernel in kernels),
            is_copy=are(trace.strings, names, _COPY.fullmatch),
            caller=picked(index, caller),
            calls=tuple(
                Call(trace.name_of(row), self._category(row), parent, self._shapes(row))
                for row, parent in zip(rows.tolist(), parents.tolist(), strict=True)
            ),
        )

    def _is_inside(self, call: int, begin_ns: int) -> bool:
        return call != NOTHING and int(self._trace.slices.start_ns[call]) >= begin_ns

    def _category(self, row: int) -> str:
        if self._is_module[row]:
            return CAPTURED_MODULE
        return _CATEGORY[self._trace.category_of(row).lower()]

    def _shapes(self, row: int) -> tuple[str, str, str]:
        operators, strings = self._trace.operators, self._trace.strings
        place = int(places_in(operators.row, np.array([row]))[0])
        if place == NOTHING:
            return _NO_SHAPES
        dims, types, values = (
            strings[max(int(column[place]), 0)]
            for column in (
                operators.input_dims,
                operators.input_types,
                operators.concrete_inputs,
            )
        )
        return dims, types, values


def num_unknown(trace: Trace, graphs: Sequence[CapturedGraph]) -> int:
    """Replays in a trace that none of some captures fits."""
    num = len(replays_of(trace))
    return num - sum(len(works) for _, works in matched(trace, graphs, are_all=True))


def matched(
    trace: Trace, graphs: Sequence[CapturedGraph], *, are_all: bool
) -> Iterator[tuple[CapturedGraph, Ints]]:
    """Captures with the work of their replays, (replays, launches)."""
    by_names: defaultdict[tuple[int, ...], list[Ints]] = defaultdict(list)
    slices = trace.slices
    for works in replays_of(trace):
        by_names[tuple(slices.name[works].tolist())].append(works)
    is_kernel = are(
        trace.strings, slices.category, lambda text: text.lower() == "kernel"
    )
    for names, replays in by_names.items():
        texts = [trace.strings[name] for name in names]
        # Streams are tracks.
        tracks = slices.track[np.stack(replays)]
        is_serial = bool((tracks == tracks[:, :1]).all())
        fitting = [
            (graph, order)
            for graph in graphs
            if len(
                order := graph.order_of(
                    texts, ~is_kernel[replays[0]], is_serial=is_serial
                )
            )
        ]
        if not fitting:
            continue
        graph, order = fitting[0]
        if not are_all or any(other.calls != graph.calls for other, _ in fitting):
            bare = tuple(call._replace(shapes=_NO_SHAPES) for call in graph.calls)
            graph = replace(graph, calls=bare)
        yield graph, np.stack(replays)[:, order]
