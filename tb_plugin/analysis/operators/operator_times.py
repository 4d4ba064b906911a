"""Time of each operator of a trace, on the host and on devices, its own and in all.

- host total: as long as the slice lasts, without what MemBoard's recorder took of it, which
  is a row of its own; host self: without the operators, annotations
  and runtime calls directly in it. Calls of what graphs captured took none.
- device self: of what its own runtime calls launched; device total: with what operators
  in it launched. Launches belong to the operator that their external id names, if that
  is around the call; else to the innermost one around it; where none is (a thread of its
  own), to the one that is named; where none is named (a graph is launched, a kernel of
  Triton's), to the call itself.

Python frames between operators are looked through. An operator that does nothing but
call one of its own name (`aten::div` with a rounding mode) counts once: the inner one is
taken for a part of the outer one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.own.frames import RECORDER
from memboard.tb_plugin.analysis.arrays import NOTHING, picked, places_in, sums
from memboard.tb_plugin.analysis.efficiency.call_work import CallWork, call_work
from memboard.tb_plugin.analysis.efficiency.recomputation import recomputed
from memboard.tb_plugin.analysis.efficiency.work_categories import work_categories
from memboard.tb_plugin.analysis.kernel_names.matrix_cores import (
    MatrixCores,
    matrix_cores,
)
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree, innermost
from memboard.tb_plugin.analysis.trace.categories import (
    ANNOTATION,
    OPERATORS,
    work_kind,
)
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.analysis.trace.trace import (
    CAPTURED_ANNOTATION,
    CAPTURED_MODULE,
    CAPTURED_OPERATOR,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace


_NO_OPERATOR: Final = re.compile(
    r"ProfilerStep#|Optimizer\.|(?:Distributed)?DataParallel\.forward$"
)
"""Marks of `record_function` around operators, which old traces list among them."""
OPERATOR_CATEGORIES: Final = OPERATORS | {CAPTURED_OPERATOR}
_CAPTURED: Final = frozenset({CAPTURED_OPERATOR, CAPTURED_ANNOTATION, CAPTURED_MODULE})
_NODE_CATEGORIES: Final = OPERATOR_CATEGORIES | {ANNOTATION, CAPTURED_ANNOTATION}


@dataclass(frozen=True, eq=False)
class OperatorTimes:
    """Columns of (slices,); zero for slices that are no operators or annotations."""

    trace: Trace
    is_operator: Flags
    is_recorder: Flags
    """Whether it is of MemBoard's recorder: an operator as well."""
    is_listed: Flags
    """Whether it is an operator with a row in tables: no mark, and no loading."""
    tree: SliceTree
    """Of operators, annotations and runtime calls."""
    nodes: SliceTree
    operators: SliceTree
    owner: Ints
    """(device work,): the slice that launched each, an operator; or NOTHING."""
    is_communication: Flags
    """(device work,): whether its role is communication."""

    @cached_property
    def launched_by(self) -> Ints:
        """(device work,): the listed operator, else the call of the runtime, or NOTHING."""
        pairs = self.trace.launch_pairs
        call = np.full(len(self.owner), NOTHING, dtype=np.int64)
        call[np.searchsorted(self.trace.device_work.row, pairs[:, 1])] = pairs[:, 0]
        is_known = picked(self.is_listed, self.owner, False)
        return np.where(is_known, self.owner, call)

    @cached_property
    def memory_slices(self) -> Ints:
        """(memory events,): the innermost slice around each on its thread, or NOTHING."""
        memory = self.trace.memory
        return innermost(self.trace, memory.track, memory.time_ns)

    @cached_property
    def memory_operators(self) -> Ints:
        """(memory events,): the operator that each belongs to, or NOTHING."""
        node = self.nodes.around(self.memory_slices)
        return np.where(picked(self.is_operator, node, False), node, NOTHING)

    @cached_property
    def host_ns(self) -> Ints:
        """(slices,): duration, but of calls that graphs captured, which took none here."""
        slices, strings = self.trace.slices, self.trace.strings
        duration = slices.duration_ns.astype(np.int64)
        if not len(self.trace.replays):
            return duration
        return np.where(
            are(strings, slices.category, _CAPTURED.__contains__), 0, duration
        )

    @cached_property
    def host_self_ns(self) -> Ints:
        # Never negative
        duration = self.host_ns
        own = duration - self.tree.inner_sums(duration)
        return np.where(self.tree.kept, np.maximum(own, 0), 0)

    @cached_property
    def host_total_ns(self) -> Ints:
        # Never negative
        duration = self.host_ns
        if not self.is_recorder.any():
            return duration
        own = self.tree.total_sums(np.where(self.is_recorder, self.host_self_ns, 0))
        return np.where(self.is_recorder, duration, np.maximum(duration - own, 0))

    def unknown_ns(self) -> dict[str, int]:
        """Of work whose call is not known: the columns that `device_self_ns` begins."""
        lost = self.launched_by == NOTHING
        kernels = lost & self.are_kernels
        return {
            "device_self_ns": int(self.work_ns[lost].sum()),
            "kernel_self_ns": int(self.work_ns[kernels].sum()),
            "tensor_core_self_ns": int(
                self.work_ns[kernels & self.matrix_cores.is_used].sum()
            ),
            "tensor_core_known_self_ns": int(
                self.work_ns[kernels & self.matrix_cores.is_known].sum()
            ),
            "communication_self_ns": int(
                self.work_ns[lost & self.is_communication].sum()
            ),
        }

    @cached_property
    def device_self_ns(self) -> Ints:
        """Of kernels, copies and fills that the slice itself launched, an operator or a call."""
        return self._of_work(self.work_ns)

    @cached_property
    def device_total_ns(self) -> Ints:
        """With what was launched by slices in it."""
        return self.tree.total_sums(self.device_self_ns)

    @cached_property
    def kernel_self_ns(self) -> Ints:
        return self._of_work(np.where(self.are_kernels, self.work_ns, 0))

    @cached_property
    def kernel_total_ns(self) -> Ints:
        """Likewise, with what was launched by slices in it."""
        return self.tree.total_sums(self.kernel_self_ns)

    @cached_property
    def tensor_core_self_ns(self) -> Ints:
        """Of kernels that use tensor cores."""
        chosen = self.are_kernels & self.matrix_cores.is_used
        return self._of_work(np.where(chosen, self.work_ns, 0))

    @cached_property
    def tensor_core_total_ns(self) -> Ints:
        """Likewise, with what was launched by slices in it."""
        return self.tree.total_sums(self.tensor_core_self_ns)

    @cached_property
    def tensor_core_known_self_ns(self) -> Ints:
        """Of kernels of which it is known whether they do."""
        chosen = self.are_kernels & self.matrix_cores.is_known
        return self._of_work(np.where(chosen, self.work_ns, 0))

    @cached_property
    def tensor_core_known_total_ns(self) -> Ints:
        """Likewise, with what was launched by slices in it."""
        return self.tree.total_sums(self.tensor_core_known_self_ns)

    @cached_property
    def communication_self_ns(self) -> Ints:
        """The part of `device_self_ns` that is communication."""
        return self._of_work(np.where(self.is_communication, self.work_ns, 0))

    @cached_property
    def work(self) -> CallWork:
        """FLOP and bytes of the calls whose shapes tell them."""
        return call_work(
            self.trace, self.is_listed, self.device_total_ns, self.tensor_core_total_ns
        )

    @cached_property
    def counted_calls(self) -> Ints:
        """(device work,): the call of `work` that launched each, or NOTHING."""
        kept = np.zeros(len(self.trace.slices), dtype=bool)
        kept[self.work.row] = True
        return SliceTree(self.trace.slices, kept).around(self.owner)

    @cached_property
    def categories(self) -> Ints:
        """(device work,): the kind of each, as a number of `work_categories.CATEGORIES`."""
        return work_categories(self.trace, self.owner, self.is_communication)

    @cached_property
    def is_recomputed(self) -> Flags:
        """(device work,): whether checkpointing's second forward launched it."""
        return picked(recomputed(self.trace, self.operators), self.owner, False) > 0

    @cached_property
    def recomputed_self_ns(self) -> Ints:
        """The part of `device_self_ns` that is recomputed."""
        return self._of_work(np.where(self.is_recomputed, self.work_ns, 0))

    @cached_property
    def matrix_cores(self) -> MatrixCores:
        return matrix_cores(self.trace, self.owner)

    @cached_property
    def work_ns(self) -> Ints:
        """(device work,): duration; what ran at the same time counts each."""
        rows = self.trace.device_work.row
        return self.trace.slices.duration_ns[rows].astype(np.int64)

    @cached_property
    def are_kernels(self) -> Flags:
        rows = self.trace.device_work.row
        trace = self.trace
        categories = trace.slices.category[rows]
        return are(trace.strings, categories, lambda text: work_kind(text) == "kernel")

    def _of_work(self, values: Ints) -> Ints:
        is_launched = self.launched_by != NOTHING
        return sums(
            self.launched_by[is_launched], values[is_launched], len(self.trace.slices)
        )


