"""Instants on the x axis: restarts, epochs, phases, out-of-memory errors, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.api.timeline import Mark
from memboard.tb_plugin.index.notes import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Literal

    from memboard.tb_plugin.facts.series.selection import XAxis
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesKey, SeriesReader
    from memboard.tb_plugin.index.notes import Event
    from memboard.tb_plugin.index.run import AttemptFiles, Run

MAX_MARKS: Final = 500
_MAX_PER_COUNTER: Final = 64
_ORDER: Final = ("oom", "attempt", "user", "phase", "dropped", "epoch", "retry")
"""Marks to show first where there are too many."""


def marks_of(
    reader: SeriesReader, run: Run, axis: XAxis, ranks: Sequence[int]
) -> tuple[Mark, ...]:
    """Marks of the run and of the given ranks, in order of x, at most 500."""
    unique: dict[tuple[str, float, int | None, str], Mark] = {}
    for mark in _all(reader, run, axis, ranks):
        unique.setdefault((mark.kind, mark.x, mark.rank, mark.label), mark)
    marks = sorted(unique.values(), key=lambda m: (_ORDER.index(m.kind), m.x))
    return tuple(sorted(marks[:MAX_MARKS], key=lambda mark: mark.x))


def ranks_with_oom(reader: SeriesReader, run: Run) -> list[int]:
    """Ranks that ran out of memory, by note or by counter."""
    ranks = {event.rank for event in run.notes.events("oom")}
    key = run.catalogue.find("num_ooms")
    if key is not None:
        for attempt in run.attempts:
            for rank, file in attempt.files.items():
                columns, _ = reader.aggregates(file, key, ["num_ooms:max"])
                counts = columns["num_ooms:max"]
                if len(counts) and np.nanmax(np.append(counts, 0.0)) > 0:
                    ranks.add(rank)
    return sorted(ranks)


def _all(
    reader: SeriesReader, run: Run, axis: XAxis, ranks: Sequence[int]
) -> Iterator[Mark]:
    attempts = {
        (rank, file.attempt): attempt
        for attempt in run.attempts
        for rank, file in attempt.files.items()
    }
    yield from _seams(reader, run, axis)
    chosen = set(ranks)
    for event_kind, kind, key in _EVENTS:
        for event in run.notes.events(event_kind):
            if kind in ("oom", "dropped") and event.rank not in chosen:
                continue
            attempt = attempts.get((event.rank, event.attempt))
            if attempt is not None:
                if kind == "phase" and axis.kind == "step" and event.step is not None:
                    # Each phase counts its own steps; the axis is the training's.
                    file = attempt.files[event.rank]
                    step = reader.train_step_at(file, event.time_ns, event.step)
                    event = event._replace(step=step)  # noqa: PLW2901
                own = event.rank if kind in ("oom", "dropped") else None
                yield from _mark(axis, attempt, event, kind, key, own)
    noted = {event.rank for event in run.notes.events("oom")}
    silent = [rank for rank in ranks if rank not in noted]
    yield from _increments(reader, run, axis, silent, "num_ooms", "oom")
    if len(ranks) <= _MAX_PER_COUNTER:
        yield from _increments(reader, run, axis, ranks, "num_alloc_retries", "retry")


_EVENTS: Final[
    tuple[tuple[str, Literal["epoch", "phase", "user", "oom", "dropped"], str], ...]
] = (
    ("epoch", "epoch", "epoch"),
    ("phase", "phase", "phase"),
    ("mark", "user", "label"),
    ("oom", "oom", "message"),
    ("dropped", "dropped", "num_rows"),
)
"""Kind of note, kind of mark, and which of the note's data is its label."""


def _mark(
    axis: XAxis,
    attempt: AttemptFiles,
    event: Event,
    kind: Literal["epoch", "phase", "user", "oom", "dropped"],
    key: str,
    rank: int | None,
) -> Iterator[Mark]:
    x = axis.x_of_event(attempt, event.step, event.time_ns)
    if x is not None:
        yield Mark(kind=kind, x=x, rank=rank, label=text_of(event.data, key))


def _seams(reader: SeriesReader, run: Run, axis: XAxis) -> Iterator[Mark]:
    for attempt in run.attempts[1:]:
        step = None
        if axis.kind == "step":
            step = first_step(reader, attempt)
        x = axis.x_of_event(attempt, step, attempt.started_ns)
        if x is not None:
            yield Mark(kind="attempt", x=x, rank=None, label=str(attempt.index))


def first_step(reader: SeriesReader, attempt: AttemptFiles) -> int | None:
    """The first step of an attempt, as its lowest rank recorded it."""
    for file in attempt.files.values():
        steps = reader.steps(file)
        if steps is not None:
            return steps[0]
    return None


def _increments(
    reader: SeriesReader,
    run: Run,
    axis: XAxis,
    ranks: Iterable[int],
    column: str,
    kind: Literal["oom", "retry"],
) -> Iterator[Mark]:
    """Where a counter rose. Inside a bucket the first row stands for all."""
    key = run.catalogue.find(column)
    if key is None:
        return
    count = 0
    for rank in ranks:
        for attempt, file in run.rank_files(rank):
            for x, rise in _rises(reader, axis, attempt, file, key):
                yield Mark(kind=kind, x=x, rank=rank, label=str(rise))
                count += 1
                if count >= _MAX_PER_COUNTER:
                    return


def _rises(
    reader: SeriesReader,
    axis: XAxis,
    attempt: AttemptFiles,
    file: RankFile,
    key: SeriesKey,
) -> Iterator[tuple[float, int]]:
    rows = reader.rollup(file, key, axis.clocks[attempt.index])
    if rows is None:
        return
    present = ~np.isnan(rows.high)
    counts, x = rows.high[present], rows.first[present]
    rises = np.diff(counts, prepend=0.0)
    for index in np.flatnonzero(rises > 0)[:_MAX_PER_COUNTER]:
        yield float(x[index]), int(rises[index])
