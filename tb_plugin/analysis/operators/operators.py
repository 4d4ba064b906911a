"""Operators of a trace: times by name, or by name and input shapes, and their callees."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    longest_of,
    numbered,
    picked,
    places_in,
    ratio,
    sums,
    with_below,
)
from memboard.tb_plugin.analysis.efficiency.call_work import WorkTable, work_columns
from memboard.tb_plugin.analysis.efficiency.work_categories import (
    CATEGORIES,
    operator_category,
)
from memboard.tb_plugin.analysis.kernel_names.matrix_cores import known_ratio
from memboard.tb_plugin.analysis.trace.texts import looked_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.operators.operator_times import OperatorTimes


_ELIGIBLE: Final = re.compile(
    r"aten::(?:_?cudnn_)?convolution(?:_backward(?:_input|_weight)?|_transpose.*)?"
    r"|aten::(?:_?convolution.*|_?slow_conv.*|_?thnn_conv.*|conv(?:1d|2d|3d|_tbc|_transpose\dd))"
    r"|aten::(?:mm|bmm|addmm|addmv|addr|addbmm|baddbmm|matmul|linear|einsum|chain_matmul|prelu)"
    r"|aten::(?:_scaled_mm|_grouped_mm|_scaled_grouped_mm|_thnn_fused_\w*cell|\w*(?:lstm|gru|rnn)\w*)"
    r"|aten::_?(?:scaled_dot_product_)?(?:flash|efficient|cudnn)_attention\w*"
    r"|(?:\w*Convolution|AddmmBackward|MmBackward|BmmBackward|BaddbmmBackward|LinearBackward)\w*"
)
"""Operators whose kernels can use tensor cores."""

_OF_TORCH: Final = re.compile(
    r"(?:aten|prim|prims|autograd|torch|c10d|_?c10d_functional)::|\w+Backward\d*$"
)
"""Operators whose names say what they compute."""

IN_NO_OPERATOR: Final = "in no operator"
"""Name of the row of device work whose launch is not known."""

MAX_DEPTH: Final = 40
"""Levels below the chosen calls that are told apart; deeper ones count for the last."""

_EVALUATING: Final = "autograd::engine::evaluate_function: "


_SUMMED: Final = (
    "host_self_ns",
    "device_self_ns",
    "device_total_ns",
    "kernel_self_ns",
    "kernel_total_ns",
    "tensor_core_self_ns",
    "tensor_core_total_ns",
    "tensor_core_known_self_ns",
    "tensor_core_known_total_ns",
    "communication_self_ns",
    "recomputed_self_ns",
)
"""Columns of `OperatorTimes` that are added up."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OperatorTable(WorkTable):
    """One row per operator, or per operator and input shapes; in no order."""

    name: Ints
    """Row of `Trace.strings`; the one behind all of them is `IN_NO_OPERATOR`."""
    shapes: Ints
    """Input shapes as written, as rows of `Trace.strings`; -1 where the query does not want them."""
    num_calls: Ints
    host_self_ns: Ints
    host_total_ns: Ints
    device_self_ns: Ints
    device_total_ns: Ints
    kernel_self_ns: Ints
    kernel_total_ns: Ints
    tensor_core_self_ns: Ints
    tensor_core_total_ns: Ints
    tensor_core_known_self_ns: Ints
    tensor_core_known_total_ns: Ints
    communication_self_ns: Ints
    recomputed_self_ns: Ints
    category: Ints
    """Of most of its own work on devices, else by its name: see `work_categories`."""
    example: Ints
    """Slice of the longest call."""
    group_of: Ints
    """(slices,): the row of each call; -1 for what is no operator."""

    def calls_of(self, rows: Sequence[int]) -> Ints:
        """Slices of the calls of some rows, ascending."""
        return np.flatnonzero(np.isin(self.group_of, rows))

    @property
    def tensor_core_self_share(self) -> Floats:
        """Of the known time of its own kernels; NaN where too little is known."""
        return known_ratio(
            self.tensor_core_self_ns,
            self.tensor_core_known_self_ns,
            self.kernel_self_ns,
        )

    @property
    def tensor_core_total_share(self) -> Floats:
        """Likewise of all that was launched in it."""
        return known_ratio(
            self.tensor_core_total_ns,
            self.tensor_core_known_total_ns,
            self.kernel_total_ns,
        )

    @property
    def tensor_core_known_self_share(self) -> Floats:
        """Of the time of its own kernels, what is known of; NaN without kernels."""
        return ratio(self.tensor_core_known_self_ns, self.kernel_self_ns)

    @property
    def tensor_core_known_share(self) -> Floats:
        """Likewise of all that was launched in it."""
        return ratio(self.tensor_core_known_total_ns, self.kernel_total_ns)


