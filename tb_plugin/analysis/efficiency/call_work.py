"""FLOP and bytes of calls whose shapes tell them, beside the device time that they took."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import (
    NOTHING,
    Table,
    numbered,
    picked,
    places_in,
    ratio,
)
from memboard.tb_plugin.analysis.efficiency.arguments import (
    OperatorWork,
    read_arguments,
)
from memboard.tb_plugin.analysis.efficiency.device_peaks import DevicePeaks, peaks_of
from memboard.tb_plugin.analysis.efficiency.formulas import formula_of, operator_work
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.texts import are

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace

MAX_DISTINCT: Final = 20_000
"""Different names and arguments that are read; calls of others have no FLOP."""


@dataclass(frozen=True, eq=False)
class CallWork(Table):
    """One row per call, those outside others that count left out; ascending."""

    row: Ints  # Slice of the call
    flop: Ints
    moved_bytes: Ints
    device_ns: Ints
    """Sum of what was launched in the call."""
    peak_flop_per_s: Floats
    """Of the device for the call's data type; NaN: not known."""
    work: Ints  # Place in `distinct`
    distinct: tuple[OperatorWork, ...]
    peaks: DevicePeaks | None
    """None: devices that are not listed, or of several kinds."""

    @cached_property
    def at_peak_ns(self) -> Floats:
        """How long each would take at the device's peak rate; NaN: not known."""
        at_peak_ns: Floats = self.flop / self.peak_flop_per_s * 1e9
        return at_peak_ns

    @cached_property
    def at_bandwidth_ns(self) -> Floats:
        """How long moving its bytes would take at the peak bandwidth; NaN: not known."""
        bytes_per_s = np.nan if self.peaks is None else self.peaks.bytes_per_s
        at_bandwidth_ns: Floats = self.moved_bytes / bytes_per_s * 1e9
        return at_bandwidth_ns


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorkTable(Table):
    """What calls computed and moved, by row."""

    flop: Floats
    """NaN where the shapes of no call tell it, as the next."""
    moved_bytes: Floats
    counted_ns: Ints
    """Device time of the calls whose FLOP are known."""
    at_peak_ns: Floats
    at_bandwidth_ns: Floats

    @property
    def flop_per_s(self) -> Floats:
        return ratio(self.flop, self.counted_ns) * 1e9

    @property
    def moved_bytes_per_s(self) -> Floats:
        return ratio(self.moved_bytes, self.counted_ns) * 1e9

    @property
    def peak_share(self) -> Floats:
        """Of the device's peak; NaN where that of any call is not known."""
        return ratio(self.at_peak_ns, self.counted_ns)

    @property
    def bandwidth_share(self) -> Floats:
        return ratio(self.at_bandwidth_ns, self.counted_ns)


def call_work(
    trace: Trace, listed: Flags, device_ns: Ints, tensor_core_ns: Ints
) -> CallWork:
    """Calls of a trace with FLOP; none where the profiler wrote no shapes.

    Columns of (slices,). `listed`: operators with a row in tables. `device_ns`: of what was
    launched in each; `tensor_core_ns`: the part of kernels that use tensor cores.
    """
    rows, work, distinct = _known(trace, listed & (device_ns > 0))
    # Of calls inside each other the innermost counts: what it launched is of both.
    is_known = np.zeros(len(trace.slices), bool)
    is_known[rows] = True
    around = SliceTree(trace.slices, is_known).parent[rows]
    has_inner = np.zeros(len(trace.slices), bool)
    has_inner[around[around != NOTHING]] = True
    rows, work = rows[~has_inner[rows]], work[~has_inner[rows]]
    peaks = peaks_of(trace.facts.devices)
    return CallWork(
        row=rows,
        flop=_column(distinct, "flop")[work],
        moved_bytes=_column(distinct, "moved_bytes")[work],
        device_ns=device_ns[rows],
        peak_flop_per_s=_peaks(distinct, work, peaks, tensor_core_ns[rows] > 0),
        work=work,
        distinct=distinct,
        peaks=peaks,
    )


