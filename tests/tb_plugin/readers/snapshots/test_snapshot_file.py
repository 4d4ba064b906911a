"""A dumped snapshot's file becomes the tables that a captured snapshot has."""

from __future__ import annotations

import gzip
import io
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from collector.format.snapshots import rebuilt, tables_of
from tb_plugin.formats.snapshots.snapshot_file import read_tables
from tb_plugin.worker.errors import RefusedError
from tests.made_snapshots import everything, long_history, read_snapshot, releases
from tests.tb_plugin.readers.snapshots.test_machine import expected, real_files

if TYPE_CHECKING:
    from pathlib import Path


def tables_in(data: bytes) -> Any:
    return read_tables(io.BytesIO(data))


def written(tmp_path: Path, snapshot: Any, protocol: int = 4) -> Path:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("made", [everything, lambda: long_history(3000)])
def test_the_tables_are_those_of_the_snapshot(tmp_path, made, protocol):
    tables = read_snapshot(written(tmp_path, made(), protocol))
    assert rebuilt(tables) == made()


@pytest.mark.parametrize("release", releases())
def test_every_release_is_read(tmp_path, release):
    snapshot = releases()[release]
    assert rebuilt(read_snapshot(written(tmp_path, snapshot))) == snapshot


def test_captured_and_imported_are_the_same_tables(tmp_path):
    snapshot = long_history(2000)
    imported = read_snapshot(written(tmp_path, snapshot))
    captured = tables_of(snapshot)
    assert imported.keys() == captured.keys()
    for name, table in captured.items():
        assert imported[name].keys() == table.keys()
        assert len(imported[name].keys()) == 0 or {
            len(column) for column in imported[name].values()
        } == {len(column) for column in table.values()}
    events, others = captured["events"], imported["events"]
    for column in ("addr", "size", "time_us", "device"):
        assert np.array_equal(events[column], others[column])


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name[:40])
def test_recorded_snapshots_come_back_whole(path):
    assert rebuilt(read_snapshot(path)) == expected(path.read_bytes())


def test_a_gzipped_file_is_read_alike(tmp_path):
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes(gzip.compress(pickle.dumps(everything(), protocol=4)))
    assert rebuilt(read_snapshot(path)) == everything()


def test_a_gzip_bomb_is_refused(tmp_path):
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes(gzip.compress(b"\x80\x04(" + b"J\0\0\0\0" * (12 << 20)))
    with pytest.raises(RefusedError, match="inflates to more"):
        read_snapshot(path)


@pytest.mark.parametrize(
    "content",
    [b"", gzip.compress(b"x" * 99, mtime=0)[:20], b"hello"],
    ids=["empty", "cut off", "text"],
)
def test_what_is_no_pickle_is_refused(tmp_path, content):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)
    with pytest.raises(RefusedError):
        read_snapshot(path)


@pytest.mark.parametrize("other", [{"a": 1}, [1, 2], "text", None, [[{"blocks": []}]]])
def test_plain_data_that_is_no_snapshot_is_refused(other):
    with pytest.raises(RefusedError, match="no allocator snapshot"):
        tables_in(pickle.dumps(other))


def test_events_under_another_key_are_refused_and_not_lost():
    odd = {"segments": [], "elsewhere": [{"action": "alloc", "addr": 1, "size": 2}]}
    with pytest.raises(RefusedError, match="events stand where"):
        tables_in(pickle.dumps(odd))


def test_what_stands_for_billions_is_refused():
    doubled: list[Any] = []
    for _ in range(50):
        doubled = [doubled, doubled]
    with pytest.raises(RefusedError, match="far more"):
        tables_in(pickle.dumps({"segments": [], "odd": doubled}))


def test_what_holds_itself_is_refused():
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(RefusedError, match="after it was made"):
        tables_in(pickle.dumps({"segments": [], "odd": ring}))


def test_deep_nesting_is_refused():
    deep: list[Any] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(RefusedError, match="too deep"):
        tables_in(pickle.dumps({"segments": [], "odd": deep}))
