"""Events become columns, a chunk at a time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from msgspec import Raw

from memboard.tb_plugin.analysis.efficiency.formulas import needs_values
from memboard.tb_plugin.analysis.trace.categories import (
    OPERATORS_AND_ANNOTATIONS,
    is_runtime,
    work_kind,
)
from memboard.tb_plugin.analysis.trace.texts import are
from memboard.tb_plugin.formats.traces.columns import details
from memboard.tb_plugin.formats.traces.columns.details import (
    Growing,
    Problems,
    RawTexts,
    Texts,
    Tracks,
    clean,
    text_of,
)
from memboard.tb_plugin.formats.traces.columns.events import (
    ARGS,
    FAULTS,
    NO_ARGS,
    NO_RAW,
    AnyEvent,
    Args,
    plain,
)
from memboard.tb_plugin.formats.traces.columns.times import (
    NO_TIME,
    from_digits,
    from_floats,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.bytes.chunks import Chunk
    from memboard.tb_plugin.formats.traces.bytes.decoding import ColumnEvent
    from memboard.tb_plugin.formats.traces.columns.details import Columns

    Ints: TypeAlias = npt.NDArray[Any]

_TABLES: Final[Mapping[str, Callable[[Sequence[Args], RawTexts], Columns]]] = {
    "operators": details.operators,
    "launches": details.launches,
    "device_work": details.device_work,
    "synchronisations": details.synchronisations,
}
_SYNCHRONISATION: Final = "cuda_sync"
_MAY_BE_COLLECTIVE: Final = frozenset({"operators", "device_work"})
MEMORY: Final = "[memory]"
_FLOW_STEPS: Final = {"s": 0, "t": 1, "f": 2}
_MAX_SERIES: Final = 4096
_MAX_LABEL: Final = 1024


def table_of(category: str) -> str:
    """The table in which slices of a category have a row; empty: in none."""
    if is_runtime(category):
        return "launches"
    if work_kind(category) is not None:
        return "device_work"
    if category.lower() == _SYNCHRONISATION:
        return "synchronisations"
    return "operators" if category.lower() in OPERATORS_AND_ANNOTATIONS else ""


class Gathering:
    """All events of one trace, by what they are."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.tracks = Tracks()
        self.problems = Problems()
        self.num_events: Counter[str] = Counter()
        self.slices = Growing()
        self.tables = {name: Growing() for name in (*_TABLES, "collectives")}
        self.instants = Growing()
        self.memory = Growing()
        self.flows = Growing()
        self.edges = Growing()
        """B and E events, and b and e ones on tracks of their own."""
        self.points: dict[tuple[int, str, str], tuple[list[int], list[float]]] = {}
        """Of counters, by track, name and series: times and values."""
        self.labels: dict[tuple[str, str, str], Any] = {}
        """Of metadata events, by their name, process and thread."""
        self._raw = RawTexts(self.texts)
        self._flow_ids: dict[str, int] = {}
        self._handlers: dict[str, Callable[[list[Any], Ints, Ints], None]] = {
            "X": self._slices,
            "i": self._instants,
            "I": self._instants,
            "R": self._instants,
            "B": self._begins,
            "E": self._ends,
            "b": self._begins,
            "e": self._ends,
            "C": self._counters,
            "M": self._metadata,
            "s": self._flow_points,
            "t": self._flow_points,
            "f": self._flow_points,
        }

    def keep_details(self, kept: Ints) -> None:
        """Drop the details of all other slices, and number them without those.

        Args:
            kept: (slices,) flags.
        """
        number = np.cumsum(kept, dtype=np.int32) - 1
        for table in self.tables.values():
            if len(table):
                rows = kept[table.peek("slice")]
                for name in table.names():
                    table.put(name, table.take(name)[rows])
                table.put("slice", number[table.take("slice")])

    def add(self, chunk: Chunk[ColumnEvent]) -> None:
        """Take the events of a chunk."""
        by_phase: defaultdict[str | None, list[int]] = defaultdict(list)
        for index, event in enumerate(chunk.events):
            by_phase[None if event is None else event.ph].append(index)
        for phase, indices in by_phase.items():
            if phase is None:
                continue  # counted where it was met
            place = np.array(indices)
            events: Any = chunk.events
            times = chunk.times_ns
            if len(indices) != len(events):
                events = [events[index] for index in indices]
                times = times[place]
            self._count(phase, events)
            numbers = (place + chunk.first).astype(np.int32)
            handler = self._handlers.get(phase)
            if handler is None:
                sentence = f"events of phase {phase[:8]!r} are not shown"
                self.problems.note(clean(sentence), len(indices), _where(numbers[0]))
                continue
            if phase != "M":
                valid = times != NO_TIME
                if not valid.all():
                    sentence = "events without a time are not shown"
                    bad = int(np.count_nonzero(~valid))
                    self.problems.note(sentence, bad, _where(numbers[~valid][0]))
                    events = [events[index] for index in np.flatnonzero(valid)]
                    times, numbers = times[valid], numbers[valid]
            if events:
                handler(events, times, numbers)

    def _count(self, phase: str, events: Sequence[Any]) -> None:
        for category, number in Counter([event.cat for event in events]).items():
            self.num_events[clean(f"{phase}|{category}")[:_MAX_LABEL]] += number

    def _common(self, events: Sequence[Any], numbers: Ints) -> Columns:
        args = [event.args for event in events]
        has_args = [value is not None and value is not NO_RAW for value in args]
        return {
            **self._labels(events),
            "args": np.where(np.array(has_args), numbers, np.int32(-1)),
        }

    def _labels(self, events: Sequence[Any]) -> Columns:
        return {
            "track": self.tracks.column([(event.pid, event.tid) for event in events]),
            "name": self.texts.column([event.name for event in events]),
            "category": self.texts.column([event.cat for event in events]),
        }

    def _slices(self, events: list[Any], times: Ints, numbers: Ints) -> None:
        columns = self._common(events, numbers)
        columns["start_ns"] = times
        columns["duration_ns"] = self._durations(events, numbers)
        base = len(self.slices)
        self.slices.add(columns)
        category = columns["category"]
        for code in np.unique(category).tolist():
            table = table_of(self.texts.all[code])
            if not table:
                continue
            rows = np.flatnonzero(category == code)
            args = _args([events[row] for row in rows.tolist()])
            slice_names = columns["name"][rows]
            rows = (rows + base).astype(np.int32)
            self._add_details(table, args, rows, slice_names)

    def _add_details(
        self, table: str, args: list[Args], rows: Ints, slice_names: Ints
    ) -> None:
        columns = _TABLES[table](args, self._raw)
        if table == "operators":
            columns["concrete_inputs"] = self._concrete_inputs(args, slice_names)
        self.tables[table].add({"slice": rows, **columns})
        if table not in _MAY_BE_COLLECTIVE:
            return
        names = [argument.collective for argument in args]
        if names.count(NO_RAW) < len(names):
            places = [place for place, name in enumerate(names) if name is not NO_RAW]
            columns = details.collectives([args[place] for place in places], self._raw)
            self.tables["collectives"].add({"slice": rows[places], **columns})

    def _concrete_inputs(self, args: list[Args], names: Ints) -> Ints:
        """Texts of the operators that need them: of all they would take much memory."""
        column = np.zeros(len(args), np.int32)
        needed = np.flatnonzero(are(self.texts.all, names, needs_values))
        written = [args[row].concrete_inputs for row in needed.tolist()]
        column[needed] = self._raw.column_of_raws(written)
        return column

    def _durations(self, events: list[Any], numbers: Ints) -> Ints:
        if isinstance(events[0], AnyEvent):
            durations = from_digits([bytes(event.dur) for event in events])
        else:
            durations = from_floats(np.array([event.dur for event in events]))
        none = durations == NO_TIME
        for row in np.flatnonzero(none).tolist():
            dur_us = _number(events[row].dur)
            if math.isfinite(dur_us):
                event_name = clean(text_of(events[row].name))
                self.problems.note_impossible(
                    event_name, int(numbers[row]), dur_us / 1e6
                )
                none[row], durations[row] = False, 0
        for sentence, wrong in (
            ("slices without a duration are shown as points", none),
            (
                "slices of negative duration are shown as points",
                (durations < 0) & ~none,
            ),
        ):
            if wrong.any():
                count = int(np.count_nonzero(wrong))
                self.problems.note(sentence, count, _where(numbers[wrong][0]))
        return np.maximum(durations, 0)

    def _instants(self, events: list[Any], times: Ints, numbers: Ints) -> None:
        columns = self._common(events, numbers)
        is_memory = columns["name"] == self.texts[MEMORY]
        memory = np.flatnonzero(is_memory)
        if len(memory):
            args = _args([events[row] for row in memory.tolist()])
            self.memory.add(
                {
                    "time_ns": times[memory],
                    "track": columns["track"][memory],
                    "args": columns["args"][memory],
                    **details.memory_events(args),
                }
            )
        others = np.flatnonzero(~is_memory)
        if len(others):
            columns["time_ns"] = times
            self.instants.add(
                {name: column[others] for name, column in columns.items()}
            )

    def _begins(self, events: list[Any], times: Ints, numbers: Ints) -> None:
        self._edges(events, times, numbers, 1)

    def _ends(self, events: list[Any], times: Ints, numbers: Ints) -> None:
        self._edges(events, times, numbers, -1)

    def _edges(self, events: list[Any], times: Ints, numbers: Ints, sign: int) -> None:
        columns = self._common(events, numbers)
        columns["time_ns"] = times
        columns["number"] = numbers
        columns["sign"] = np.full(len(events), sign, np.int8)
        if events[0].ph in "be":
            # What overlaps at will has a line for each kind, and pairs by its id.
            kinds = [f"{text_of(event.cat)} {text_of(event.name)}" for event in events]
            pairs = zip(events, kinds, strict=True)
            columns["track"] = np.array(
                [self.tracks[event.pid, f"async {kind}"] for event, kind in pairs],
                np.int32,
            )
        columns["pair"] = np.array(
            [self._flow_id(event.id) if event.ph in "be" else -1 for event in events],
            np.int64,
        )
        self.edges.add(columns)

    def _flow_points(self, events: list[Any], times: Ints, numbers: Ints) -> None:  # noqa: ARG002  # one signature
        columns = self._labels(events)
        columns["time_ns"] = times
        columns["step"] = np.full(len(events), _FLOW_STEPS[events[0].ph], np.int8)
        columns["id"] = self._flow_numbers([event.id for event in events])
        self.flows.add(columns)

    def _flow_numbers(self, ids: list[Any]) -> Ints:
        """The number of each id, the same for equal ones."""
        if set(map(type, ids)) == {int} and min(ids) >= 0 and max(ids) < 2**62:
            return np.array(ids, np.int64)
        return np.array([self._flow_id(value) for value in ids], np.int64)

    def _flow_id(self, value: Any) -> int:
        """A number for an id, the same for equal ones."""
        if isinstance(value, int) and 0 <= value < 2**62:
            return value
        ids = self._flow_ids
        return 2**62 + ids.setdefault(str(value), len(ids))

    def _counters(self, events: list[Any], times: Ints, numbers: Ints) -> None:
        for event, time_ns, number in zip(
            events, times.tolist(), numbers.tolist(), strict=True
        ):
            values = plain(event.args) if isinstance(event, AnyEvent) else None
            if not isinstance(values, dict):
                sentence = "counters without values are not shown"
                self.problems.note(sentence, 1, _where(number))
                continue
            # One counter of several threads is still one: Chrome knows it by process.
            track = self.tracks[event.pid, f"counter {text_of(event.name)}"]
            for key, value in values.items():
                self._point(track, (text_of(event.name), key), time_ns, value)

    def _point(
        self, track: int, names: tuple[str, str], time_ns: int, value: Any
    ) -> None:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            sentence = "values of counters that are not numbers are not shown"
            self.problems.note(sentence, 1, clean(names[0])[:_MAX_LABEL])
            return
        key = (track, clean(names[0])[:_MAX_LABEL], clean(names[1])[:_MAX_LABEL])
        if key not in self.points and len(self.points) >= _MAX_SERIES:
            sentence = f"points of counters beyond {_MAX_SERIES:,} series are not shown"
            self.problems.note(sentence, 1, key[1])
            return
        times, values = self.points.setdefault(key, ([], []))
        times.append(time_ns)
        values.append(number)

    def _metadata(self, events: list[Any], times: Ints, numbers: Ints) -> None:  # noqa: ARG002  # one signature
        for event, args in zip(events, _args(events), strict=True):
            pid, tid = self.tracks.ids[self.tracks[event.pid, event.tid]]
            label = text_of(event.name)
            value: Any = args.sort_index
            if not label.endswith("sort_index"):
                raw = args.labels if label.endswith("labels") else args.name
                value = plain(raw) if raw is not NO_RAW else ""
                value = clean(text_of(value))[:_MAX_LABEL]
            self.labels[label[:_MAX_LABEL], pid, tid] = value


def _args(events: Sequence[Any]) -> list[Args]:
    """What becomes columns of the arguments of events, which are of one shape."""
    if events and isinstance(events[0], AnyEvent):
        return [_decoded(event.args) for event in events]
    return [event.args or NO_ARGS for event in events]


def _decoded(raw: Raw) -> Args:
    try:
        return NO_ARGS if raw is NO_RAW else ARGS.decode(raw)
    except FAULTS:
        return NO_ARGS


def _number(value: Any) -> float:
    """A number as it is written; NaN for what is none."""
    try:
        return float(bytes(value).strip(b'"') if isinstance(value, Raw) else value)
    except ValueError:
        return math.nan


def _where(number: Any) -> str:
    return f"event {int(number)}"
