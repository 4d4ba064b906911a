"""Columns of events, by what their arguments say, and tables that grow while a trace is read."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np

from memboard.tb_plugin.formats.traces.columns.events import FAULTS, NO_RAW, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.columns.events import Args

    Columns: TypeAlias = dict[str, npt.NDArray[Any]]
    Ints: TypeAlias = npt.NDArray[Any]


_MAX_TEXT: Final = 1 << 14
"""Of arguments that are columns; a click shows them whole."""
MAX_TEXTS: Final = 400_000
MAX_TEXT_CHARS: Final = 256 << 20
MAX_TRACKS: Final = 16_384
BEYOND: Final = "…"
_MAX_INT: Final = 2**63 - 1


class Numbers(dict[Any, int]):
    """Distinct values, numbered as they come."""

    def column(self, values: Sequence[Any]) -> npt.NDArray[np.int32]:
        return np.fromiter(map(self.__getitem__, values), np.int32, len(values))


class Texts(Numbers):
    """Distinct texts, numbered as they come; 0 is the empty one.

    Beyond `MAX_TEXTS`, or `MAX_TEXT_CHARS` in all, new ones are `BEYOND`: a file whose every
    event has a name of its own is no profiler's, and would take all memory.
    """

    def __init__(self) -> None:
        super().__init__({"": 0, None: 0})
        self.all = [""]
        self.num_beyond = 0
        """How often one was left out."""
        self._chars_left = MAX_TEXT_CHARS

    @property
    def is_full(self) -> bool:
        """Whether new ones are left out."""
        return len(self.all) >= MAX_TEXTS or self._chars_left <= 0

    def __missing__(self, key: Any) -> int:
        if self.is_full:
            self.num_beyond += 1
            return self._number(BEYOND)
        text = key if isinstance(key, str) else str(key)
        number = self._number(clean(text))
        self[key] = number
        return number

    def _number(self, text: str) -> int:
        number = self.get(text)
        if number is None:
            number = self[text] = len(self.all)
            self.all.append(text)
            self._chars_left -= len(text)
        return number


class RawTexts(Numbers):
    """Likewise of JSON: a string stands for itself, anything else for its JSON."""

    def __init__(self, texts: Texts) -> None:
        super().__init__({b"": 0, b"null": 0})
        self._texts = texts

    def __missing__(self, raw: bytes) -> int:
        text = plain(raw) if raw[:1] == b'"' else None
        if not isinstance(text, str):
            text = _in_one_line(raw).decode(errors="replace")
        number = self._texts[text[:_MAX_TEXT]]
        if not self._texts.is_full:
            self[raw] = number
        return number

    def column_of_raws(self, raws: Sequence[Any]) -> npt.NDArray[np.int32]:
        """The number of each JSON value; most arguments are absent everywhere."""
        if raws.count(NO_RAW) == len(raws):
            return np.zeros(len(raws), np.int32)
        return self.column(list(map(bytes, raws)))


def _in_one_line(raw: bytes) -> bytes:
    """JSON that another program indented, as Kineto writes it."""
    if b"\n" in raw:
        with suppress(*FAULTS):
            return msgspec.json.format(raw, indent=0)
    return raw


def clean(text: str) -> str:
    """A text that can be written as UTF-8."""
    return text.encode(errors="replace").decode()


def whole(values: Sequence[Any], missing: int = -1) -> npt.NDArray[np.int64]:
    """A column of whole numbers of 64 bits, signed; larger ones keep their bits."""
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.array([_whole(value, missing) for value in values], np.int64)


def floats(values: Sequence[Any]) -> npt.NDArray[np.float64]:
    """A column of numbers; NaN for what is none, or infinite."""
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        column = np.array([_float(value) for value in values], np.float64)
    column[~np.isfinite(column)] = np.nan
    return column


def _whole(value: Any, missing: int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return missing
    if -_MAX_INT <= number <= _MAX_INT:
        return number
    return number - 2**64 if 0 < number < 2**64 else missing


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def operators(args: Sequence[Args], raw: RawTexts) -> Columns:
    # Of what `record_function` made
    return {
        "external_id": external_ids(args),
        "sequence": whole([argument.sequence for argument in args]),
        "forward_thread": whole([argument.forward_thread for argument in args]),
        "input_dims": raw.column_of_raws([argument.input_dims for argument in args]),
        "input_types": raw.column_of_raws([argument.input_types for argument in args]),
        "call_stack": raw.column_of_raws([argument.call_stack for argument in args]),
    }


def launches(args: Sequence[Args], raw: RawTexts) -> Columns:
    """Of calls of a runtime or driver."""
    return {
        "correlation": whole([argument.correlation for argument in args]),
        "external_id": external_ids(args),
        "kernel": raw.column_of_raws([argument.kernel for argument in args]),
    }


def device_work(args: Sequence[Args], raw: RawTexts) -> Columns:
    """Of kernels, copies and fills."""
    return {
        "device": whole([argument.device for argument in args]),
        "stream": whole([argument.stream for argument in args]),
        "correlation": whole([argument.correlation for argument in args]),
        "external_id": external_ids(args),
        "grid": raw.column_of_raws([argument.grid for argument in args]),
        "block": raw.column_of_raws([argument.block for argument in args]),
        "registers": whole([argument.registers for argument in args]),
        "shared_memory_bytes": whole([argument.shared_memory for argument in args]),
        "blocks_per_sm": floats([argument.blocks_per_sm for argument in args]),
        "occupancy_pct": floats([argument.occupancy for argument in args]),
    }


def synchronisations(args: Sequence[Args], raw: RawTexts) -> Columns:  # noqa: ARG001  # one signature
    """Of waits of streams, and of calls for a device."""
    return {
        "device": whole([argument.device for argument in args]),
        "stream": whole([argument.stream for argument in args]),
        "correlation": whole([argument.correlation for argument in args]),
        "awaited_stream": whole([argument.awaited_stream for argument in args]),
        "event_correlation": whole([argument.event_correlation for argument in args]),
    }


def collectives(args: Sequence[Args], raw: RawTexts) -> Columns:
    """Of what carries collective metadata."""
    return {
        "name": raw.column_of_raws([argument.collective for argument in args]),
        "dtype": raw.column_of_raws([argument.dtype for argument in args]),
        "group": raw.column_of_raws([argument.group for argument in args]),
        "in_elements": whole([argument.in_elements for argument in args]),
        "out_elements": whole([argument.out_elements for argument in args]),
        "group_size": whole([argument.group_size for argument in args]),
        "sequence": whole([argument.collective_sequence for argument in args]),
    }


def memory_events(args: Sequence[Args]) -> Columns:
    # Of `[memory]` instants
    return {
        "num_bytes": whole([argument.memory_bytes for argument in args], 0),
        "address": whole([argument.address for argument in args], 0),
        "device_type": whole([argument.device_type for argument in args]),
        "device": whole([argument.memory_device for argument in args]),
        "allocated_bytes": whole([argument.allocated for argument in args]),
        "reserved_bytes": whole([argument.reserved for argument in args]),
    }


def external_ids(args: Sequence[Args]) -> npt.NDArray[np.int64]:
    """`External id`, which older traces write `external id`."""
    ids = whole([argument.external_id for argument in args])
    if (ids == -1).any():
        old = whole([argument.old_external_id for argument in args])
        ids = np.where(ids == -1, old, ids)
    return ids


class Growing:
    """A table whose rows come some at a time."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Ints]] = {}
        self._num = 0

    def __len__(self) -> int:
        return self._num

    def add(self, columns: Columns) -> None:
        """More rows; the same columns each time."""
        num = 0
        for name, column in columns.items():
            self._parts.setdefault(name, []).append(column)
            num = len(column)
        self._num += num

    def take(self, name: str, kind: Any = np.int64) -> Ints:
        """A whole column, which the table has no longer."""
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0, kind)

    def peek(self, name: str) -> Ints:
        """A whole column, which the table keeps."""
        column = self.take(name)
        self._parts[name] = [column]
        return column

    def put(self, name: str, column: Ints) -> None:
        """A whole column in the place of what the table has of it."""
        self._parts[name] = [column]
        self._num = len(column)

    def names(self) -> list[str]:
        return list(self._parts)