def operator_times(trace: Trace, roles: Ints) -> OperatorTimes:
    """The times of a trace; `roles` by slice."""
    every = slice(None)
    is_recorder = are(trace.strings, trace.slices.name, RECORDER.__eq__)
    nodes = _in_categories(trace, every, _NODE_CATEGORIES)
    nodes &= ~_repeated(trace, nodes, is_recorder)
    is_operator = nodes & _in_categories(trace, every, OPERATOR_CATEGORIES)
    tree = SliceTree(trace.slices, nodes | (roles == Role.RUNTIME))
    marks = are(trace.strings, trace.slices.name, _NO_OPERATOR.match)
    listed = is_operator & ~marks & (roles != Role.DATALOADER)
    operators = SliceTree(trace.slices, is_operator)
    owner = _owners(trace, operators)
    around = SliceTree(trace.slices, nodes)
    return OperatorTimes(
        trace,
        is_operator,
        is_recorder,
        listed,
        tree,
        around,
        operators,
        owner,
        roles[trace.device_work.row] == Role.COMMUNICATION,
    )


def _repeated(trace: Trace, nodes: Flags, is_recorder: Flags) -> Flags:
    """The only child of a node that has its name; the recorder's are none."""
    names = trace.slices.name
    nodes = nodes & ~is_recorder
    tree = SliceTree(trace.slices, nodes)
    inner = np.flatnonzero(nodes & (tree.parent != NOTHING))
    parents = tree.parent[inner]
    num_children = np.bincount(parents, minlength=len(nodes))
    is_repeated = np.zeros(len(nodes), dtype=bool)
    alone = (num_children[parents] == 1) & (names[inner] == names[parents])
    is_repeated[inner[alone]] = True
    return is_repeated


