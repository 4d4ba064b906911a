"""Route `/findings`: all that is wrong with a run, from all sources, the worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from tb_plugin.analysis.findings.peaks import Peaks, peak_findings
from tb_plugin.api.findings import FindingsResponse
from tb_plugin.pages.distributed.stragglers import stragglers_view
from tb_plugin.pages.findings.endings import ending_findings
from tb_plugin.pages.findings.errors import ErrorsReader
from tb_plugin.pages.of_run import of_run
from tb_plugin.pages.overview.facts import ALLOCATED, RSS
from tb_plugin.pages.overview.rank_numbers import RankNumbers, standing_of, strip_of
from tb_plugin.pages.timeline.selection import RanksQuery, chosen_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tb_plugin.analysis.findings.finding import Finding, Severity
    from tb_plugin.api.base import RunSummary
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run
    from tb_plugin.server.state import State

_ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "info")


def _errors(state: State) -> ErrorsReader:
    def make() -> ErrorsReader:
        return ErrorsReader(
            state.facts, state.histories, state.store.cache, state.capacity_bytes
        )

    return state.kept.get("errors", make)


@of_run(
    "findings",
    RanksQuery,
    reads=lambda state: (_errors(state), state.store.series),
    prefetches="facts",
    version=lambda state: _errors(state).judge.version,
)
def findings(
    reader: ErrorsReader,
    series: SeriesReader,
    run: Run,
    summary: RunSummary,
    query: RanksQuery,
    budget: Budget,
) -> FindingsResponse:
    """Answer `/findings`; hold the run's lock."""
    errors = reader.errors(run, query.rank, budget)
    others: Iterable[Finding] = ()
    if run.made_of == "recording":
        ran_out = {
            one.rank
            for one in errors.found
            if one.rank is not None and one.state and one.state.is_out_of_memory
        }
        others = [
            *_of_ranks(reader, run, query, budget, ran_out),
            *stragglers_view(series, run, summary, query, budget).findings,
        ]
    return FindingsResponse(
        run=summary,
        findings=ranked([*errors.found, *others]),
        num_errors=errors.num_errors,
        still_reading=errors.is_reading,
        problems=errors.problems,
    )


def ranked(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first; of one severity as they came. No two have the same id."""
    seen: dict[str, int] = {}
    unique = []
    for one in found:
        number = seen[one.id] = seen.get(one.id, 0) + 1
        unique.append(
            one if number == 1 else structs.replace(one, id=f"{one.id}-{number}")
        )
    return tuple(sorted(unique, key=lambda one: _ORDER.index(one.severity)))


def _of_ranks(
    reader: ErrorsReader,
    run: Run,
    query: RanksQuery,
    budget: Budget,
    ran_out: set[int],
) -> Iterator[Finding]:
    """How ranks ended, and how their peaks compare."""
    chosen = chosen_ranks(run, query)
    everyone = chosen if query.rank is None else chosen_ranks(run, RanksQuery())
    phase = run.catalogue.phase(None)
    key = run.catalogue.find(ALLOCATED, phase) or run.catalogue.find(RSS, phase)
    numbers = RankNumbers(reader.facts, run, budget)
    strip = strip_of(run, everyone, numbers, RSS if key is None else key.column)
    yield from ending_findings(run, chosen, numbers, ran_out)
    standing = standing_of(run, strip, numbers)
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
        unreadable=[rank for rank in everyone if not run.rank_files(rank)],
        num_unread=standing.num_unread,
    )
    yield from peak_findings(peaks, query.rank, has_errors=bool(ran_out))