class Tracks(Numbers):
    """Threads by the ids of process and thread, numbered as they come.

    All beyond `MAX_TRACKS` are one more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[tuple[str, str]] = []
        self.num_beyond = 0
        """How often one of these was met."""

    def __missing__(self, key: tuple[Any, Any]) -> int:
        if len(self.ids) > MAX_TRACKS:
            self.num_beyond += 1
            return MAX_TRACKS
        pid, tid = (clean(id_text(part)) for part in key)
        number = self.get((pid, tid))
        if number is None:
            number = self[pid, tid] = len(self.ids)
            self.ids.append((pid, tid))
        self[key] = number
        return number


_MOST_NAMED: Final = 8
_MAX_NAME: Final = 200


class Problems:
    """What was wrong, how often, and where first."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first: dict[str, str] = {}
        self.events: dict[str, int] = {}
        """The first event of each kind that stands for some slice."""
        self.usual: set[str] = set()
        """Those of a trace with which nothing is wrong."""
        self.impossible: list[int] = []
        """Events whose durations cannot be true."""

    def note(
        self, sentence: str, count: int, where: str = "", *, is_usual: bool = False
    ) -> None:
        """So many of one kind."""
        if count:
            if is_usual:
                self.usual.add(sentence)
            self.counts[sentence] = self.counts.get(sentence, 0) + count
            self.first.setdefault(sentence, where)

    def note_impossible(self, name: str, number: int, seconds: float) -> None:
        """A duration is left out; of many names the first are named, the rest others."""
        if number >= 0:
            self.impossible.append(number)
        self._note_slice("impossible durations", name, number, f"{seconds:,.6g} s")

    def note_impossible_begin(self, name: str, number: int) -> None:
        """Likewise of a slice whose begin cannot be true."""
        self._note_slice("impossible times", name, number, "")

    def _note_slice(self, kind: str, name: str, number: int, text: str) -> None:
        remedy = "are left out of all sums: shown as points"
        sentence = f"{kind} of {name[:_MAX_NAME]!r} {remedy}"
        num_named = sum(noted.startswith(kind) for noted in self.counts)
        if sentence not in self.counts and num_named >= _MOST_NAMED:
            sentence = f"{kind} of other slices {remedy}"
        place = f"event {number}" if number >= 0 else ""
        self.note(sentence, 1, ", ".join(filter(None, (place, text))))
        self.events.setdefault(sentence, number)


def text_of(value: Any) -> str:
    """A name as text; empty where there is none."""
    return "" if value is None else str(value)


def id_text(value: Any) -> str:
    """An id as text: 7, 7.0 and "7" are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return text_of(value)
