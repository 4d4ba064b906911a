"""The collectives of one rank: what, in which group, how many bytes, how long.

On a device they are kernels, known by `slice_roles`; what they did is said by the
profiler's metadata on the kernel, or on the call that launched it, else by the kernel's
name. Without a device they are the slices of the host's backend (`gloo:all_reduce`),
and bytes come from the shapes of their inputs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, Table, picked, places_in
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace


_WORDS: Final = (
    # The first that a name contains decides, in lower case and without `_`.
    ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("crossdevicereduce", "all_reduce"),
    ("quickreduce", "all_reduce"),
    ("alltoall", "all_to_all"),
    ("a2a", "all_to_all"),
    ("dispatch", "all_to_all"),
    ("combine", "all_to_all"),
    ("broadcast", "broadcast"),
    ("sendrecv", "send_recv"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
    ("barrier", "barrier"),
    ("send", "send"),
    ("recv", "recv"),
)

_ITEM_BYTES: Final = {
    **dict.fromkeys(("double", "long", "longint", "complexfloat", "int64"), 8),
    **dict.fromkeys(("complexdouble", "complex<double>"), 16),
    **dict.fromkeys(("complex<float>", "uint64", "unsignedlong"), 8),
    **dict.fromkeys(("float", "int", "int32", "uint32", "unsignedint"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "shortint", "uint16"), 2),
    **dict.fromkeys(("byte", "char", "bool", "unsignedchar", "signedchar"), 1),
}
"""By torch's names of types, in lower case, without `c10::` and spaces."""

_FLOAT8: Final = re.compile(r"float8|float4|e4m3|e5m2|e8m0")

_FROM_INPUT: Final = frozenset(
    {"reduce_scatter", "all_reduce", "reduce", "broadcast", "scatter", "send"}
)
"""Collectives whose size is that of their input; of others their output's."""


@dataclass(frozen=True, slots=True, eq=False)
class RankCollectives(Table):
    """By collective, in order of time; unknown numbers are -1."""

    row: Ints
    kind: tuple[str, ...]
    """`all_reduce`, `all_gather`, ...; `other` where nothing says it."""
    group: tuple[str, ...]
    """Name of the process group; empty where it is not said."""
    start_ns: Ints
    duration_ns: Ints
    num_bytes: Ints
    group_size: Ints
    sequence: Ints
    """Number within the group, the same on each of its ranks."""


def rank_collectives(trace: Trace, roles: Ints) -> RankCollectives:
    """All collectives of a trace; `roles` by slice."""
    rows = _rows(trace, roles)
    rows = rows[np.argsort(trace.slices.start_ns[rows], kind="stable")]
    details = _metadata(trace, rows)
    operators = places_in(trace.operators.row, rows)
    names = [
        _kind(trace, row, detail) for row, detail in zip(rows, details, strict=True)
    ]
    described = trace.collectives

    group = picked(described.group, details)
    shape_bytes = cache(_shape_bytes)  # few shapes come again and again
    num_bytes = [
        _moved_bytes(trace, kind, detail, operator, shape_bytes)
        for kind, detail, operator in zip(names, details, operators, strict=True)
    ]
    return RankCollectives(
        row=rows,
        kind=tuple(names),
        group=tuple(trace.strings[text] if text >= 0 else "" for text in group),
        start_ns=trace.slices.starts(rows),
        duration_ns=trace.slices.duration_ns[rows].astype(np.int64),
        num_bytes=np.array(num_bytes, dtype=np.int64),
        group_size=picked(described.group_size, details),
        sequence=picked(described.sequence, details),
    )


def kind_of(collective: str) -> str:
    """The collective that a kernel's or an operator's name says."""
    plain = collective.lower().replace("_", "")
    return next((kind for word, kind in _WORDS if word in plain), "other")


def item_bytes(dtype: str) -> int:
    """Bytes of one element; 0 where the type is not known."""
    plain = dtype.lower().replace("c10::", "").replace(" ", "")
    return _ITEM_BYTES.get(plain) or int(bool(_FLOAT8.search(plain)))


def _rows(trace: Trace, roles: Ints) -> Ints:
    communicating: Ints = np.flatnonzero(roles == Role.COMMUNICATION)
    on_device = np.isin(communicating, trace.device_work.row)
    if on_device.any():
        communicating_rows: Ints = communicating[on_device]
    else:
        # One inside another (a wrapper around the backend's) is the same one.
        tree = SliceTree(trace.slices, roles == Role.COMMUNICATION)
        communicating_rows = communicating[tree.parent[communicating] == NOTHING]
    return communicating_rows


def _metadata(trace: Trace, rows: Ints) -> Ints:
    """Row of `trace.collectives` that describes each slice, or NOTHING."""
    described_rows = trace.collectives.row
    details = places_in(described_rows, rows)
    described = np.zeros(len(trace.slices), dtype=bool)
    described[described_rows] = True
    around = SliceTree(trace.slices, described).parent
    lost = np.flatnonzero(details == NOTHING)
    pairs = trace.launch_pairs
    launch = dict(zip(pairs[:, 1].tolist(), pairs[:, 0].tolist(), strict=True))
    outer = [int(around[launch.get(row, row)]) for row in rows[lost].tolist()]
    details[lost] = places_in(described_rows, np.array(outer, dtype=np.int64))
    return details


def _kind(trace: Trace, row: int, detail: int) -> str:
    if detail != NOTHING:
        name = int(trace.collectives.name[detail])
        kind = kind_of(trace.strings[name]) if name >= 0 else "other"
        if kind != "other":
            return kind
    return kind_of(trace.name_of(row))


def _moved_bytes(
    trace: Trace,
    kind: str,
    detail: int,
    operator: int,
    shape_bytes: Callable[[str, str], int],
) -> int:
    described = trace.collectives
    if detail != NOTHING and described.dtype[detail] >= 0:
        size = item_bytes(trace.strings[int(described.dtype[detail])])
        sides = int(described.in_elements[detail]), int(described.out_elements[detail])
        elements = sides[0] if kind in _FROM_INPUT else max(sides)
        if size and elements >= 0:
            return size * elements
    if operator != NOTHING:
        dims, types = trace.operators.input_dims, trace.operators.input_types
        return shape_bytes(
            trace.strings[int(dims[operator])], trace.strings[int(types[operator])]
        )
    return NOTHING


def _shape_bytes(dims: str, types: str) -> int:
    """Bytes of an operator's inputs from its shapes and types as written."""
    try:
        shapes, names = json.loads(dims), json.loads(types)
    except ValueError:
        return NOTHING
    if not isinstance(shapes, list) or not isinstance(names, list):
        return NOTHING
    total, has_shape = 0, False
    for shape, dtype_name in zip(shapes, names, strict=False):
        for sizes, dtype in _tensors(shape, dtype_name):
            size = item_bytes(dtype)
            if size and all(type(n) is int and n >= 0 for n in sizes):
                total += size * int(np.prod(sizes, dtype=object) if sizes else 1)
                has_shape = True
    return min(total, (1 << 62)) if has_shape else NOTHING


def _tensors(shape: Any, dtype_name: Any) -> list[tuple[list[Any], str]]:
    """A shape and its type; of a list of tensors each."""
    if not isinstance(shape, list) or not isinstance(dtype_name, str):
        return []
    if shape and isinstance(shape[0], list):
        dtype = dtype_name.removeprefix("TensorList").strip("[]<> ")
        return [(sizes, dtype) for sizes in shape if isinstance(sizes, list)]
    return [(shape, dtype_name)] if shape else []