def _in_categories(trace: Trace, rows: Ints | slice, wanted: frozenset[str]) -> Flags:
    """Of slices, whether their category is one of some."""
    categories = trace.slices.category[rows]
    return are(trace.strings, categories, lambda text: text.lower() in wanted)


def _owners(trace: Trace, operators: SliceTree) -> Ints:
    """The operator that launched each device work."""
    work = trace.device_work
    owner = np.full(len(work.row), NOTHING, dtype=np.int64)
    pairs = trace.launch_pairs
    place = np.searchsorted(work.row, pairs[:, 1])
    owner[place] = _launching(trace, operators)[pairs[:, 0]]
    lost = owner == NOTHING
    owner = np.where(lost, _by_external_id(trace, work.external_id), owner)
    replays = trace.replays
    captured = operators.around(replays.caller)
    is_captured = captured != NOTHING
    place = np.searchsorted(work.row, replays.row[is_captured])
    owner[place] = captured[is_captured]
    return owner


def _launching(trace: Trace, operators: SliceTree) -> Ints:
    """(slices,): of calls of the runtime the operator that made them.

    An external id tells apart what times do not: a call at the very edge of an operator
    may be its own, or of the one around it. Profilers have also written other numbers
    there: so it counts only if it names an operator around the call.
    """
    slices, launches = trace.slices, trace.launches
    launching: Ints = operators.parent.copy()
    rows = launches.row.astype(np.int64)
    named = _by_external_id(trace, launches.external_id)
    is_operator = (named != NOTHING) & operators.kept[np.maximum(named, 0)]
    rows, named = rows[is_operator], named[is_operator]
    around = slices.track[rows] == slices.track[named]
    around &= slices.start_ns[named] <= slices.start_ns[rows]
    around &= slices.ends(rows) <= slices.ends(named)
    launching[rows[around]] = named[around]
    return launching


def _by_external_id(trace: Trace, wanted: Ints) -> Ints:
    """The operators that external ids name; 0 and less name none."""
    recorded = trace.operators
    named = recorded.external_id > 0
    ids, first = np.unique(recorded.external_id[named], return_index=True)
    # An id that is looked up may be 0 and less; what is known is not.
    return picked(recorded.row[named][first].astype(np.int64), places_in(ids, wanted))
