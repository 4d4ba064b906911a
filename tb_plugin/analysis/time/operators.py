"""The table of operators: calls and times by name, or by name and input shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.time.slice_roles import Role
from tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.time.operator_times import OperatorTimes
    from tb_plugin.analysis.trace.trace import Trace

    Ints: TypeAlias = npt.NDArray[Any]

_NO_OPERATOR: Final = re.compile(
    r"ProfilerStep#|Optimizer\.|(?:Distributed)?DataParallel\.forward$"
)
"""What `record_function` marks around operators, as old traces have it among them."""

_ELIGIBLE: Final = re.compile(
    r"aten::(?:_?cudnn_)?convolution(?:_backward(?:_input|_weight)?|_transpose.*)?"
    r"|aten::(?:_?convolution.*|_?slow_conv.*|_?thnn_conv.*|conv(?:1d|2d|3d|_tbc|_transpose\dd))"
    r"|aten::(?:mm|bmm|addmm|addmv|addr|addbmm|baddbmm|matmul|linear|einsum|chain_matmul|prelu)"
    r"|aten::(?:_scaled_mm|_grouped_mm|_scaled_grouped_mm|_thnn_fused_\w*cell|\w*(?:lstm|gru|rnn)\w*)"
    r"|aten::_?(?:scaled_dot_product_)?(?:flash|efficient|cudnn)_attention\w*"
    r"|(?:\w*Convolution|AddmmBackward|MmBackward|BmmBackward|BaddbmmBackward|LinearBackward)\w*"
)
"""Operators whose kernels can use tensor cores."""

_EVALUATING: Final = "autograd::engine::evaluate_function: "


@dataclass(frozen=True, slots=True, eq=False)
class OperatorTable:
    """One row per operator, or per operator and input shapes; in no order."""

    name: Ints
    """Row of `Trace.strings`."""
    shapes: Ints
    """Input shapes as written, as rows of `Trace.strings`; -1 where not asked for."""
    num_calls: Ints
    host_self_ns: Ints
    host_total_ns: Ints
    device_self_ns: Ints
    device_total_ns: Ints
    kernel_self_ns: Ints
    kernel_total_ns: Ints
    tensor_core_self_ns: Ints
    tensor_core_total_ns: Ints
    example: Ints
    """Slice of the longest call."""
    group_of: Ints
    """(slices,): the row of each call; -1 for what is no operator."""

    def __len__(self) -> int:
        return len(self.name)


def operator_table(
    times: OperatorTimes, roles: Ints, *, by_shapes: bool = False
) -> OperatorTable:
    """All operators of a trace; `roles` by slice."""
    trace = times.trace
    rows = _operators(times, roles)
    name = trace.slices.name[rows].astype(np.int64)
    shapes = _shapes(trace, rows) if by_shapes else np.full(len(rows), -1, np.int64)
    keys = name * (len(trace.strings) + 1) + shapes + 1
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    duration = trace.slices.duration_ns[rows].astype(np.int64)

    def sums(values: Ints) -> Ints:
        added = np.zeros(len(first), dtype=np.int64)
        np.add.at(added, group, values)
        return added

    longest = np.lexsort((-duration, group))
    group_of = np.full(len(trace.slices), -1, dtype=np.int64)
    group_of[rows] = group
    return OperatorTable(
        name=name[first],
        shapes=shapes[first],
        num_calls=np.bincount(group, minlength=len(first)),
        host_self_ns=sums(times.host_self_ns[rows]),
        host_total_ns=sums(duration),
        device_self_ns=sums(times.device_self_ns[rows]),
        device_total_ns=sums(times.device_total_ns[rows]),
        kernel_self_ns=sums(times.kernel_self_ns[rows]),
        kernel_total_ns=sums(times.kernel_total_ns[rows]),
        tensor_core_self_ns=sums(times.tensor_core_self_ns[rows]),
        tensor_core_total_ns=sums(times.tensor_core_total_ns[rows]),
        example=rows[longest[np.searchsorted(group[longest], np.arange(len(first)))]],
        group_of=group_of,
    )


def is_eligible(name: str) -> bool:
    """Whether an operator's kernels can use tensor cores."""
    return _ELIGIBLE.fullmatch(name.removeprefix(_EVALUATING)) is not None


def _operators(times: OperatorTimes, roles: Ints) -> Ints:
    """Rows of operators."""
    trace = times.trace
    rows = np.flatnonzero(times.is_operator & (roles != Role.DATALOADER))
    found: Ints = rows[~are(trace.strings, trace.slices.name[rows], _NO_OPERATOR.match)]
    return found


def _shapes(trace: Trace, rows: Ints) -> Ints:
    known = trace.operators
    at = np.searchsorted(known.row, rows)
    at = np.minimum(at, max(len(known.row) - 1, 0))
    if not len(known.row):
        return np.zeros(len(rows), dtype=np.int64)
    return np.where(known.row[at] == rows, known.input_dims[at], 0).astype(np.int64)
