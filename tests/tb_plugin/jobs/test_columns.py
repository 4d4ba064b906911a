"""Tables come back as they were, and whatever else is in the file is refused."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memboard.collector.format.snapshots import rebuilt, tables_of
from memboard.tb_plugin.worker import columns as module
from memboard.tb_plugin.worker.columns import NotColumnsError, open_columns
from tests.made_snapshots import everything, long_history

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

in_tmp_path = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TABLES = {
    "events": {
        "action": np.array([0, 1, 2, -1]),
        "addr": np.array([2**62, 0, -(2**63), 5]),
        "size": np.array([70_000, 0, 0, 0]),
        "share": np.array([0.5, math.nan, math.inf, -0.0]),
    },
    "strings": {"text": ("alloc", "", "größe", "\U0001f9e0")},
    "empty": {"none": np.empty(0, np.int64), "texts": ()},
    "nothing": {},
}


def write_columns(path: Path, tables: Any, meta: Any) -> None:
    with path.open("wb") as file:
        module.write_columns(file, tables, meta)


def same(tables: Any, others: Any) -> bool:
    return tables.keys() == others.keys() and all(
        table.keys() == others[name].keys()
        and all(
            column == others[name][key]
            if isinstance(column, tuple)
            else np.array_equal(column, others[name][key], equal_nan=True)
            for key, column in table.items()
        )
        for name, table in tables.items()
    )


def test_tables_come_back_mapped_and_narrow(tmp_path):
    path = tmp_path / "a.columns"
    write_columns(path, TABLES, {"reader": 3})
    tables = open_columns(path)
    assert same(TABLES, tables)
    assert tables.meta == {"reader": 3}
    assert tables.num_bytes == path.stat().st_size
    types = {key: column.dtype.str for key, column in tables["events"].items()}
    assert types == {"action": "|i1", "addr": "<i8", "size": "<i4", "share": "<f8"}
    with pytest.raises(ValueError, match="read-only"):
        tables["events"]["addr"][0] = 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.columns"]


@pytest.mark.parametrize("snapshot", [everything(), long_history(500)])
def test_a_snapshot_is_rebuilt_from_its_columns(tmp_path, snapshot):
    write_columns(tmp_path / "a", tables_of(snapshot), {})
    assert rebuilt(open_columns(tmp_path / "a")) == snapshot


numbers = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5)
columns = st.one_of(
    numbers.map(lambda values: np.array(values, np.int64)),
    st.lists(st.floats(), max_size=5).map(lambda values: np.array(values, np.float64)),
    st.lists(st.text(), max_size=5).map(tuple),
)


@in_tmp_path
@given(st.dictionaries(st.text(), st.dictionaries(st.text(), columns)))
def test_any_tables_come_back(tmp_path, tables):
    write_columns(tmp_path / "a", tables, {})
    assert same(tables, open_columns(tmp_path / "a"))


class Chunked:
    is_float = False

    def __len__(self) -> int:
        return 6

    def bounds(self) -> tuple[int, int]:
        return -2, 300

    def chunks(self) -> Iterator[Any]:
        yield np.array([1, -2, 3])
        yield np.array([], np.int64)
        yield np.array([300, 0, 0])


def test_a_column_in_chunks_is_written_as_one(tmp_path):
    write_columns(tmp_path / "a", {"t": {"c": Chunked()}}, {})
    column = open_columns(tmp_path / "a")["t"]["c"]
    assert column.dtype == np.int16
    assert column.tolist() == [1, -2, 3, 300, 0, 0]


def test_a_cut_off_file_is_refused_wherever_it_was_cut(tmp_path):
    path = tmp_path / "a"
    write_columns(path, TABLES, {})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(NotColumnsError):
            open_columns(path)


def test_no_changed_byte_goes_unnoticed(tmp_path):
    """But for those between the columns, which are nobody's."""
    path = tmp_path / "a"
    write_columns(path, TABLES, {})
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        try:
            tables = open_columns(path)
        except NotColumnsError:
            continue
        assert whole[place] == 0
        assert same(TABLES, tables)


@in_tmp_path
@given(st.data())
def test_a_header_that_lies_is_refused(tmp_path, data):
    """With right checksums, as somebody may write one who knows how."""
    import json
    import struct
    import zlib

    path = tmp_path / "a"
    write_columns(path, TABLES, {})
    whole = path.read_bytes()
    at, length, _, _ = struct.unpack("<QQI4x8s", whole[-32:])
    header = json.loads(whole[at : at + length])
    table = header["tables"][data.draw(st.sampled_from(["events", "strings"]))]
    column = table[data.draw(st.sampled_from(sorted(table)))]
    key = data.draw(st.sampled_from(sorted(column)))
    column[key] = data.draw(
        st.integers(-(2**70), 2**70)
        | st.integers(0, 1000)
        | st.sampled_from(["i1", "i8", "f8", "text", "V8", "O", None, [], {}])
    )
    encoded = json.dumps(header).encode()
    end = struct.pack("<QQI4x8s", at, len(encoded), zlib.crc32(encoded), b"columns.")
    path.write_bytes(whole[:at] + encoded + end)
    with suppress(NotColumnsError):
        tables = open_columns(path)
        assert same(TABLES, tables) or "events" in tables


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 4096])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(NotColumnsError):
        open_columns(tmp_path / "a")


@pytest.mark.parametrize("column", [[1, 2], np.zeros((2, 2)), np.array(["a"]), None])
def test_what_is_no_column_is_not_written(tmp_path: Path, column):
    with pytest.raises(ValueError):
        write_columns(tmp_path / "a", {"t": {"c": column}}, {})
