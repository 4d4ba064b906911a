"""The run, or one rank of it: headlines, ranks, starts, problems and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.api.overview import (
    Attempt,
    MissingSources,
    OverviewResponse,
    RecordedSource,
    RunFact,
)
from memboard.tb_plugin.contract.table import Column, rows_of, titled
from memboard.tb_plugin.facts.overview.headlines import Headlines
from memboard.tb_plugin.facts.overview.prediction import (
    prediction_response,
    predictions_of,
)
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.ranks.rank_strip import strip_of, strip_response
from memboard.tb_plugin.facts.series.selection import RanksQuery, chosen_ranks
from memboard.tb_plugin.index.catalogue import said_instead
from memboard.tb_plugin.index.notes import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memboard.collector.format.records import Header
    from memboard.tb_plugin.api.base import Problem
    from memboard.tb_plugin.api.overview import SourceStatus
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.facts.ranks.losses import LossReader
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import AttemptFiles, Run

_MISSING: Final = ("failed", "absent", "off", "elsewhere")
_MAX_VALUES: Final = 4
"""Different values of one fact that are spelled out; of more, the number is said."""


def overview_of(
    view: View[RanksQuery],
    facts: FactsReader,
    losses: LossReader,
    logdir_problems: tuple[Problem, ...],
) -> OverviewResponse:
    """The run, or one rank of it; `empty` is left to who has tabs."""
    reader, run, query = view.series, view.run, view.query
    ranks = chosen_ranks(run, query)
    attempts = tuple(_attempt(reader, attempt) for attempt in run.attempts)
    numbers = RankNumbers(facts, run, view.budget)
    everyone = chosen_ranks(run, RanksQuery())
    strip = strip_of(run, ranks, numbers)
    key = run.catalogue.find(strip.peak, run.catalogue.phase(None))
    whole = strip if query.rank is None else strip_of(run, everyone, numbers)
    headers = [
        file.header
        for attempt in run.attempts
        for rank, file in attempt.files.items()
        if query.rank in (None, rank) and file.written_header is not None
    ]
    predictions = predictions_of(run, ranks)
    statuses_of = run.catalogue.recorded
    recorded, missing = _by_source(statuses_of(query.rank), statuses_of())
    instead = said_instead(run.made_of, len(ranks))
    return OverviewResponse(
        run=view.summary,
        rank=query.rank,
        headlines=Headlines(
            reader,
            run,
            ranks,
            numbers,
            strip,
            predictions,
            bool(view.summary.virtual_gpu),
        ).all(),
        strip=strip_response(run, whole, numbers, "" if key is None else key.text),
        recorded=recorded,
        missing=missing,
        about=" ".join(f"{absence.reason} {absence.remedy}" for absence in instead),
        attempts=attempts,
        attempt_table=_attempt_table(attempts),
        losses=tuple(losses.of_run(run, set(ranks), view.budget)),
        problems=tuple(
            problem
            for problem in run.problems
            if query.rank is None or problem.rank in (None, query.rank)
        ),
        logdir_problems=logdir_problems,
        facts=tuple(_facts(run, headers, query.rank)),
        planted=tuple(dict.fromkeys(text for h in headers for text in h.planted))[:50],
        empty=(),
        prediction=prediction_response(predictions),
    )


def _by_source(
    statuses: Sequence[SourceStatus], whole: Sequence[SourceStatus]
) -> tuple[tuple[RecordedSource, ...], tuple[MissingSources, ...]]:
    """What was recorded, and what was not: equal reasons once.

    `statuses` are of one rank, `whole` of all: what a rank leaves to another one has the
    status of that one.
    """
    tellers = {status.source: status for status in whole if status.status != "off"}
    tellers |= {
        status.source: status for status in whole if status.status == "recorded"
    }
    here = {status.source for status in statuses if status.status != "off"}
    left = {
        status.source: status.reason for status in statuses if status.status == "off"
    }
    recorded: list[RecordedSource] = []
    missing: dict[tuple[Any, int, str, str], list[str]] = {}
    for status in statuses:
        teller = tellers.get(status.source) if status.status == "off" else None
        if teller is not None and status.source in here:
            continue
        if status.status == "recorded":
            why = left.get(status.source, "")
            source = RecordedSource(status.source, status.num_ranks, status.cost, why)
            recorded.append(source)
            continue
        is_elsewhere = teller is not None and teller.status == "recorded"
        of = status if teller is None or is_elsewhere else teller
        kind = "elsewhere" if is_elsewhere else of.status
        key = (kind, status.num_ranks, of.reason, of.remedy)
        missing.setdefault(key, []).append(status.source)
    groups = (MissingSources(tuple(of), *key) for key, of in missing.items())
    return tuple(recorded), tuple(
        sorted(groups, key=lambda group: _MISSING.index(group.status))
    )


def _attempt(reader: SeriesReader, attempt: AttemptFiles) -> Attempt:
    first, last = [], []
    for file in attempt.files.values():
        steps = reader.steps(file)
        if steps is not None:
            first.append(steps[0])
            last.append(steps[1])
    return Attempt(
        index=attempt.index,
        started_ms=attempt.started_ns / 1e6,
        ended_ms=None if attempt.ended == "running" else attempt.last_ns / 1e6,
        first_step=min(first, default=None),
        last_step=max(last, default=None),
        num_ranks=len(attempt.files),
        ended="signal" if _by_signal(attempt) else attempt.ended,
        overlaps_previous=attempt.overlaps_previous,
    )


_ENDS: Final = {
    "closed": "closed",
    "running": "running",
    "exception": "exception",
    "signal": "by a signal",
    "lost": "lost",
}


def _steps(attempt: Attempt) -> str:
    if attempt.first_step is None or attempt.last_step is None:
        return ""
    return f"{attempt.first_step:,}\N{EN DASH}{attempt.last_step:,}"


def _overlap(attempt: Attempt) -> str:
    if not attempt.overlaps_previous:
        return ""
    return "two jobs wrote into this run at the same time"


_ATTEMPT: Final = (
    Column("index", "#", help="1 for the first start of the job in this folder"),
    Column("started_ms", "Started", unit="instant", help="The first of its ranks"),
    Column(
        "seconds",
        "Lasted",
        unit="seconds",
        help="Up to the last that its ranks wrote",
        absent="It may still run",
    ),
    Column(
        "steps",
        "Steps",
        unit="text",
        help="The first and the last recorded step",
        absent="No step was recorded",
        value=_steps,
    ),
    Column("num_ranks", "Ranks", help="Ranks that recorded in it"),
    Column(
        "ended",
        "Ended",
        unit="text",
        help="The worst end of its ranks",
        value=lambda attempt: _ENDS[attempt.ended],
    ),
)
_OVERLAP: Final = Column(
    "overlap", "Problem", unit="problem", help="What is wrong", value=_overlap
)


def _attempt_table(attempts: Sequence[Attempt]) -> TableRows:
    """Starts of the job, the first one first."""
    has_overlap = any(attempt.overlaps_previous for attempt in attempts)
    columns = (*_ATTEMPT, _OVERLAP) if has_overlap else _ATTEMPT
    return titled(rows_of(columns, attempts, usual="-index"), "Attempts")


def _by_signal(attempt: AttemptFiles) -> bool:
    """Whether nothing worse than a signal ended one of its ranks."""
    closes = (file.close for file in attempt.files.values())
    return attempt.ended == "closed" and any(
        close is not None and close.how == "signal" for close in closes
    )


def _facts(run: Run, headers: Iterable[Header], rank: int | None) -> Iterator[RunFact]:
    headers = list(headers)
    of_rank = rank is not None
    by_label: dict[str, Iterable[str]] = {
        "Device": (h.device_name or "" for h in headers),
        "PyTorch": (h.versions.get("torch", "") for h in headers),
        "Driver": (h.versions.get("driver", "") for h in headers),
        "Host" if of_rank else "Hosts": (h.host for h in headers),
        # Of one rank it is a fact; of all ranks it would be a list of numbers.
        "Local rank": (str(h.local_rank) for h in headers) if of_rank else (),
        "Place in the device mesh" if of_rank else "Device mesh": _meshes(
            run, headers, rank
        ),
        "Allocator settings": (h.allocator_settings for h in headers),
        "Recorded by MemBoard": (h.versions.get("memboard", "") for h in headers),
        "Python": (h.versions.get("python", "") for h in headers),
    }
    for label, values in by_label.items():
        text = _spelled(values)
        if text:
            yield RunFact(label, text)
    dropped = _num_dropped(run, rank)
    if dropped:
        yield RunFact("Dropped rows", str(dropped))


def _spelled(values: Iterable[str]) -> str:
    different = list(dict.fromkeys(value for value in values if value))
    text = ", ".join(different[:_MAX_VALUES])
    more = len(different) - _MAX_VALUES
    return f"{text} (+{more})" if more > 0 else text


def _meshes(run: Run, headers: list[Header], rank: int | None) -> Iterator[str]:
    """A rank's coordinates; for all ranks the size of each dimension."""
    meshes = [dict(header.mesh) for header in headers if header.mesh]
    meshes += [
        {
            dimension: value
            for dimension, value in event.data.items()
            if type(value) is int
        }
        for event in run.notes.events("mesh")
        if rank in (None, event.rank)
    ]
    if rank is not None:
        for mesh in meshes[-1:]:
            yield " ".join(f"{dimension}={value}" for dimension, value in mesh.items())
        return
    sizes: dict[str, int] = {}
    for mesh in meshes:
        for dimension, value in mesh.items():
            sizes[dimension] = max(sizes.get(dimension, 0), value + 1)
    yield " ".join(f"{dimension}={size}" for dimension, size in sizes.items())


def _num_dropped(run: Run, rank: int | None) -> int:
    """Rows that were measured but not written: the last count of each file's tables."""
    latest: dict[tuple[int, str, str], int] = {}
    for event in run.notes.events("dropped"):
        count = event.data.get("num_rows")
        if rank in (None, event.rank) and type(count) is int:
            table = text_of(event.data, "table")
            latest[event.rank, event.attempt, table] = count
    by_file: dict[tuple[int, str], int] = {}
    for (of_rank, attempt, _), count in latest.items():
        by_file[of_rank, attempt] = by_file.get((of_rank, attempt), 0) + count
    for (of_rank, attempt), file in run.files.items():
        if rank in (None, of_rank) and file.close is not None:
            num_noted = by_file.get((of_rank, attempt), 0)
            by_file[of_rank, attempt] = max(num_noted, file.close.num_dropped)
    return sum(by_file.values())
