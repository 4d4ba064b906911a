"""The route of all ranks' histories: each one's peak beside the median.

Opening thousands of histories takes long, so a few are opened at each question; what
was found of one, or why nothing can be, is small and kept for as long as its content
stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.sizes import agreeing, capitalized, counted, part_of
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.compare import RankHistoriesResponse, RankHistory
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.histories.opening import HistoryQuery, find
from memboard.tb_plugin.facts.histories.rank_peaks import (
    RankFacts,
    belonging,
    line_bytes,
    median_peak,
)
from memboard.tb_plugin.index.history_list import listed
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.facts.histories.rank_peaks import LineBytes
    from memboard.tb_plugin.index.history_list import FoundHistory

OPEN_SECONDS: Final = 2.0

_ALIKE: Final = 0.005
"""Of the median: a peak that is so little above it does not stand out."""

_MAX_TEXT: Final = 500

_COLUMNS: Final = (
    Column(
        "rank", "Rank", unit="rank", help="Click a row to open its history at the peak"
    ),
    Column(
        "peak_bytes",
        "Peak",
        unit="bytes",
        help="Highest live bytes in the history, which shows a few steps of the run",
    ),
    Column(
        "difference_from_median_bytes",
        "From the median",
        unit="change_bytes",
        help="Of the histories that are read",
        bar="change",
    ),
    Column("reserved_bytes", "Reserved", unit="bytes", help="At the peak"),
    Column(
        "fragmentation_bytes",
        "Fragmentation",
        unit="bytes",
        help="Reserved less live bytes, at the peak",
    ),
    Column(
        "top_bytes",
        "Top allocation site",
        unit="bytes",
        help="Live bytes of the top allocation site",
    ),
    Column(
        "top_site",
        "Site",
        unit="text",
        help="The line with most live bytes, at the peak",
    ),
    Column(
        "num_ooms",
        "Out of memory",
        unit="errors",
        help="Out-of-memory errors in the history",
    ),
)


@route("rank_histories", HistoryQuery)
def rank_histories(asked: RouteRequest[HistoryQuery]) -> RankHistoriesResponse:
    """The histories that belong to the query's, as far as facts are known."""
    state = asked.state
    with state.reading(asked.query.run) as reading:
        run = reading.run
        every = listed(*reading)
        asked_history = find(reading, asked.query)
        summary, version = state.summary(run), run.version
        still_reading = reading.goes_on
    title, chosen = belonging(every, asked_history)
    ranks = {history.reference.rank for history in every} - {None}
    left = summary.num_ranks - len(ranks)
    facts, problems = state.rank_histories.read(run, chosen, Budget(OPEN_SECONDS))
    # Of thousands of ranks the answer takes long to make, and is polled.
    keys = [history.key for history in chosen]
    asked.decided_by(version, title, keys, [*facts], problems, still_reading)
    known_facts = [facts[place] for place in sorted(facts)]
    lines = line_bytes(facts, len(chosen))
    rows = tuple(
        _rank(history, facts.get(place), problems.get(place, ""))
        for place, history in enumerate(chosen)
    )
    every_line = {
        line[:_MAX_TEXT]: num_bytes
        for line, num_bytes in zip(lines.lines, lines.num_bytes, strict=True)
    }
    median = median_peak(known_facts)
    still_reading |= len(facts) + len(problems) < len(chosen)
    without = f"{counted(left, 'rank')} of the run {agreeing(left, 'has', 'have')} none"
    notes = (
        title,
        f"{part_of(len(facts), len(chosen), 'history')} read"
        + (f", spread over all {len(ranks):,}" if len(ranks) > len(chosen) else ""),
        without if left > 0 else "",
        "the rest is being opened" if still_reading else "",
        f"{len(problems):,} cannot be opened" if problems else "",
    )
    return RankHistoriesResponse(
        run=summary,
        title=title,
        sentence=_sentence(rows, median, lines, still_reading=still_reading),
        note="; ".join(filter(None, notes)),
        ranks=rows,
        table=_table(rows, facts, median, every_line),
        median_history_peak_bytes=median,
        lines=tuple(every_line),
        line_bytes=f64(lines.num_bytes),
        still_reading=still_reading,
    )


