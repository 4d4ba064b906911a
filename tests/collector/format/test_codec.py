"""Records round-trip, newer writers are understood or refused, damage has one name."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.format import codec
from collector.format.columns import AXES, Column
from collector.format.errors import CorruptError, FormatError, TooNewError
from collector.format.numeric import ABSENT
from collector.format.records import (
    ClockAnchor,
    Close,
    Digest,
    Header,
    Note,
    Schema,
    TableDigest,
)
from collector.format.rollup import Rollup

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
        Close(time_ns=9, how="exception", message="x", digest_offset=1, num_dropped=0),
    ],
    ids=lambda record: type(record).__name__,
)
def test_text_records_come_back_equal(record):
    back = codec.decode_record(codec.kind_of(record), codec.encode_record(record))
    if isinstance(record, Header):
        assert back.host.startswith("<b>node</b>")
        back = dataclasses.replace(back, host=record.host)
    assert back == record


def test_a_chunk_comes_back_with_its_span():
    rows = 100
    times = np.arange(rows, dtype=np.int64) * 10**7 + 1795177286703913739
    steps = np.arange(rows, dtype=np.int64) + 500
    rss = np.where(steps % 7 == 0, ABSENT, steps * 4096)
    load = np.where(steps % 5 == 0, np.nan, steps / 4)
    payload = codec.encode_chunk(SCHEMA, [times, steps, rss, load], digest_offset=99)
    span = codec.decode_chunk_span(payload)
    assert (span.schema_id, span.num_rows, span.digest_offset) == (7, rows, 99)
    assert (span.first_step, span.last_step) == (500, 599)
    assert (span.first_ns, span.last_ns) == (times[0], times[-1])
    chunk = codec.decode_chunk(payload)
    for expected, actual in zip((times, steps, rss, load), chunk.columns, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_digest_comes_back_with_exact_peaks_and_directory():
    fine = Rollup(["rss_bytes"], max_buckets=16)
    coarse = Rollup(["load"], max_buckets=4, max_only=True)
    index = np.arange(1000, dtype=np.int64)
    rss = index * 123_456_789_123 + 1
    fine.add(index, index, [rss])
    coarse.add(index, index, [index / 3])
    offsets = np.array([100, 250, 400], np.int64)
    digest = Digest(
        previous_offset=77,
        tables=(
            TableDigest(
                schema_id=7,
                num_rows=1000,
                chunk_offset=offsets,
                chunk_rows=np.array([300, 300, 400], np.int64),
                chunk_first_step=np.array([0, 300, 600], np.int64),
                chunk_last_step=np.array([299, 599, 999], np.int64),
                chunk_first_ns=offsets,
                chunk_last_ns=offsets,
                fine_rows=fine.rows_per_bucket,
                fine=fine.columns(),
                coarse_rows=coarse.rows_per_bucket,
                coarse=coarse.columns(),
            ),
        ),
        notes=(Note(kind="epoch", time_ns=1, step=2, data={"epoch": 3}),),
        schemas=(SCHEMA,),
    )
    back = codec.decode_record(codec.DIGEST, codec.encode_record(digest))
    assert back.previous_offset == 77
    assert back.notes == digest.notes
    assert back.schemas == digest.schemas
    (table,) = back.tables
    assert np.array_equal(table.chunk_offset, offsets)
    assert int(np.nanmax(table.fine["rss_bytes:max"])) == int(rss[-1])
    assert table.fine["rss_bytes:max"].dtype == np.int64
    for name, values in fine.columns().items():
        np.testing.assert_allclose(table.fine[name], values, rtol=1e-6)
    np.testing.assert_allclose(
        table.coarse["load:max"], coarse.columns()["load:max"], rtol=1e-6
    )


def test_fields_of_a_newer_minor_writer_are_left_out():
    plain = json.loads(codec.encode_record(HEADER))
    plain["invented_later"] = {"a": 1}
    plain["started"]["also_new"] = 2
    back = codec.decode_record(codec.HEADER, json.dumps(plain).encode())
    assert back.rank == 12
    assert codec.decode_record("kind of the future", b"anything") is None


def test_a_newer_major_version_says_what_wrote_it_and_what_is_read_here():
    plain = json.loads(codec.encode_record(HEADER))
    plain["format_version"] = 9
    plain["versions"] = {"memboard": "7.0"}
    with pytest.raises(TooNewError, match=r"format 9 by memboard 7\.0.*up to format 1"):
        codec.decode_record(codec.HEADER, json.dumps(plain).encode())


@pytest.mark.parametrize(
    "kind", ["header", "schema", "note", "close", "digest", "chunk"]
)
@given(garbage=st.binary(max_size=200))
def test_garbage_under_any_kind_is_a_format_error(kind, garbage):
    try:
        decoded = codec.decode_record(kind, garbage)
    except FormatError:
        return
    assert decoded is not None


@pytest.mark.parametrize("kind", ["header", "schema", "note", "close"])
@pytest.mark.parametrize("text", ["[]", "{}", "null", "[" * 100_000, '{"rank":"x"}'])
def test_json_of_the_wrong_shape_is_corrupt(kind, text):
    with pytest.raises(CorruptError):
        codec.decode_record(kind, text.encode())


@given(st.data())
def test_a_bit_flip_in_a_digest_never_raises_anything_else(data):
    index = np.arange(50, dtype=np.int64)
    rollup = Rollup(["rss_bytes"], max_buckets=16)
    rollup.add(index, index, [index])
    table = TableDigest(
        schema_id=7,
        num_rows=50,
        fine_rows=4,
        fine=rollup.columns(),
        coarse_rows=1,
        coarse={},
        **{f"chunk_{n}": index[:1] for n in ("offset", "rows", "first_step")},
        **{f"chunk_{n}": index[:1] for n in ("last_step", "first_ns", "last_ns")},
    )
    digest = Digest(previous_offset=0, tables=(table,), notes=(), schemas=(SCHEMA,))
    payload = bytearray(codec.encode_record(digest))
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(
        st.integers(1, 255)
    )
    try:
        back = codec.decode_record(codec.DIGEST, bytes(payload))
    except FormatError:
        return
    assert isinstance(back, Digest)
