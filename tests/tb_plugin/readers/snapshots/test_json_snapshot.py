"""A snapshot saved as JSON gives the tables that its pickle gives."""

from __future__ import annotations

import gzip
import io
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.snapshots import rebuilt
from memboard.tb_plugin.formats.snapshots import snapshot_file as json_snapshot
from memboard.tb_plugin.formats.snapshots.snapshot_file import read_tables
from memboard.tb_plugin.worker.errors import RefusedError
from tests.made_snapshots import everything, long_history, releases


def read(data: bytes) -> Any:
    return rebuilt(read_tables(io.BytesIO(data)))


def with_lists(value: Any) -> Any:
    """What JSON makes of it, with the pairs that are known to be tuples."""

    def pairs(value: Any) -> Any:
        if isinstance(value, list):
            return [pairs(entry) for entry in value]
        if isinstance(value, dict):
            return {
                key: tuple(entry)
                if key in ("pool_id", "segment_pool_id")
                else pairs(entry)
                for key, entry in value.items()
            }
        return value

    return pairs(json.loads(json.dumps(value)))


def plain(snapshot: Any) -> Any:
    """Without the entry that JSON has no words for."""
    if isinstance(snapshot, dict):
        return {k: v for k, v in snapshot.items() if k != "from_the_future"}
    return snapshot


@pytest.mark.parametrize("release", releases())
@pytest.mark.parametrize("indent", [None, 1])
def test_every_release_is_read_from_json(release, indent):
    snapshot = plain(releases()[release])
    data = json.dumps(snapshot, indent=indent).encode()
    assert read(data) == with_lists(snapshot)


def test_gzipped_json_is_read_alike():
    snapshot = plain(everything())
    data = gzip.compress(json.dumps(snapshot).encode())
    assert read(data) == with_lists(snapshot)


def test_stacks_of_long_histories_are_shared():
    snapshot = long_history(4000)
    tables = read_tables(io.BytesIO(json.dumps(snapshot).encode()))
    assert rebuilt(tables) == with_lists(snapshot)
    assert len(tables["stacks"]["num_frames"]) <= 202
    assert len(tables["frames"]["line"]) <= 402


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[",
        "[[",
        '{"segments": [',
        '{"segments": [{]}',
        '{"segments": [], "segments": []}',
        '{"segments": []} {}',
        '{"segments" []}',
        '{"segments: []}',
        "{segments: []}",
        '{"segments": [NaN]}',
        '{"device_traces": [{"action": "alloc", "addr": 1, "size": 2}, 3]}',
        '{"device_traces": [[{"action": "alloc", "addr": 1, "frames": [3]}]]}',
        '{"segments": [], "x": ' + "[" * 10_000,
        '{"segments": [], "x": ' + "[" * 100 + "]" * 100 + "}",
        '{"segments": [{"a": 1' + "0" * 5000 + "}]}",
        '{"segments": [{"a": "\\ud800"}]}',
        '{"segments": [{"a": 1,}]}',
        "[1]",
        "{}",
        "[" + "{}," * 100 + "{}]",
        '{"other": 1}',
    ],
)
def test_what_is_no_snapshot_is_refused(text):
    with pytest.raises(RefusedError) as refused:
        read(text.encode())
    assert len(refused.value.what) > 10


@pytest.mark.parametrize(
    "text",
    [
        '{"segments": [1, 2]}',
        '{"device_traces": [[1]]}',
        '{"device_traces": [[{"no": "event"}]]}',
        '{"device_traces": [7]}',
    ],
)
def test_what_is_odd_is_read_as_its_pickle_is(text):
    assert read(text.encode()) == read(pickle.dumps(json.loads(text)))


def test_a_text_that_is_too_long_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(json_snapshot, "MAX_BYTES", 1 << 16)
    text = '{"segments": [{"a": "' + "x" * (1 << 16) + '"}]}'
    for data in (text.encode(), gzip.compress(text.encode(), 1)):
        with pytest.raises(RefusedError, match="longer than 65,536 bytes") as refused:
            read(data)
        assert "Keep the pickle" in refused.value.remedy


@given(st.data())
def test_damage_is_refused_and_never_crashes(data):
    whole = bytearray(json.dumps(plain(everything())).encode())
    del whole[data.draw(st.integers(0, len(whole))) :]
    for _ in range(data.draw(st.integers(0, 3))):
        if whole:
            at = data.draw(st.integers(0, len(whole) - 1))
            whole[at] = data.draw(st.sampled_from(b'"\\[]{},:x0 \xff\x00'))
    try:
        read(bytes(whole))
    except RefusedError as refused:
        assert refused.remedy  # noqa: PT017  # not every damage is one
