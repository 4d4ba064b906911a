"""Series, phases and sources that a run recorded, and those that it did not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, get_args

from msgspec.structs import replace

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.series.labels import column_label
from memboard.tb_plugin.api.base import Unit
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.api.timeline import GROUPS, AbsentSeries, SeriesInfo
from memboard.tb_plugin.formats.recording.series import (
    DEFAULT_COLUMNS,
    TRAIN_PHASE,
    SeriesKey,
)
from memboard.tb_plugin.formats.registry import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from memboard.collector.format.columns import Column
    from memboard.tb_plugin.api.timeline import SeriesGroup
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.listing import MadeOf
    from memboard.tb_plugin.index.notes import RunNotes


_SOURCE_GROUPS: Final[dict[str, SeriesGroup]] = {
    "device": "device",
    "device_free": "device",
    "gpu": "sensor",
    "rss": "process",
    "pinned": "process",
    "process": "process",
    "process_full": "process",
    "workers": "process",
    "spans.forward": "timing",
}
"""Sources whose group is not `host`."""

_NO_SERIES: Final = frozenset({"functions", "hooks", "modules", "history", "spans"})
"""Sources of captures and snaps, which no picture over steps is made of: the views that
show them say why there are none."""

_UNITS: Final = frozenset(get_args(Unit))


class Catalogue:
    """The union over a run's files."""

    def __init__(
        self,
        files: Sequence[RankFile],
        notes: RunNotes,
        made_of: MadeOf = "recording",
    ) -> None:
        """`made_of`: what the run's files are; another tool's hold no series."""
        self._notes = notes
        self._made_of = made_of
        self._columns: dict[tuple[str, str], Column] = {}
        self._ranks: dict[tuple[str, str], set[int]] = {}
        self._phases: dict[str, None] = {}
        self._words: dict[tuple[int, str], SourceStatus] | None = None
        self._all_ranks: dict[tuple[str, str], Counter[SourceStatus]] = {}
        # Ranks share their schemas' dictionary, so each is looked at once.
        by_schemas: dict[int, set[int]] = {}
        for file in files:
            by_schemas.setdefault(id(file.schemas), set()).add(file.rank)
        unique = {id(file.schemas): file.schemas for file in files}
        for identity, schemas in unique.items():
            for _, schema in sorted(schemas.items()):
                if not schema.rolled_up:
                    continue  # rows around single calls: a view of their own
                if schema.table == STEP_TABLE:
                    self._phases.setdefault(schema.phase)
                for column in schema.columns:
                    if column.group == "axis":
                        continue
                    if column.unit == "index" and schema.table != STEP_TABLE:
                        continue  # which call a row is of: a name, and no measurement
                    key = (schema.table, column.name)
                    self._columns.setdefault(key, column)
                    self._ranks.setdefault(key, set()).update(by_schemas[identity])

    @property
    def series(self) -> tuple[SeriesInfo, ...]:
        """Everything that can be drawn, the step table first."""
        keys = sorted(self._columns, key=lambda key: (key[0] != STEP_TABLE, key[0]))
        return tuple(self.info(*key) for key in keys)

    @property
    def phases(self) -> tuple[str, ...]:
        """Phases with rows, the training phase first."""
        return tuple(sorted(self._phases, key=lambda phase: phase != TRAIN_PHASE))

    def info(self, table: str, column: str) -> SeriesInfo:
        """One series as the page knows it."""
        recorded = self._columns[table, column]
        label = column_label(column)
        others = (other for other in self._columns if other != (table, column))
        is_twin = any(column_label(name) == label for _, name in others)
        unit = recorded.unit if recorded.unit in _UNITS else "count"
        group = recorded.group if recorded.group in GROUPS else "host"
        return SeriesInfo(
            key=f"{table}/{column}",
            label=f"{label} ({table})" if is_twin else label,
            unit=unit,  # type: ignore[arg-type]  # checked against the same words
            group=group,  # type: ignore[arg-type]
            headline=recorded.headline,
            num_ranks=len(self._ranks[table, column]),
        )

    def ranks_of(self, key: SeriesKey) -> set[int]:
        """Ranks that recorded a series."""
        return self._ranks.get((key.table, key.column), set())

    def find(self, column: str, phase: str = TRAIN_PHASE) -> SeriesKey | None:
        """The series of that column, whichever table has it; the step table first."""
        tables = sorted(
            (table for table, table_column in self._columns if table_column == column),
            key=lambda table: (table != STEP_TABLE, table),
        )
        return SeriesKey(tables[0], column, phase) if tables else None

    def resolve(self, text: str | None, phase: str | None) -> SeriesKey | None:
        """The series a request names, or the first one to show.

        A series or phase this run does not have (the request may come from another
        run's page) gives the default.
        """
        chosen = self.phase(phase)
        table, _, column = (text or "").partition("/")
        if (table, column) in self._columns:
            return SeriesKey(table, column, chosen)
        for usual_column in DEFAULT_COLUMNS:
            key = self.find(usual_column, chosen)
            if key is not None:
                return key
        first = next(iter(self.series), None)
        if first is None:
            return None
        table, _, column = first.key.partition("/")
        return SeriesKey(table, column, chosen)

    def phase(self, wanted: str | None) -> str:
        phases = self.phases
        if wanted in self._phases:
            return str(wanted)
        return phases[0] if phases else TRAIN_PHASE

    def recorded(self, rank: int | None = None) -> tuple[SourceStatus, ...]:
        """Every source by status, as all ranks, or one, report it."""
        return tuple(
            replace(_most_common(counts), num_ranks=sum(counts.values()))
            for _, counts in sorted(self._by_status(rank).items())
        )

    def absent(self) -> tuple[AbsentSeries, ...]:
        """Sources of series that no rank recorded, with the reason most of them give."""
        if self._made_of != "recording":
            return absent_instead(self._made_of)
        by_status = sorted(self._by_status().items())
        recorded = {source for (source, status), _ in by_status if status == "recorded"}
        series: dict[str, AbsentSeries] = {}
        for (source, _), counts in by_status:
            kind = source.partition(".")[0]
            if (
                source not in recorded
                and source not in series
                and kind not in _NO_SERIES
            ):
                series[source] = AbsentSeries(
                    group=_SOURCE_GROUPS.get(source, "host"),
                    source=source,
                    reason=_most_common(counts).reason,
                    remedy=_most_common(counts).remedy,
                )
        return tuple(series.values())

    def _by_status(
        self, rank: int | None = None
    ) -> dict[tuple[str, str], Counter[SourceStatus]]:
        """How many ranks say what, by (source, status); a rank's last word counts."""
        if self._words is None:
            self._words = self._notes.sources()
            self._all_ranks = _counted(Counter(self._words.values()))
        if rank is None:
            return self._all_ranks
        own = [
            counts for (of_rank, _), counts in self._words.items() if of_rank == rank
        ]
        return _counted(Counter(own))


