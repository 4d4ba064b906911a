"""Findings about data that a run lacks: ranks that are still written, or say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.collector.format.sizes import agreeing, counted, part_of
from memboard.tb_plugin.api.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.facts.series.selection import RanksQuery
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.index.run import Run


def simulating(view: View[RanksQuery]) -> Iterator[Finding]:
    """How far the writing of a simulated run is."""
    summary = view.summary
    if not summary.simulated or summary.num_ranks >= summary.world_size:
        return
    num, total = summary.num_ranks, summary.world_size
    of, rest = part_of(num, total, "rank"), counted(total - num, "rank")
    sentence = (
        f"Simulating {of}: {rest} {agreeing(total - num, 'is', 'are')} to follow."
    )
    if not summary.live:
        were = agreeing(num, "was", "were")
        sentence = f"{of} {were} written: the simulation ended before the rest."
    yield Finding(
        id="simulating",
        key="simulating",
        severity="info",
        title="Simulating" if summary.live else "Not all ranks",
        sentence=sentence,
    )


def silent_ranks(run: Run, ranks: Sequence[int]) -> dict[int, str | None]:
    """Ranks none of whose files can be read, and why; None: they were made just now."""
    unread = run.unread_ranks
    live = {file.rank for file in run.files.values() if run.file_is_live(file)}
    reasons: dict[int, str] = {}
    for problem in run.problems:
        if problem.rank is not None:
            reasons.setdefault(problem.rank, problem.what)
    return {
        rank: None if rank in live and rank not in reasons else reasons.get(rank, "")
        for rank in ranks
        if rank not in unread and not run.rank_files(rank)
    }
