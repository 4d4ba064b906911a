"""A dumped snapshot's file becomes the tables that a captured snapshot has."""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from memboard.collector.format.snapshots import rebuilt, tables_of
from memboard.tb_plugin.formats.snapshots.snapshot_file import read_tables
from memboard.tb_plugin.worker.errors import RefusedError
from tests.made_snapshots import (
    everything,
    long_history,
    pooled,
    read_snapshot,
    releases,
)
from tests.tb_plugin.readers.snapshots.test_machine import expected, real_files

if TYPE_CHECKING:
    from pathlib import Path


def tables_in(data: bytes) -> Any:
    return read_tables(io.BytesIO(data))


def plain(snapshot: dict) -> dict:
    """Without the bytes, which protocol 2 writes as a call."""
    return {k: v for k, v in snapshot.items() if k != "from_the_future"}


def written(tmp_path: Path, snapshot: Any, protocol: int = 4) -> Path:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "made",
    [lambda: plain(everything()), lambda: long_history(5000), lambda: pooled(5000)],
)
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


@pytest.mark.parametrize("other", [{"a": 1}, [1, 2], "text", None, [[{"blocks": []}]]])
def test_plain_data_that_is_no_snapshot_is_refused(other):
    with pytest.raises(RefusedError, match="no allocator snapshot"):
        tables_in(pickle.dumps(other))


def nested(levels: int, width: int) -> Any:
    made: list[Any] = []
    for _ in range(levels):
        made = [made] * width
    return made


RING: list[Any] = []
RING.append(RING)


@pytest.mark.parametrize(
    ("odd", "what"),
    [
        ([{"action": "alloc", "addr": 1, "size": 2}], "events stand where"),
        (nested(50, 2), "far more"),
        (nested(200, 1), "too deep"),
        (RING, "after it was made"),
    ],
)
def test_what_would_be_lost_or_never_end_is_refused(odd, what):
    with pytest.raises(RefusedError, match=what):
        tables_in(pickle.dumps({"segments": [], "odd": odd}))
