"""Columns of events, by what their arguments say, and tables that grow while a trace is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.formats.traces.events import NO_RAW, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.formats.traces.events import Args

    Columns: TypeAlias = dict[str, npt.NDArray[Any]]
    Ints: TypeAlias = npt.NDArray[Any]


_MAX_TEXT: Final = 1 << 14
"""Of arguments that are columns; a click shows them whole."""
MAX_TEXTS: Final = 400_000
MAX_TEXT_CHARS: Final = 256 << 20
MAX_TRACKS: Final = 16_384
BEYOND: Final = "…"
_MAX_INT: Final = 2**63 - 1


class Texts(dict[Any, int]):
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
        known = self.get(text)
        if known is None:
            known = self[text] = len(self.all)
            self.all.append(text)
            self._chars_left -= len(text)
        return known


class RawTexts(dict[bytes, int]):
    """Likewise of JSON: a string stands for itself, anything else for its JSON."""

    def __init__(self, texts: Texts) -> None:
        super().__init__({b"": 0, b"null": 0})
        self._texts = texts

    def __missing__(self, raw: bytes) -> int:
        text = plain(raw) if raw[:1] == b'"' else None
        if not isinstance(text, str):
            text = raw.decode(errors="replace")
        number = self._texts[text[:_MAX_TEXT]]
        if not self._texts.is_full:
            self[raw] = number
        return number

    def column(self, raws: Iterable[Any], num: int) -> npt.NDArray[np.int32]:
        rows = (0 if raw is NO_RAW else self[bytes(raw)] for raw in raws)
        return np.fromiter(rows, np.int32, num)


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
    num = len(args)
    return {
        "external_id": external_ids(args),
        "sequence": whole([one.sequence for one in args]),
        "forward_thread": whole([one.forward_thread for one in args]),
        "input_dims": raw.column([one.input_dims for one in args], num),
        "input_types": raw.column([one.input_types for one in args], num),
        "call_stack": raw.column([one.call_stack for one in args], num),
    }


def launches(args: Sequence[Args], raw: RawTexts) -> Columns:  # noqa: ARG001  # one signature
    """Of calls of a runtime or driver."""
    return {
        "correlation": whole([one.correlation for one in args]),
        "external_id": external_ids(args),
    }


def device_work(args: Sequence[Args], raw: RawTexts) -> Columns:
    """Of kernels, copies and fills."""
    num = len(args)
    return {
        "device": whole([one.device for one in args]),
        "stream": whole([one.stream for one in args]),
        "correlation": whole([one.correlation for one in args]),
        "external_id": external_ids(args),
        "grid": raw.column([one.grid for one in args], num),
        "block": raw.column([one.block for one in args], num),
        "registers": whole([one.registers for one in args]),
        "shared_memory_bytes": whole([one.shared_memory for one in args]),
        "blocks_per_sm": floats([one.blocks_per_sm for one in args]),
        "occupancy_pct": floats([one.occupancy for one in args]),
    }


def collectives(args: Sequence[Args], raw: RawTexts) -> Columns:
    """Of what carries collective metadata."""
    num = len(args)
    return {
        "name": raw.column([one.collective for one in args], num),
        "dtype": raw.column([one.dtype for one in args], num),
        "group": raw.column([one.group for one in args], num),
        "in_elements": whole([one.in_elements for one in args]),
        "out_elements": whole([one.out_elements for one in args]),
        "group_size": whole([one.group_size for one in args]),
        "sequence": whole([one.collective_sequence for one in args]),
    }


def memory_events(args: Sequence[Args]) -> Columns:
    # Of `[memory]` instants
    return {
        "num_bytes": whole([one.memory_bytes for one in args], 0),
        "address": whole([one.address for one in args], 0),
        "device_type": whole([one.device_type for one in args]),
        "device": whole([one.memory_device for one in args]),
        "allocated_bytes": whole([one.allocated for one in args]),
        "reserved_bytes": whole([one.reserved for one in args]),
    }


def external_ids(args: Sequence[Args]) -> npt.NDArray[np.int64]:
    """`External id`, which older traces write `external id`."""
    found = whole([one.external_id for one in args])
    if (found == -1).any():
        old = whole([one.old_external_id for one in args])
        found = np.where(found == -1, old, found)
    return found


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


class Tracks(dict[tuple[Any, Any], int]):
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
        pid, tid = (clean(id_text(one)) for one in key)
        number = self.get((pid, tid))
        if number is None:
            number = self[pid, tid] = len(self.ids)
            self.ids.append((pid, tid))
        self[key] = number
        return number


class Problems:
    """What was wrong, how often, and where first."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first: dict[str, str] = {}
        self.usual: set[str] = set()
        """Those of a trace with which nothing is wrong."""

    def note(
        self, what: str, count: int, where: str = "", *, is_usual: bool = False
    ) -> None:
        """So many of one kind."""
        if count:
            if is_usual:
                self.usual.add(what)
            self.counts[what] = self.counts.get(what, 0) + count
            self.first.setdefault(what, where)

    def num_of(self, beginning: str) -> int:
        """Kinds whose text begins so."""
        return sum(what.startswith(beginning) for what in self.counts)


def text_of(value: Any) -> str:
    """A name as text; empty where there is none."""
    return "" if value is None else str(value)


def id_text(value: Any) -> str:
    """An id as text: 7, 7.0 and "7" are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return text_of(value)
