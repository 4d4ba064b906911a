"""What was saved as JSON gives the tables that its pickle gives."""

from __future__ import annotations

import gzip
import io
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.format.snapshots import rebuilt
from tb_plugin.readers.imports.errors import RefusedError
from tb_plugin.readers.snapshots import json_text
from tb_plugin.readers.snapshots.json_text import JsonText
from tb_plugin.readers.snapshots.snapshot_file import read_tables
from tb_plugin.readers.snapshots.window import Window
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


def test_long_lists_are_read_in_batches_and_stacks_are_shared():
    snapshot = long_history(4000)
    tables = read_tables(io.BytesIO(json.dumps(snapshot).encode()))
    assert rebuilt(tables) == with_lists(snapshot)
    assert len(tables["stacks"]["num_frames"]) <= 202
    assert len(tables["frames"]["line"]) <= 402


texts = st.text() | st.sampled_from(['"', "\\", '\\"', "a\\\\", "[{", "}],", '",'])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.lists(values), st.integers(0, 2), st.integers(1, 40), st.booleans())
def test_elements_of_lists_are_told_apart(entries, indent, size, ascii_only):
    text = json.dumps(entries, indent=indent or None, ensure_ascii=ascii_only)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_BATCH", size)
        patch.setattr(json_text, "_GLANCE", size)
        there = JsonText(Window(io.BytesIO(text.encode(errors="surrogatepass"))))
        there.take(b"[")
        found = b",".join(there.batches())
    assert json.loads(b"[" + found + b"]") == entries
    assert there.peek() == b""


@settings(deadline=None)
@given(st.dictionaries(texts, values))
def test_values_of_objects_are_told_apart(entries):
    there = JsonText(Window(io.BytesIO(json.dumps(entries).encode())))
    there.take(b"{")
    found = {}
    while not there.took(b"}"):
        if found:
            there.take(b",")
        key = there.key()
        found[key] = json.loads(there.value())
    assert found == entries


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
        '{"segments": [1, 2]}',
        '{"device_traces": [[1]]}',
        '{"device_traces": [[{"no": "event"}]]}',
        '{"device_traces": [{"action": "alloc", "addr": 1, "size": 2}, 3]}',
        '{"device_traces": [7]}',
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


@pytest.mark.parametrize("element", ["[],", "{},", "0,", '"a",', "[[],[]],"])
@pytest.mark.parametrize(
    "key", ["segments", "device_traces", "x", "external_annotations"]
)
def test_floods_are_refused(key, element):
    text = f'{{"{key}": [{element * 3_000_000} 0]}}'
    with pytest.raises(RefusedError):
        read(text.encode())


def test_an_endless_element_is_refused(monkeypatch):
    monkeypatch.setattr(json_text, "MAX_VALUE", 1 << 16)
    text = '{"segments": [{"a": "' + "x" * (4 << 20) + '"}]}'
    with pytest.raises(RefusedError, match="longer than"):
        read(text.encode())


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_damage_is_refused_and_never_crashes(data):
    whole = bytearray(json.dumps(plain(everything())).encode())
    del whole[data.draw(st.integers(0, len(whole))) :]
    for _ in range(data.draw(st.integers(0, 3))):
        if whole:
            at = data.draw(st.integers(0, len(whole) - 1))
            whole[at] = data.draw(st.sampled_from(b'"\\[]{},:x0 \xff\x00'))
    with suppress(RefusedError):
        read(bytes(whole))
