"""Records round-trip, newer writers are understood or refused, damage has one name."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.columns import AXES, Column
from memboard.collector.format.digest import TableRollup, decode_digest, encode_digest
from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.encoding.payload import from_json, pack, to_json
from memboard.collector.format.errors import CorruptError, FormatError, VersionError
from memboard.collector.format.records import (
    ChunkRef,
    ClockAnchor,
    Close,
    Header,
    Note,
    Schema,
    Segment,
    StepCounts,
    decode_chunk,
    decode_chunk_ref,
    decode_record,
    encode_chunk,
    kind_of,
)

HEADER = Header(
    run_id="exp1",
    attempt="20261120T101530123-1f2e3d4c",
    job="",
    rank=12,
    local_rank=4,
    world_size=64,
    local_world_size=8,
    node_rank=1,
    host="<b>node</b>\udcff",
    pid=4711,
    started=ClockAnchor(wall_ns=1795177286703913739, monotonic_ns=5),
    device_type="cuda",
    mesh={"dp": 3, "tp": 0},
    planted=("rank 3 leaks",),
)
SCHEMA = Schema(
    schema_id=7,
    table="step",
    phase="train",
    columns=(
        *AXES,
        Column(name="rss_bytes", unit="bytes", group="process", headline=True),
        Column(name="load", unit="percent", group="host", dtype="f4"),
    ),
)


@pytest.mark.parametrize(
    "record",
    [
        HEADER,
        SCHEMA,
        Note(kind="source", time_ns=2**62, step=None, data={"name": "gpu"}),
        Note(kind="invented later", time_ns=1, step=3),
        Segment(
            number=7,
            base_offset=2**40,
            digest_offset=2**39,
            header=msgspec.structs.replace(HEADER, host="node"),
            schemas=(SCHEMA,),
        ),
        Close(time_ns=9, how="exception", message="x", digest_offset=1, num_dropped=0),
        Close(
            time_ns=9,
            how="closed",
            message="",
            is_complete=False,
            steps=StepCounts(taken=9, dropped=2, summed_up=0),
        ),
    ],
    ids=lambda record: type(record).__name__,
)
def test_text_records_come_back_equal(record):
    back = decode_record(kind_of(record), pack(record))
    if isinstance(record, Header):
        assert back.host.startswith("<b>node</b>")
        back = msgspec.structs.replace(back, host=record.host)
    assert back == record


def rows(count):
    times = np.arange(count, dtype=np.int64) * 10**7 + 1795177286703913739
    steps = np.arange(count, dtype=np.int64) + 500
    rss = np.where(steps % 7 == 0, ABSENT, steps * 123_456_789_123)
    load = np.where(steps % 5 == 0, np.nan, steps / 4)
    return [times, steps, rss, load]


def test_a_chunk_comes_back_with_what_it_covers():
    columns = rows(100)
    payload = encode_chunk(SCHEMA, columns, digest_offset=99, first_row=70)
    ref, digest_offset = decode_chunk_ref(payload, 10, 20)
    assert digest_offset == 99
    times = int(columns[0][0]), int(columns[0][-1])
    assert ref == ChunkRef(10, 20, 7, 100, 500, 599, *times, 70)
    for expected, actual in zip(columns, decode_chunk(payload), strict=True):
        np.testing.assert_array_equal(actual, expected)


def digest_payload(count=1000):
    table = TableRollup(SCHEMA)
    table.add(rows(count))
    chunks = [ChunkRef(at, at + 9, 7, 300, 0, 299, at, at, 0) for at in (100, 250, 400)]
    notes = [Note(kind="epoch", time_ns=1, step=2, data={"epoch": 3})]
    payload = encode_digest(
        [table], chunks, notes, [], previous_offset=77, captures_before=0
    )
    return table, chunks, notes, payload


def test_a_digest_comes_back_with_exact_peaks_and_directory():
    table, chunks, notes, payload = digest_payload()
    digest = decode_digest(payload, 500, 900)
    assert digest.previous_offset == 77
    assert digest.notes() == notes
    assert digest.schemas == {7: SCHEMA}
    listed = digest.chunks(payload)
    assert listed[:, 0].tolist() == [100, 250, 400]
    assert listed[:, 1].tolist() == [250, 400, 500], "up to the next, and the digest"
    assert listed[:, 2:].tolist() == [list(ref[2:]) for ref in chunks]
    held = digest.tables[7]
    assert (held.num_rows, held.fine.rows_per_bucket) == (1000, 1)
    fine = held.fine.columns(payload, held.fine.names)
    assert fine["rss_bytes:max"].dtype == np.int64
    assert fine["rss_bytes:max"].tolist() == rows(1000)[2].tolist()
    assert list(fine) == list(held.fine.names)
    (coarse,) = held.coarse.columns(payload, ["load:max", "no such"]).values()
    expected = table.coarse.columns()[2]  # behind the two of steps
    np.testing.assert_allclose(coarse, expected, rtol=1e-6)


def test_fields_of_a_newer_minor_writer_are_left_out():
    plain = from_json(to_json(HEADER), dict)
    plain["invented_later"] = {"a": 1}
    plain["started"]["also_new"] = 2
    assert decode_record("header", pack(plain)).rank == 12
    assert decode_record("kind of the future", b"anything") is None


def test_another_major_version_says_what_wrote_it_and_what_is_read_here():
    plain = {"format_version": 9, "versions": {"memboard": "7.0"}, "rank": "new"}
    for version in (1, 9):
        plain["format_version"] = version
        says = rf"format {version} by memboard 7\.0.*reads format 3"
        with pytest.raises(VersionError, match=says):
            decode_record("header", pack(plain))
    with pytest.raises(VersionError):
        decode_record("segment", pack({"header": plain}))


def decoded(kind, payload):
    if kind == "digest":
        return decode_digest(payload, 0, 1)
    return decode_chunk(payload) if kind == "chunk" else decode_record(kind, payload)


@pytest.mark.parametrize(
    "kind", ["header", "segment", "schema", "note", "close", "digest", "chunk"]
)
@given(garbage=st.binary(max_size=200))
def test_garbage_under_any_kind_is_a_format_error(kind, garbage):
    try:
        assert decoded(kind, garbage) is not None
    except FormatError:
        return


@pytest.mark.parametrize(
    "kind", ["header", "segment", "schema", "note", "close", "digest"]
)
@pytest.mark.parametrize("text", ["[]", "{}", "null", "[" * 100_000, '{"rank":"x"}'])
def test_json_of_the_wrong_shape_is_corrupt(kind, text):
    with pytest.raises(CorruptError):
        decoded(kind, len(text).to_bytes(4, "little") + text.encode())


@pytest.mark.parametrize("change", [{"rank": -1}, {"world_size": "8"}, {"host": None}])
def test_a_header_that_misuses_a_field_is_corrupt(change):
    with pytest.raises(CorruptError):
        decode_record("header", pack({**from_json(to_json(HEADER), dict), **change}))


@given(st.data())
def test_a_bit_flip_in_a_digest_never_raises_anything_else(data):
    payload = bytearray(digest_payload(50)[-1])
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(
        st.integers(1, 255)
    )
    flipped = bytes(payload)
    try:
        digest = decode_digest(flipped, 500, 900)
        digest.notes(), digest.captures(), digest.chunks(flipped)
        for table in digest.tables.values():
            table.fine.columns(flipped, table.fine.names)
            table.coarse.columns(flipped, table.coarse.names)
    except FormatError:
        return