def _counted(
    counts: Counter[SourceStatus],
) -> dict[tuple[str, str], Counter[SourceStatus]]:
    by_status: dict[tuple[str, str], Counter[SourceStatus]] = {}
    for source, count in counts.items():
        by_status.setdefault((source.source, source.status), Counter())[source] = count
    return by_status


def _most_common(counts: Counter[SourceStatus]) -> SourceStatus:
    return counts.most_common(1)[0][0]


def said_instead(
    made_of: MadeOf,
    num_ranks: int,
    status: Literal["recorded", "absent", "off", "failed"] = "recorded",
) -> tuple[SourceStatus, ...]:
    """What an imported run says of itself; nothing where it was recorded."""
    if made_of == "recording":
        return ()
    file_format = FORMATS[made_of]
    return (
        SourceStatus(
            made_of, status, num_ranks, file_format.reason, file_format.remedy, ""
        ),
    )


def absent_instead(made_of: MadeOf) -> tuple[AbsentSeries, ...]:
    """Why an imported run has no series; nothing where it was recorded."""
    if made_of == "recording":
        return ()
    file_format = FORMATS[made_of]
    return (
        AbsentSeries("device", made_of, file_format.reason, file_format.remedy),
        AbsentSeries("host", "host", file_format.about_hosts, file_format.remedy),
    )