def _known(trace: Trace, chosen: Flags) -> tuple[Ints, Ints, tuple[OperatorWork, ...]]:
    """Slices of calls with FLOP, ascending, and the work of each."""
    operators, slices, strings = trace.operators, trace.slices, trace.strings
    row = operators.row.astype(np.int64)
    is_read = chosen[row]
    is_read[is_read] = are(strings, slices.name[row[is_read]], formula_of)
    place = np.flatnonzero(is_read)
    columns = (
        slices.name[row[place]],
        operators.input_dims[place],
        operators.input_types[place],
        operators.concrete_inputs[place],
    )
    first, group = numbered(*columns)
    number = np.full(len(first), NOTHING)
    distinct: list[OperatorWork] = []
    for index, texts in enumerate(zip(*(column[first] for column in columns))):  # noqa: B905  # of equal length
        if index >= MAX_DISTINCT:
            break
        name, *written = (strings[text] for text in texts)
        arguments = read_arguments(*written)
        work = None if arguments is None else operator_work(name, arguments)
        if work is not None:
            number[index] = len(distinct)
            distinct.append(work)
    work_of_call = number[group]
    is_known = work_of_call != NOTHING
    return row[place[is_known]], work_of_call[is_known], tuple(distinct)


def _column(distinct: tuple[OperatorWork, ...], name: str) -> Ints:
    return np.array([getattr(work, name) for work in distinct], np.int64)


def _peaks(
    distinct: tuple[OperatorWork, ...],
    work: Ints,
    peaks: DevicePeaks | None,
    uses_tensor_cores: Flags,
) -> Floats:
    """Of fp32, whether TF32 was allowed is known by the kernels alone."""
    if peaks is None:
        return np.full(len(work), np.nan)
    elements = [entry.element for entry in distinct]
    plain = np.array([peaks.flop_per_s(element) for element in elements], np.float64)
    is_fp32 = np.array([element == "fp32" for element in elements], bool)
    by_call: Floats = plain[work]
    by_call[is_fp32[work] & uses_tensor_cores] = peaks.flop_per_s("tf32")
    return by_call


WorkColumns: TypeAlias = dict[str, "Ints"]
"""The columns of a `WorkTable`."""


def work_columns(calls: CallWork, group: Ints, num: int) -> WorkColumns:
    """`group`: (calls,) the row that each belongs to, or NOTHING."""
    return _sums(calls, np.arange(len(calls)), group, np.ones(len(calls)), num)


def kernel_work_columns(
    calls: CallWork, around: Ints, duration_ns: Ints, group: Ints, num: int
) -> WorkColumns:
    """By kernel: of each call the part that is as large as the kernel's part of its time.

    Columns of (kernels,). `around`: the slice of the call that launched each, or NOTHING.
    `group`: the row that each belongs to.
    """
    call = places_in(calls.row, around)
    part = ratio(duration_ns, picked(calls.device_ns, call, 0))
    is_known = call != NOTHING
    return _sums(calls, call[is_known], group[is_known], part[is_known], num)


def _sums(
    calls: CallWork, call: Ints, group: Ints, part: Floats, num: int
) -> WorkColumns:
    """Of parts of calls, by row."""
    is_inside = group != NOTHING
    call, group, part = call[is_inside], group[is_inside], part[is_inside]

    def added(values: Floats | Ints) -> Floats:
        return np.bincount(group, values[call] * part, num).astype(np.float64)

    counted_ns = np.rint(added(calls.device_ns)).astype(np.int64)
    is_counted = counted_ns > 0
    return {
        "flop": np.where(is_counted, added(calls.flop), np.nan),
        "moved_bytes": np.where(is_counted, added(calls.moved_bytes), np.nan),
        "counted_ns": counted_ns,
        "at_peak_ns": added(calls.at_peak_ns),
        "at_bandwidth_ns": added(calls.at_bandwidth_ns),
    }
