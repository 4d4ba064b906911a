"""Matrix multiplications that are far from what the device can do, by their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin.analysis.arrays import sums
from memboard.tb_plugin.analysis.efficiency.work_categories import CATEGORIES
from memboard.tb_plugin.analysis.findings.text import percent, share_text
from memboard.tb_plugin.analysis.findings.trace import advice
from memboard.tb_plugin.analysis.findings.trace.finding import trace_finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.efficiency.arguments import OperatorWork
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.findings import Finding

MATMUL_SHARE: Final = 0.30
"""Of the device's time, which matrix multiplications must take to be worth mending."""
KNOWN_PART: Final = 0.80
"""Of that time, whose FLOP and peak must be known."""
LOW_PEAK_SHARE: Final = 0.40
"""Of the peak: large matrices reach 0.6 to 0.8 of it."""
MEMORY_BOUND: Final = 0.50
"""Of the bandwidth, from which on memory is what they wait for."""
FEW_ROWS: Final = 128
"""Rows of a tile of most kernels: fewer leave a part of it empty."""
_OF_DEVICE: Final = "the device's time"


def slow_matmuls(profile: TraceProfile) -> Iterator[Finding]:
    """Most of the time is in multiplications, and these run far below the peak."""
    if not profile.has_devices:
        return
    times = profile.times
    calls = times.work
    is_matmul = np.array([work.kind == "matmul" for work in calls.distinct], bool)
    rows = np.flatnonzero(is_matmul[calls.work] & ~np.isnan(calls.at_peak_ns))
    all_ns = int(times.work_ns.sum())
    in_matmuls = times.categories == CATEGORIES.index("matmul")
    matmul_ns = int(times.work_ns[in_matmuls].sum())
    known_ns = int(calls.device_ns[rows].sum())
    is_most = matmul_ns >= MATMUL_SHARE * all_ns
    if not known_ns or not is_most or known_ns < KNOWN_PART * matmul_ns:
        return
    at_peak = float(calls.at_peak_ns[rows].sum()) / known_ns
    at_bandwidth = float(calls.at_bandwidth_ns[rows].sum()) / known_ns
    if at_peak >= LOW_PEAK_SHARE:
        return
    by_shape = sums(calls.work[rows], calls.device_ns[rows], len(calls.distinct))
    longest = int(np.argmax(by_shape))
    work = calls.distinct[longest]
    title = "" if calls.peaks is None else calls.peaks.title
    yield trace_finding(
        profile,
        "slow_matmuls",
        "Matrix multiplications below the peak",
        f"{share_text(matmul_ns / all_ns)} of the device's time is in matrix"
        f" multiplications, at {share_text(at_peak)} of the peak of {title}. The longest:"
        f" {work.sizes}.",
        *_advice(profile, work, at_bandwidth),
        evidence=(
            percent(
                "matmuls", "in matrix multiplications", matmul_ns / all_ns, _OF_DEVICE
            ),
            percent("of_peak", f"of the peak of {title}", at_peak, "those with shapes"),
            percent(
                "of_bandwidth",
                "of the memory bandwidth",
                at_bandwidth,
                "those with shapes",
                "each input and output moved once",
                sure=False,
            ),
            percent(
                "longest",
                f"{work.sizes} ({work.element})",
                float(by_shape[longest]) / matmul_ns,
                "all matrix multiplications",
                sure=False,
            ),
        ),
        rule=f"at least {share_text(MATMUL_SHARE)} of the device's time, below"
        f" {share_text(LOW_PEAK_SHARE)} of the peak, where FLOP and peak of"
        f" {share_text(KNOWN_PART)} are known",
    )


def _advice(
    profile: TraceProfile, work: OperatorWork, at_bandwidth: float
) -> Iterator[str]:
    more = "Use larger batches, where memory and latency allow"
    if at_bandwidth >= MEMORY_BOUND:
        yield (
            f"{more}: these wait for memory, which reads the weights once for all rows. Or"
            " use a smaller data type for the weights."
        )
    elif work.num_rows < FEW_ROWS:
        rows = counted(work.num_rows, "row")
        leave = agreeing(work.num_rows, "leaves", "leave")
        yield f"{more}: {rows} {leave} most of each tile empty."
    elif not advice.setup_of(profile.trace).is_compiled:
        yield (
            'If shapes are fixed, let torch.compile(mode="max-autotune") choose the kernels.'
        )
