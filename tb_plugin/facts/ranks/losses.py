"""Steps and traces that the recording lacks: one account for each rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from memboard.collector.format.capture import TRACE_ENDED, TRACE_LOST
from memboard.collector.format.columns import STEP_TABLE
from memboard.collector.format.records import OVER_BUDGET, StepCounts
from memboard.tb_plugin.analysis.ranks.lost_rows import lost_rows
from memboard.tb_plugin.api.overview import LostSteps, LostTrace, RankLoss
from memboard.tb_plugin.facts.ranks.columns import STEP_TIME
from memboard.tb_plugin.formats.recording.captures.meta import Meta
from memboard.tb_plugin.formats.recording.captures.reading import (
    traces_of,
)
from memboard.tb_plugin.formats.recording.series import stamp_of
from memboard.tb_plugin.index.notes import text_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from memboard.collector.format.records import CaptureEntry, Schema
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader, FileFacts
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

_FLUSH_SECONDS: Final = 2.0
"""Where a header does not say at which pace the file was written."""

_MAX_LOST_TRACES: Final = 100
"""Of one rank that are named."""
_MOST: Final = 2**62
_BROKE_OFF: Final = "the recording breaks off before it was saved"


class _Traces(NamedTuple):
    num: int = 0
    lost: tuple[CaptureEntry, ...] = ()
    unsaved: tuple[CaptureEntry, ...] = ()
    """Those that were not saved when the recording was written so far."""


class _Account(NamedTuple):
    steps: StepCounts
    num_unwritten: int
    damaged: tuple[LostSteps, ...]
    traces: _Traces


class LossReader:
    """Accounts by file, kept until the file changes or damage is found in it."""

    def __init__(self, series: SeriesReader, facts: FactsReader) -> None:
        self._series = series
        self._facts = facts
        self._known: WeakKeyDictionary[RankFile, tuple[object, _Account]] = (
            WeakKeyDictionary()
        )

    def of_run(
        self, run: Run, ranks: Container[int], budget: Budget
    ) -> Iterator[RankLoss]:
        """Accounts of ranks that lack steps, or may lack some; hold the run's lock."""
        noted = _noted(run)
        for attempt in run.attempts:
            for rank, file in attempt.files.items():
                if rank not in ranks or file.unfinished:
                    continue
                dropped, summed_up = noted.get((rank, file.attempt), (0, 0))
                account = self._account(file, dropped, summed_up, budget)
                is_stopped = file.close is None and not run.file_is_live(file)
                num_damaged = sum(rows.num_steps for rows in account.damaged)
                lost = account.steps.dropped + account.num_unwritten + num_damaged
                no_traces = account.traces.lost
                if is_stopped or file.close is not None:
                    no_traces += account.traces.unsaved
                if not (lost or account.steps.summed_up or is_stopped or no_traces):
                    continue
                seconds, cut = 0.0, None
                if is_stopped:
                    seconds, cut = _cut(file, self._facts.within(file, budget))
                yield RankLoss(
                    rank=rank,
                    attempt=attempt.index,
                    num_steps=account.steps.taken,
                    num_dropped=account.steps.dropped,
                    num_unwritten=account.num_unwritten,
                    num_damaged=num_damaged,
                    damaged=account.damaged,
                    num_summed_up=account.steps.summed_up,
                    is_stopped=is_stopped,
                    cut_seconds=seconds,
                    cut_steps=cut,
                    num_traces=account.traces.num,
                    num_lost_traces=len(no_traces),
                    lost_traces=tuple(
                        self._lost_trace(file, entry, budget)
                        for entry in no_traces[:_MAX_LOST_TRACES]
                    ),
                )

    def _lost_trace(
        self, file: RankFile, entry: CaptureEntry, budget: Budget
    ) -> LostTrace:
        meta = Meta(self._series.capture_metas.of(file, entry, budget) or {})
        why = meta.text("problem")
        for prefix in ("not saved: ", "not traced: "):
            why = why.removeprefix(prefix)
        return LostTrace(
            cycle=entry.iteration,
            first_step=meta.count("first_step", _MOST),
            last_step=meta.count("last_step", _MOST),
            why=_BROKE_OFF if entry.context == TRACE_ENDED else why,
        )

    def _account(
        self, file: RankFile, dropped: int, summed_up: int, budget: Budget
    ) -> _Account:
        lost_bytes = file.lost_bytes
        stamp = (
            stamp_of(file),
            file.close,
            file.num_faults_said,
            len(lost_bytes),
            len(file.behind.captures.found),
            dropped,
            summed_up,
        )
        stamped = self._known.get(file)
        if stamped is not None and stamped[0] == stamp:
            return stamped[1]
        schemas = [
            schema for schema in file.schemas.values() if schema.table == STEP_TABLE
        ]
        written = {schema.schema_id: _num_written(file, schema) for schema in schemas}
        steps = None if file.close is None else file.close.steps
        if steps is None:
            taken = sum(written.values()) + dropped + summed_up
            steps = StepCounts(taken=taken, dropped=dropped, summed_up=summed_up)
        missing = steps.taken - steps.dropped - steps.summed_up - sum(written.values())
        missing = max(0, missing)
        # Of a complete file nothing was left unwritten: what is missing was damaged.
        is_damaged = file.is_complete or file.lacks_schemas
        damaged: list[LostSteps] = []
        if lost_bytes or (missing and is_damaged):
            is_tail = is_damaged and len(schemas) == 1 and not file.lacks_schemas
            for schema in schemas:
                number = written[schema.schema_id] + (missing if is_tail else 0)
                chunks = self._series.chunks_of(file, schema.schema_id, budget)
                damaged += [
                    LostSteps(
                        schema.phase,
                        lost_row.first_step,
                        lost_row.last_step,
                        lost_row.num_rows,
                    )
                    for lost_row in lost_rows(chunks, lost_bytes, number)
                ]
            if missing and is_damaged and not is_tail:
                damaged.append(LostSteps("", None, None, missing))
        account = _Account(
            steps,
            0 if is_damaged else missing,
            tuple(damaged),
            _traces(file, budget),
        )
        if not budget.exhausted:
            self._known[file] = stamp, account
        return account