def operator_table(times: OperatorTimes, *, by_shapes: bool = False) -> OperatorTable:
    """All operators of a trace."""
    return _table(times, np.flatnonzero(times.is_listed), by_shapes=by_shapes)


def launching_table(times: OperatorTimes, *, by_shapes: bool = False) -> OperatorTable:
    """All operators, and what launched work outside them: all time of devices has a row.

    Calls of the runtime (`cudaGraphLaunch`, that of a kernel of Triton's) have one by their
    name, work whose call is not known has the last one, `IN_NO_OPERATOR`.
    """
    launched_by = times.launched_by
    has_launch = launched_by != NOTHING
    rows = times.is_listed.copy()
    rows[launched_by[has_launch]] = True
    table = _table(times, np.flatnonzero(rows), by_shapes=by_shapes)
    if has_launch.all():
        return table
    lost = np.flatnonzero(~has_launch)
    unknown = {
        "name": len(times.trace.strings),
        "shapes": NOTHING,
        "example": NOTHING,
        "category": int(_main_categories(times, lost, np.zeros_like(lost), 1)[0]),
        "flop": np.nan,
        "moved_bytes": np.nan,
    }
    for time_column, total in times.unknown_ns().items():
        unknown[time_column] = unknown[time_column.replace("self", "total")] = total
    columns = {
        column.name: np.append(getattr(table, column.name), unknown.get(column.name, 0))
        for column in fields(table)
        if column.name != "group_of"
    }
    return OperatorTable(**columns, group_of=table.group_of)


def _table(times: OperatorTimes, rows: Ints, *, by_shapes: bool) -> OperatorTable:
    trace = times.trace
    name = trace.slices.name[rows].astype(np.int64)
    shapes = np.full(len(rows), NOTHING, np.int64)
    if by_shapes:
        place = places_in(trace.operators.row, rows)
        shapes = picked(trace.operators.input_dims, place, 0).astype(np.int64)
    first, group = numbered(name, shapes)
    num = len(first)
    duration = times.host_total_ns[rows]
    group_of = np.full(len(trace.slices), -1, dtype=np.int64)
    group_of[rows] = group
    own_work = np.flatnonzero(times.launched_by != NOTHING)
    own_group = group_of[times.launched_by[own_work]]
    category = _main_categories(
        times, own_work[own_group >= 0], own_group[own_group >= 0], num
    )
    by_name = looked_up(trace.strings, name[first], operator_category)
    return OperatorTable(
        name=name[first],
        shapes=shapes[first],
        num_calls=np.bincount(group, minlength=num),
        host_total_ns=sums(group, duration, num),
        **{
            column: sums(group, getattr(times, column)[rows], num) for column in _SUMMED
        },
        category=np.where(category == NOTHING, by_name, category),
        **work_columns(times.work, group_of[times.work.row], num),
        example=rows[longest_of(group, duration, num)],
        group_of=group_of,
    )


def _main_categories(times: OperatorTimes, work: Ints, group: Ints, num: int) -> Ints:
    """(num,): by group of some device work the category of most time, or NOTHING."""
    num_categories = len(CATEGORIES)
    key = group * num_categories + times.categories[work]
    duration_ns = sums(key, times.work_ns[work], num * num_categories)
    by_group = duration_ns.reshape(num, num_categories)
    return np.where(by_group.any(axis=1), by_group.argmax(axis=1), NOTHING)


