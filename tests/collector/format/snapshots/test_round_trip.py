"""A snapshot comes back from its tables as it was, whatever torch put into it."""

from __future__ import annotations

import copy
import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.encoding.numeric import (
    ABSENT,
    decode_block,
    encode_block,
)
from memboard.collector.format.snapshots import rebuilt, tables_of
from tests.made_snapshots import event, everything, frame, long_history, releases

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", ""), "snapshots")
FILES = sorted(path for path in REAL.glob("*.p*") if path.is_file())


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


def through_disk(tables):
    """The tables with their numbers encoded as they are on disk, and decoded."""
    decoded = {}
    for name, table in tables.items():
        numbers = {k: v for k, v in table.items() if not isinstance(v, tuple)}
        kinds = ["f8" if v.dtype.kind == "f" else "i8" for v in numbers.values()]
        columns = decode_block(encode_block(list(numbers.values()), kinds))
        decoded[name] = {**table, **dict(zip(numbers, columns, strict=True))}
    return decoded


@pytest.mark.skipif(not FILES, reason="MEMBOARD_REAL_DATA holds no snapshots")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:24])
def test_real_snapshots_come_back_equal(path):
    snapshot = PlainUnpickler(io.BytesIO(path.read_bytes())).load()
    again = rebuilt(through_disk(tables_of(snapshot)))
    assert again == snapshot
    # And as a pickle for other viewers.
    assert pickle.loads(pickle.dumps(again, protocol=4)) == snapshot


@pytest.mark.parametrize("name", releases())
def test_each_release_comes_back_equal(name):
    snapshot = releases()[name]
    assert rebuilt(through_disk(tables_of(snapshot))) == snapshot


def test_encoding_leaves_the_snapshot_alone():
    snapshot = everything()
    before = copy.deepcopy(snapshot)
    tables_of(snapshot)
    assert snapshot == before


def test_types_survive_not_only_values():
    settings = {"a": True, "b": 1, "c": 1.0, "d": (1, 2), "e": [1, 2], "f": None}
    snapshot = {"segments": [], "allocator_settings": settings}
    again = rebuilt(tables_of(snapshot))["allocator_settings"]
    assert {key: type(value) for key, value in again.items()} == {
        key: type(value) for key, value in settings.items()
    }
    segments = rebuilt(tables_of(everything()))["segments"]
    assert [type(segment["is_expandable"]) for segment in segments] == [bool] * 3
    assert segments[1]["segment_pool_id"] == (3, 1)


def test_tables_have_the_names_that_views_are_built_on():
    tables = tables_of(everything())
    assert set(tables) == {
        "strings",
        "frames",
        "stacks",
        "stack_frames",
        "root",
        "layout",
        "segments",
        "blocks",
        "traces",
        "events",
        "annotations",
        "host_segments",
        "host_blocks",
        "host_traces",
        "host_events",
    }
    events, strings = tables["events"], tables["strings"]["text"]
    assert [strings[at] for at in events["action"][:2]] == ["segment_alloc", "alloc"]
    assert events["device"].tolist() == [0] * 9 + [2]
    assert tables["traces"]["num_events"].tolist() == [9, 0, 1, 0]
    assert tables["blocks"]["segment"].tolist() == [0, 0, 0, 1]
    assert tables["segments"]["num_blocks"].tolist() == [3, 1, 0]
    assert events["pool_id.0"].tolist()[:3] == [ABSENT, 0, 3]
    assert events["device_free"].tolist().count(ABSENT) == 9
    # Addresses above 2**63 are the same number modulo 2**64.
    assert events["addr"].view(np.uint64)[-1] == 2**63 + 4096
    for table in tables.values():
        assert len({len(column) for column in table.values()}) <= 1


def test_equal_stacks_are_stored_once():
    snapshot = long_history(3000)
    tables = tables_of(snapshot)
    # 200, none at all, and that of what is free.
    assert len(tables["stacks"]["num_frames"]) <= 202
    assert len(tables["frames"]["name"]) <= 402
    assert rebuilt(tables) == snapshot


def test_what_mixes_types_is_kept_as_values():
    odd = [
        event("alloc", 1, 2, 3, frames=[frame("f", 1)]),
        event("alloc", "0x1", None, 2.5, frames=None),
        event(None, -(2**70), 2**64, True, frames=[[1]]),
    ]
    snapshot = {"segments": [], "device_traces": [odd]}
    assert rebuilt(tables_of(snapshot)) == snapshot


def test_what_has_another_shape_is_kept_whole():
    for snapshot in (
        None,
        {},
        {"segments": None, "device_traces": [None]},
        {"segments": [{}], "device_traces": [[{}]]},
        {"segments": [{"blocks": [1]}]},
        {"segments": [{1: 2}], "device_traces": {"0": []}},
        {"": [], "segments": [{"blocks": [], "frames": [{}]}]},
        [[], {}],
        {"device_traces": [[{f"key{n}": n for n in range(1000)}]]},
        {"segments": [{"a\ud800": "b\ud800"}]},
        {
            "segments": [{"text": "b\ud800"}],
            "external_annotations": [{"name": "\ud800"}],
        },
    ):
        assert rebuilt(tables_of(snapshot)) == snapshot


def test_keys_that_tables_have_themselves_are_told_apart():
    snapshot = {
        "segments": [{"num_blocks": 7, "blocks": [{"segment": 9}], "num_blocks_": 8}],
        "device_traces": [[{"device": 5, "pool": (1, 2), "pool.0": 3}]],
    }
    tables = tables_of(snapshot)
    assert tables["events"]["device"].tolist() == [0]
    assert rebuilt(tables) == snapshot


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**66), 2**66),
    st.integers(0, 9),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
ROWS = st.lists(
    st.dictionaries(
        st.sampled_from(["addr", "size", "frames", "device", "x"]),
        SCALARS | st.lists(st.fixed_dictionaries({"name": st.text(max_size=2)})),
        max_size=4,
    ),
    max_size=6,
)


@given(
    segments=ROWS | st.none(),
    blocks=ROWS,
    traces=st.lists(ROWS, max_size=3),
    more=st.dictionaries(st.text(max_size=4), SCALARS | ROWS, max_size=3),
)
def test_any_plain_structure_comes_back_equal(segments, blocks, traces, more):
    if segments:
        segments[0]["blocks"] = blocks
    snapshot = {"segments": segments, "device_traces": traces, **more}
    assert rebuilt(through_disk(tables_of(snapshot))) == snapshot