def _traces(file: RankFile, budget: Budget) -> _Traces:
    """Its traces, and those of them that are not there."""
    section = file.header.config.get("torch_profiler")
    if not (isinstance(section, dict) and section.get("enabled")):
        return _Traces()  # captures of thousands of ranks are not looked through
    counting = [entry for _, entry in traces_of(file, budget)]
    return _Traces(
        len(counting),
        tuple(entry for entry in counting if entry.context == TRACE_LOST),
        tuple(entry for entry in counting if entry.context == TRACE_ENDED),
    )


def _cut(file: RankFile, facts: FileFacts | None) -> tuple[float, float | None]:
    """What is lost at most of a rank that was stopped: seconds, and steps in these."""
    told = file.header.config.get("flush_seconds")
    seconds = float(told) if isinstance(told, (int, float)) else _FLUSH_SECONDS
    pace = None if facts is None else facts.readings.get(STEP_TIME)
    if pace is None or pace.value <= 0:
        return seconds, None
    return seconds, seconds / pace.value


def _num_written(file: RankFile, schema: Schema) -> int:
    """Rows of a table that the file was given, those of damaged chunks among them."""
    table = None if file.digest is None else file.digest.tables.get(schema.schema_id)
    listed = 0 if table is None else table.num_on_disk
    chunks = file.behind.chunks.get(schema.schema_id)
    if not chunks:
        return listed
    return max(listed, *(chunk.first_row + chunk.num_rows for chunk in chunks))


def _noted(run: Run) -> dict[tuple[int, str], tuple[int, int]]:
    """By file: steps that found no room, and those that are only summed up."""
    latest: dict[tuple[int, str], dict[str, int]] = {}
    for event in run.notes.events("dropped"):
        number = event.data.get("num_rows")
        if text_of(event.data, "table") == STEP_TABLE and type(number) is int:
            by_reason = latest.setdefault((event.rank, event.attempt), {})
            by_reason[text_of(event.data, "reason")] = max(0, number)
    return {
        key: (
            sum(counts.values()) - counts.get(OVER_BUDGET, 0),
            counts.get(OVER_BUDGET, 0),
        )
        for key, counts in latest.items()
    }
