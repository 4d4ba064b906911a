"""Columns of FLOP, bytes and kinds of work, and the table of categories.

Operators, kernels and categories share them: they are what `WorkTable` has. The tables of
operators and kernels show either these or times, as all together fit on no screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.efficiency.work_categories import CATEGORIES
from memboard.tb_plugin.analysis.findings.text import share_text
from memboard.tb_plugin.contract.table import Column, Table

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.contract.table import RowsQuery

NO_DEVICE: Final = (
    "Nothing ran on a device while it was recorded, or the profiler did not record "
    "devices: ProfilerActivity.CUDA does (automatic)."
)
CATEGORY: Final = Column(
    "category",
    "Category",
    unit="text",
    names=CATEGORIES,
    help="Kind of work: by the operator's name, by that of the kernel where it says nothing, and "
    "of copies and communication by what ran. Fused: of several operators, by "
    "torch.compile. The search finds a whole category.",
)
_NO_SHAPES: Final = (
    "No formula: no matrix multiplication, attention or convolution launched it, or the"
    " trace has no shapes of it (record_shapes=True)"
)
_NO_PEAK: Final = "FLOP are not known, or the device's peak for this data type: the documentation lists peaks"
_WORK: Final = (
    Column(
        "flop",
        "FLOP",
        unit="flops",
        help="Of matrix multiplications, attention and convolutions, by the shapes of their "
        "inputs: a multiplication and an addition are two. Of operators inside each "
        "other the innermost counts.",
        absent=_NO_SHAPES,
    ),
    Column(
        "flop_per_s",
        "FLOP/s",
        unit="flops",
        help="FLOP ÷ the device time of the calls that they are known of",
        absent=_NO_SHAPES,
    ),
    Column(
        "peak_share",
        "Of peak",
        unit="share",
        help="FLOP/s ÷ the device's dense peak for the inputs' data type, as its maker lists it",
        absent=_NO_PEAK,
    ),
    Column(
        "moved_bytes",
        "Moved",
        unit="bytes",
        help="Least bytes that those calls read and write: each input and each output once",
        absent=_NO_SHAPES,
    ),
    Column(
        "moved_bytes_per_s",
        "Moved/s",
        unit="bytes_per_second",
        help="Moved ÷ the same time",
        absent=_NO_SHAPES,
    ),
    Column(
        "bandwidth_share",
        "Of bandwidth",
        unit="share",
        help="Moved/s ÷ the device's memory bandwidth. Near 100 %: it waits for memory, and "
        "more FLOP in the same bytes (larger batches) cost nothing.",
        absent=_NO_PEAK,
    ),
)
_AGAIN: Final = (
    "of forward operators that activation checkpointing runs again in backward"
)
OPERATOR_WORK: Final = (
    CATEGORY,
    *_WORK,
    Column(
        "recomputed_self_ms",
        "Recomputed",
        unit="ms",
        help=f"The part of device self {_AGAIN}",
    ),
)
KERNEL_WORK: Final = (
    CATEGORY,
    *_WORK,
    Column(
        "recomputed_ms", "Recomputed", unit="ms", help=f"The part of the total {_AGAIN}"
    ),
)

CATEGORY_TABLE: Final = Table(
    (
        Column("name", "Category", unit="name", names=CATEGORIES, help=CATEGORY.help),
        Column(
            "num_calls",
            "Kernels",
            unit="count",
            help="Kernels, copies and fills that ran while the profiler did",
        ),
        Column(
            "total_ms",
            "Device",
            unit="ms",
            help="Sum of their durations. Those that ran at the same time count each.",
            bar="kernel",
            share_of="of the device's time",
        ),
        *KERNEL_WORK[1:],
    )
)


def category_rows(profile: TraceProfile, query: RowsQuery) -> TableRows:
    """Time of devices by category, with the FLOP of each."""
    table = profile.categories
    rows = CATEGORY_TABLE.rows(table, (), query, "total_ms")
    names = [CATEGORIES[name] for name in table.name[rows[0]].tolist()]
    kinds = tuple(name if name == "communication" else "kernel" for name in names)
    without = () if table.recomputed_ns.any() else ("recomputed_ms",)
    return CATEGORY_TABLE.sent(
        table, (), rows, "total_ms", without=without, colours=kinds
    )


def work_summary(profile: TraceProfile) -> str:
    """What FLOP are known of, and against which peaks; begins with `; `."""
    work, all_ns = profile.times.work, int(profile.times.work_ns.sum())
    if not len(work) or not all_ns:
        return "; no FLOP: the trace has no shapes of what ran on devices"
    share = share_text(float(work.device_ns.sum()) / all_ns)
    peaks = "no peaks are listed for this device"
    if work.peaks is not None:
        peaks = f"peaks of {work.peaks.title}"
    return f"; FLOP known of {share} of the device's time; {peaks}"