def _rank(history: FoundHistory, facts: RankFacts | None, problem: str) -> RankHistory:
    rank = history.reference.rank
    return RankHistory(
        rank=0 if rank is None else rank,
        reference=history.reference,
        state="ready" if facts is not None else "failed" if problem else "closed",
        problem=problem,
        device=None if facts is None else facts.device,
        peak_active_bytes=None if facts is None else float(facts.peak_bytes),
        peak_moment=None if facts is None else facts.peak_moment,
        num_ooms=None if facts is None else facts.num_ooms,
    )


def _table(
    ranks: Sequence[RankHistory],
    facts: Mapping[int, RankFacts],
    median: float | None,
    lines: Mapping[str, Floats],
) -> TableRows:
    facts_of_ranks = [facts.get(place) for place in range(len(ranks))]
    tops = [
        next(iter(rank_facts.lines.items()), None) if rank_facts else None
        for rank_facts in facts_of_ranks
    ]
    values: dict[str, Iterable[Any]] = {
        "rank": [rank.rank for rank in ranks],
        "peak_bytes": [
            rank_facts and rank_facts.peak_bytes for rank_facts in facts_of_ranks
        ],
        "difference_from_median_bytes": [
            rank_facts and rank_facts.peak_bytes - (median or 0.0)
            for rank_facts in facts_of_ranks
        ],
        "reserved_bytes": [
            rank_facts and rank_facts.reserved_bytes for rank_facts in facts_of_ranks
        ],
        "fragmentation_bytes": [
            rank_facts and rank_facts.reserved_bytes - rank_facts.peak_bytes
            for rank_facts in facts_of_ranks
        ],
        "top_bytes": [top and top[1] for top in tops],
        "top_site": [
            top[0][:_MAX_TEXT] if top else rank.problem or "being opened…"
            for top, rank in zip(tops, ranks, strict=True)
        ],
        "num_ooms": [
            rank_facts and rank_facts.num_ooms for rank_facts in facts_of_ranks
        ],
        **{f"{line} (bytes)": line_bytes for line, line_bytes in lines.items()},
    }
    of_lines = [Column(f"{line} (bytes)", unit="bytes") for line in lines]
    table = table_of([*_COLUMNS, *of_lines], values, "peak_bytes")
    summary = "A click opens the rank's history at its peak"
    return titled(table, "Ranks", summary, "No rank.")


def _sentence(
    ranks: Sequence[RankHistory],
    median: float | None,
    lines: LineBytes,
    *,
    still_reading: bool,
) -> str:
    """Who stands out, and by which line."""
    peaks = {
        rank.rank: rank.peak_active_bytes
        for rank in ranks
        if rank.peak_active_bytes is not None
    }
    if not peaks or median is None:
        return "No rank is read yet"
    top = max(peaks, key=lambda rank: peaks[rank])
    by, peak = peaks[top] - median, size_text(peaks[top])
    every = counted(len(peaks), "history")
    sentence = f"{every} {agreeing(len(peaks), 'peaks', 'peak')} at about {peak}"
    if by > _ALIKE * median:
        sentence = (
            f"the history of rank {top} peaks at {peak}, {size_text(by)} above the"
            f" median of {every}{_mostly(ranks, top, by, lines)}"
        )
    failed = [rank.rank for rank in ranks if rank.num_ooms]
    if failed:
        whose = agreeing(len(failed), f"rank {failed[0]}", counted(len(failed), "rank"))
        sentence += f"; {whose} ran out of memory"
    return f"So far: {sentence}" if still_reading else capitalized(sentence)


def _mostly(ranks: Sequence[RankHistory], top: int, by: float, lines: LineBytes) -> str:
    """The line that makes most of how far a rank is beyond the median."""
    place = next(index for index, rank in enumerate(ranks) if rank.rank == top)
    line, beyond = lines.most_beyond_median(place)
    return f", mostly at {line}" if 2 * beyond > by else ""
