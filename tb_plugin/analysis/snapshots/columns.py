"""One table of a snapshot, column by column, each as the type that its reader names."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.errors import CorruptError
from memboard.collector.format.sizes import counted
from memboard.collector.format.snapshots.plain_text import plain_value
from memboard.tb_plugin.analysis.arrays import NOTHING, constant, grouped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.arrays import Flags, Ints


_ABSENT: Final = -(2**63)
"""Value of an optional whole number that a row lacks."""
MAX_LINE: Final = 2**31 - 1
"""Of a file; what is larger becomes this."""
_WIDE: Final = 8


_ROOT: Final = {
    "segments": ("segments",),
    "device_traces": ("traces",),
    "allocator_settings": ("value",),
    "external_annotations": ("rows",),
    "host_segments": ("segments",),
    "host_traces": ("rows", "traces"),
}
"""Entries of a snapshot that are read, and the kinds that they may have in `root`."""
_KEYS: Final = {
    "segments": {"device", "address", "total_size", "stream", "segment_type", "frames"}
    | {"segment_pool_id", "is_expandable", "blocks"}
    # Sums of the blocks, and a counter of the registrations with a network's library.
    | {"allocated_size", "active_size", "requested_size", "registration_counter"},
    "blocks": {"address", "size", "requested_size", "state", "frames", "history"},
    "device_traces": {"action", "addr", "size", "stream", "time_us", "frames"}
    | {"pool_id", "device_free", "user_metadata", "compile_context"},
    "external_annotations": {"stage", "name", "device", "time_us"},
    "frames": {"name", "filename", "line"},
}
"""By what has them: the keys that are read, or that say nothing more."""
_TABLE_KEYS: Final = {
    "segments": ("segments[]", "segments"),
    "host_segments": ("host_segments[]", "segments"),
    "blocks": ("segments[].blocks[]", "blocks"),
    "host_blocks": ("host_segments[].blocks[]", "blocks"),
    "events": ("device_traces[][]", "device_traces"),
    "host_events": ("host_traces[]", "device_traces"),
    "annotations": ("external_annotations[]", "external_annotations"),
    "frames": ("frames[]", "frames"),
}
"""By table: where its rows are in a snapshot, and which of `_KEYS` they have."""


def unread_keys(tables: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Keys of the file that nothing here reads: `segments[].weight`, in its order."""
    root = (texts_of(tables, "root", name) for name in ("key", "kind"))
    unread = [
        key
        for key, kind in zip(*root, strict=True)
        if key and kind not in _ROOT.get(key, ())
    ]
    layout = (texts_of(tables, "layout", name) for name in ("table", "key"))
    for table, key in zip(*layout, strict=True):
        place, of = _TABLE_KEYS.get(table, ("", ""))
        if place and key not in _KEYS[of]:
            unread.append(f"{place}.{key}")
    return tuple(unread)