def is_eligible(operator: str) -> bool:
    """Whether an operator's kernels can use tensor cores."""
    return _ELIGIBLE.fullmatch(operator.removeprefix(_EVALUATING)) is not None


def eligibility(operator: str, tensor_core_ns: int) -> float:
    """1: its kernels can use tensor cores, or do; 0: they cannot; NaN: nothing says it."""
    if tensor_core_ns > 0 or is_eligible(operator):
        return 1.0
    return 0.0 if _OF_TORCH.match(operator) else np.nan


class Callee(NamedTuple):
    """Operators, annotations and runtime calls of one path of names."""

    path: tuple[int, ...]
    """Rows of `Trace.strings`, the outermost first; empty: the chosen calls themselves."""
    num_calls: int
    host_self_ns: int
    device_self_ns: int


def callees(times: OperatorTimes, calls: Ints, most: int) -> list[Callee]:
    """Of some operators' calls, the paths below them, callers before what they call.

    Self times of all paths add up to the calls' totals. Of more than `most` paths the
    longest are kept; what the others took counts for the one around them. A chosen call
    inside another one is taken for a part of that.
    """
    node_of, parent, name = _merged(times, calls)
    inside = np.flatnonzero(node_of >= 0)
    nodes, num = node_of[inside], len(parent)

    def added(values: Ints) -> list[int]:
        return list(map(int, sums(nodes, values, num)))

    num_calls = np.bincount(nodes, minlength=num).tolist()
    host = added(times.host_self_ns[inside])
    device = added(times.device_self_ns[inside])
    kept = _longest(parent, host, device, most)
    for node in range(num - 1, 0, -1):
        if not kept[node]:
            host[parent[node]] += host[node]
            device[parent[node]] += device[node]
    paths: list[tuple[int, ...]] = [()]
    for node in range(1, num):
        paths.append((*paths[parent[node]], name[node]) if kept[node] else ())
    return [
        Callee(paths[node], num_calls[node], host[node], device[node])
        for node in range(num)
        if kept[node]
    ]


def _merged(times: OperatorTimes, calls: Ints) -> tuple[Ints, list[int], list[int]]:
    """(slices,): the node of each slice, or -1; and by node its parent and its name.

    Node 0 stands for the calls; parents come before what is below them.
    """
    slices, tree = times.trace.slices, times.tree
    node_of = np.full(len(slices), NOTHING, dtype=np.int64)
    depth = np.zeros(len(slices), dtype=np.int64)
    node_of[calls] = 0
    parent, name = [NOTHING], [NOTHING]
    node_by_key: dict[tuple[int, int], int] = {}

    def node_for(key: tuple[int, int]) -> int:
        if key not in node_by_key:
            node_by_key[key] = len(parent)
            parent.append(key[0])
            name.append(key[1])
        return node_by_key[key]

    num_names = len(times.trace.strings)
    for level in slices.by_level:
        up = tree.parent[level]
        below = tree.kept[level] & (up != NOTHING)
        below &= (node_of[up] != NOTHING) & ~times.is_recorder[level]
        rows, up = level[below], up[below]
        depth[rows] = depth[up] + 1
        deep = depth[rows] > MAX_DEPTH
        node_of[rows[deep]] = node_of[up[deep]]
        rows, up = rows[~deep], up[~deep]
        keys = node_of[up] * num_names + slices.name[rows].astype(np.int64)
        # A path may be met at several levels: all its slices are of one node.
        distinct_keys, index = np.unique(keys, return_inverse=True)
        nodes = [node_for(divmod(key, num_names)) for key in distinct_keys.tolist()]
        node_of[rows] = np.array(nodes, dtype=np.int64)[index]
    return node_of, parent, name


def _longest(
    parent: list[int], host: list[int], device: list[int], most: int
) -> npt.NDArray[np.bool_]:
    """(nodes,): the first `most` by the time of all below; none without its parent."""
    total = with_below(np.array(parent), np.array(host) + np.array(device))
    # What is around another is no shorter, and stands before it.
    order = np.argsort(-total, kind="stable")
    kept = np.zeros(len(parent), dtype=bool)
    kept[order[: max(most, 1)]] = True
    return kept
