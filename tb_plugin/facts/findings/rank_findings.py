"""Findings about the peaks, the growth and the reference cycles of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.findings.conditions import Setup
from memboard.tb_plugin.analysis.findings.cycles import reference_cycles
from memboard.tb_plugin.analysis.findings.growth import growing_memory
from memboard.tb_plugin.analysis.findings.host_growth import growing_processes
from memboard.tb_plugin.analysis.findings.ranks import Peaks, peak_findings
from memboard.tb_plugin.facts.findings.missing import silent_ranks
from memboard.tb_plugin.facts.ranks.columns import RSS, WORKERS
from memboard.tb_plugin.facts.ranks.hosts import growing_processes_of
from memboard.tb_plugin.facts.ranks.rank_strip import standing_of, strip_of
from memboard.tb_plugin.facts.series.selection import RanksQuery, chosen_ranks
from memboard.tb_plugin.facts.steps.collections import DEVICE_MEMORY, memory_in_cycles
from memboard.tb_plugin.facts.view import setup_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from memboard.tb_plugin.analysis.findings.growth import RetainedMemory
    from memboard.tb_plugin.api.findings import Finding
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
    from memboard.tb_plugin.facts.ranks.rank_strip import Strip
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

    ReadRetained: TypeAlias = Callable[[int], tuple[RetainedMemory | None, bool]]
    """By rank: what the latest history says of its growth; whether it is being read."""

MAX_CYCLES: Final = 8
"""Ranks of one program have the same cycles: no more are read."""


def rank_findings(
    view: View[RanksQuery],
    numbers: RankNumbers,
    ran_out: Mapping[int, int],
    retained: ReadRetained | None,
) -> tuple[list[Finding], bool]:
    """How the peaks of ranks compare and grow; whether more will be known.

    `ran_out`: ranks of whose errors other findings are. `retained` names what a rank that
    grows retains; None: no history is opened for that.
    """
    run, query = view.run, view.query
    chosen = chosen_ranks(run, query)
    everyone = chosen if query.rank is None else chosen_ranks(run, RanksQuery())
    strip = strip_of(run, everyone, numbers)
    standing = standing_of(run, strip, numbers)
    silent = silent_ranks(run, everyone)
    peaks = Peaks(
        ranks=everyone,
        peak_bytes=strip.peak_bytes,
        peak_step=strip.peak_step,
        capacity_bytes=strip.capacity_bytes,
        capacity_kind=strip.capacity_kind,
        median_bytes=standing.median_bytes,
        growth=strip.growth,
        num_ooms=standing.num_ooms,
        outliers=standing.outliers,
        unreadable={rank: why for rank, why in silent.items() if why is not None},
        empty=[rank for rank, why in silent.items() if why is None],
        num_unread=standing.num_unread,
    )
    grows, is_reading = None, False
    findings: list[Finding] = []
    # Which rank is full first is not known before all were read.
    if not standing.num_unread:
        grows, is_reading = _growing(view, strip, ran_out, retained)
        findings += [] if grows is None else [grows]
        findings += _growing_processes(
            run, everyone, numbers, [rank for rank in chosen if rank not in ran_out]
        )
    growing: tuple[int | None, ...] = () if grows is None else (grows.rank,)
    findings += peak_findings(
        peaks, query.rank, has_errors=bool(ran_out), growing=growing
    )
    return findings, is_reading


def _growing(
    view: View[RanksQuery],
    strip: Strip,
    ran_out: Container[int],
    read_retained: ReadRetained | None,
) -> tuple[Finding | None, bool]:
    """Device memory that grows, on ranks that have not run out of it."""
    ranks = [
        growing_rank
        for growing_rank in strip.growing_ranks()
        if growing_rank.rank not in ran_out
        and view.query.rank in (None, growing_rank.rank)
    ]
    finding = growing_memory(ranks, None, Setup())
    if finding is None or finding.rank is None or read_retained is None:
        return finding, False
    retained, is_reading = read_retained(finding.rank)
    setup = Setup() if is_reading else setup_of(view.run, finding.rank)
    return growing_memory(ranks, retained, setup), is_reading


def _growing_processes(
    run: Run, everyone: Sequence[int], numbers: RankNumbers, shown: Container[int]
) -> Iterator[Finding]:
    """Of the last attempt of each rank."""
    facts = numbers.last_of(everyone)
    for column in (RSS, WORKERS):
        processes = growing_processes_of(run, facts, column)
        finding = growing_processes(
            [process for process in processes if process.rank in shown],
            workers=column == WORKERS,
        )
        if finding is not None:
            yield finding


def cycle_findings(
    run: Run, ranks: Sequence[int], series: SeriesReader, budget: Budget
) -> Iterator[Finding]:
    """The rank with the largest fall, of at most `MAX_CYCLES`."""
    worst: tuple[float, Finding] | None = None
    for rank in [rank for rank in ranks if run.rank_files(rank)][:MAX_CYCLES]:
        file = run.rank_files(rank)[-1][1]
        in_cycles = memory_in_cycles(file, series, budget)
        if in_cycles is None:
            continue
        fall = in_cycles.teeth.largest_fall
        if worst is None or fall > worst[0]:
            size = file.header.device_total_bytes
            is_of_device = in_cycles.memory == DEVICE_MEMORY
            finding = reference_cycles(
                rank,
                in_cycles.teeth,
                memory=in_cycles.memory,
                capacity=float(size) if is_of_device and size else None,
            )
            worst = fall, finding
    if worst is not None:
        yield worst[1]