class Table:
    """The columns of one table; a table that is not there has no rows."""

    def __init__(
        self,
        name: str,
        tables: Mapping[str, Mapping[str, Any]],
        texts: Sequence[str],
    ) -> None:
        self._name = name
        self._columns = tables.get(name, {})
        self._texts = texts
        self._kinds = _kinds(tables, name)
        self._num = max((len(column) for column in self._columns.values()), default=0)

    def __len__(self) -> int:
        return self._num

    def __contains__(self, column_name: str) -> bool:
        return column_name in self._columns

    def kind(self, column_name: str) -> str:
        """What a column holds, see `memboard.collector.format.snapshots`; empty: it is not there."""
        return self._kinds.get(column_name, "")

    def ints(self, column_name: str, missing: int) -> Ints:
        """Whole numbers; `missing` where a row, or the whole table, has none.

        Raises:
            ValueError: the column holds something else.
        """
        values = self._numbers(column_name, ("text", "value", "float"))
        if values is None:
            return np.full(self._num, missing, np.int64)
        if values.dtype.itemsize < _WIDE:  # no room for what stands for absent
            return values.astype(np.int64)
        values = values.astype(np.int64, copy=False)
        absent = values == _ABSENT
        return np.where(absent, missing, values) if absent.any() else values

    def checked(self, column_name: str, missing: int) -> tuple[Ints, Flags]:
        """The same whatever is in it, and which rows hold something else than a number.

        There it says `missing`, too. A float counts where it is whole.
        """
        wrong = np.zeros(self._num, np.bool_)
        kind = self._kinds.get(column_name)
        if kind in (None, "int", "uint"):
            return self.ints(column_name, missing), wrong
        whole_numbers = np.full(self._num, missing, np.int64)
        if kind == "float":
            floats = np.asarray(self._columns[column_name])
            whole = np.isfinite(floats) & (np.abs(floats) < -float(_ABSENT))
            whole[whole] = floats[whole] % 1 == 0
            whole_numbers[whole] = floats[whole].astype(np.int64)
            return whole_numbers, ~whole
        if kind != "value":
            return whole_numbers, ~wrong
        rows, place = grouped(np.asarray(self._columns[column_name]).astype(np.int64))
        values = [_as_whole(self._plain(row)) for row in rows.tolist()]
        whole = [type(value) is int and _ABSENT < value < -_ABSENT for value in values]
        numbers = [
            value if is_whole else missing
            for value, is_whole in zip(values, whole, strict=True)
        ]
        is_sound = np.array(whole, np.bool_) | (rows == NOTHING)
        return np.array(numbers, np.int64)[place], ~is_sound[place]

    def lacks(self, column_name: str) -> Flags:
        """Which rows do not have the key."""
        column = self._columns.get(column_name)
        if column is None:
            return np.ones(self._num, np.bool_)
        gap = NOTHING if self._kinds.get(column_name) in ("text", "value") else _ABSENT
        values = np.asarray(column)
        if gap == _ABSENT and (values.dtype.kind != "i" or values.itemsize < _WIDE):
            return np.zeros(self._num, np.bool_)  # no room for what stands for absent
        lacks: Flags = values == gap
        return lacks

    def is_other(self, column_name: str, kind: str) -> Flags:
        """Which rows have the key in a column that is not of this kind."""
        if self._kinds.get(column_name) in (None, kind):
            return np.zeros(self._num, np.bool_)
        return ~self.lacks(column_name)

    def _plain(self, row: int) -> Any:
        """The value that a text says; None where it says none."""
        if 0 <= row < len(self._texts):
            with suppress(CorruptError):
                return plain_value(self._texts[row])
        return None

    def narrow(self, column_name: str, missing: int) -> Ints:
        """The same as `ints`, in as few bits as they lie in the file."""
        values = self._numbers(column_name, ("text", "value", "float"))
        if values is not None and values.dtype.itemsize < _WIDE:
            return values
        return self.ints(column_name, missing)

    def rows(self, column_name: str, num: int) -> tuple[Ints, int]:
        """Rows of something that has `num`, narrow; and how many lead nowhere.

        NOTHING where there is none, and where it leads nowhere. A column that says
        nothing at all takes no memory.
        """
        values = self._numbers(column_name, ("value", "float"))
        if values is None or not len(values):
            return constant(NOTHING, self._num), 0
        least, most = int(values.min()), int(values.max())
        if least == most == NOTHING:
            return constant(NOTHING, self._num), 0
        if least >= NOTHING and most < num:
            return values.astype(np.int32), 0
        leads = (values >= 0) & (values < num)
        says = (values != NOTHING) & (values != _ABSENT)
        wrong = int(np.count_nonzero(says & ~leads))
        rows = values.astype(np.int32)
        rows[~leads] = NOTHING
        return rows, wrong

    def text_rows(self, column_name: str) -> Ints:
        """Rows of the texts; NOTHING where there is none."""
        if self._kinds.get(column_name) != "text":
            return constant(NOTHING, self._num)
        return self.rows(column_name, len(self._texts))[0]

    def texts(self, column_name: str) -> tuple[str, ...]:
        """The texts themselves; empty where there is none."""
        texts = [*self._texts, ""]
        return tuple(texts[row] for row in self.text_rows(column_name).tolist())

    def values(self, column_name: str) -> tuple[Ints, list[Any]]:
        """Values of any kind: for each row which of the distinct ones, and these.

        -1 where a row has none, or one that cannot be read.
        """
        none = np.full(self._num, NOTHING, np.int64)
        if self._kinds.get(column_name) != "value":
            return none, []
        rows = np.asarray(self._columns[column_name]).astype(np.int64, copy=False)
        if len(rows) != self._num:
            raise ValueError(
                f"{self._name}.{column_name} has {counted(len(rows), 'row')}"
            )
        distinct, place = grouped(rows)
        value_rows, values = np.full(len(distinct), NOTHING, np.int64), []
        for index, row in enumerate(distinct.tolist()):
            if 0 <= row < len(self._texts):
                with suppress(CorruptError):
                    values.append(plain_value(self._texts[row]))
                    value_rows[index] = len(values) - 1
        return value_rows[place], values

    def coded(self, column_name: str, texts: Sequence[str]) -> npt.NDArray[np.int8]:
        """Which of some words each text is; NOTHING: none of them."""
        code_by_text = {word: code for code, word in enumerate(texts)}
        if self._kinds.get(column_name) == "value":
            rows, place = grouped(
                np.asarray(self._columns[column_name]).astype(np.int64)
            )
            plain = [self._plain(row) for row in rows.tolist()]
            own = [
                code_by_text.get(value, NOTHING) if type(value) is str else NOTHING
                for value in plain
            ]
            return np.array(own, np.int8)[place]
        of_texts = (code_by_text.get(text, NOTHING) for text in self._texts)
        codes = np.fromiter([*of_texts, NOTHING], np.int8)  # the last: where -1 looks
        values = self._numbers(column_name, ("value", "float"))
        is_text = self._kinds.get(column_name) == "text"
        if is_text and values is not None and len(values):
            least, most = int(values.min()), int(values.max())
            if least >= NOTHING and most < len(self._texts):
                return codes[values]  # as narrow as they are
        return codes[self.text_rows(column_name)]

    def pair(self, column_name: str) -> tuple[Ints | None, Ints | None, Flags]:
        """A pair of whole numbers in two columns, below 0 in rows without.

        And which rows hold something else.
        """
        if self._kinds.get(column_name) == "value":
            rows, values = self.values(column_name)
            pairs = [_as_pair(value) for value in values]
            first, second = np.array([*pairs, (NOTHING, NOTHING)], np.int64).T
            return (
                first[rows],
                second[rows],
                (first[rows] < 0) & ~self.lacks(column_name),
            )
        kinds = ("text", "value", "float")
        first, second = (
            self._numbers(f"{column_name}.{place}", kinds) for place in (0, 1)
        )
        return first, second, self.is_other(column_name, "pair")

    def _numbers(self, column_name: str, others: tuple[str, ...]) -> Ints | None:
        """A column as it is; None where it is not there, or is of one of `others`."""
        column = self._columns.get(column_name)
        if column is None or self._kinds.get(column_name) in others:
            return None
        values = np.asarray(column)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise ValueError(f"{self._name}.{column_name} does not hold whole numbers")
        if len(values) != self._num:
            raise ValueError(
                f"{self._name}.{column_name} has {counted(len(values), 'row')}"
            )
        return values


def _as_whole(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _as_pair(value: Any) -> tuple[int, int]:
    if isinstance(value, list | tuple) and len(value) == 2:
        first, second = value
        if type(first) is type(second) is int and 0 <= min(value) <= max(value) < 2**62:
            return first, second
    return NOTHING, NOTHING


def texts_of(
    tables: Mapping[str, Mapping[str, Any]], table: str, column: str
) -> tuple[str, ...]:
    """A column of texts; none where it is not there.

    Raises:
        ValueError: it holds numbers.
    """
    column_texts = tables.get(table, {}).get(column, ())
    if isinstance(column_texts, np.ndarray):
        raise ValueError(f"{table}.{column} does not hold texts")  # noqa: TRY004  # data is wrong, not a call
    return tuple(str(text) for text in column_texts)


def _kinds(tables: Mapping[str, Mapping[str, Any]], table: str) -> dict[str, str]:
    """By column: its kind, as `layout` says."""
    layout = {
        key: texts_of(tables, "layout", key) for key in ("table", "column", "kind")
    }
    rows = zip(layout["table"], layout["column"], layout["kind"], strict=True)
    return {column: kind for of, column, kind in rows if of == table}
