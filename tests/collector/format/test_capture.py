"""Captures: every table comes back, and hostile bytes are refused, not believed."""

from __future__ import annotations

import zlib
from collections import ChainMap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memboard.collector.format import capture as body_codec
from memboard.collector.format.capture import (
    PART_BYTES,
    decode_body,
    decode_capture,
    decode_part,
    encode_body,
    join_parts,
    size_of,
    split_body,
)
from memboard.collector.format.encoding.numeric import encode_block
from memboard.collector.format.encoding.payload import from_json, pack, to_json
from memboard.collector.format.errors import CorruptError, FormatError
from memboard.collector.format.records import Capture, CaptureEntry

ENTRY = CaptureEntry(
    offset=1000,
    num_bytes=500,
    kind="modules",
    time_ns=2**60,
    step=7,
    phase="train",
    function="step",
    iteration=2,
    context="end",
    label="before the split",
)


def capture(**fields):
    known = {
        "kind": "modules",
        "time_ns": 2**60,
        "step": 7,
        "phase": "train",
        "function": "step",
        "iteration": 2,
        "context": "end",
        "label": "before the split",
    }
    return Capture(**{**known, **fields})


def assert_same(one, other):
    assert list(one) == list(other)
    for name, table in one.items():
        assert list(table) == list(other[name])
        for column, values in table.items():
            back = other[name][column]
            if isinstance(values, tuple):
                assert back == values
            else:
                assert back.dtype == values.dtype
                assert np.array_equal(values, back, equal_nan=values.dtype.kind == "f")


def round_trip(given_capture, wanted=None):
    body = encode_body(given_capture)
    parts = [decode_part(p) for p in split_body(given_capture, body, digest_offset=77)]
    assert all(part.digest_offset == 77 for part, _ in parts)
    return decode_capture(parts, wanted)


few_ints = hnp.arrays(np.int64, 20, elements=st.integers(-5, 5))
floats = hnp.arrays(np.float64, 20)
texts = st.lists(st.text(max_size=8), min_size=20, max_size=20).map(tuple)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.dictionaries(st.text(max_size=5), few_ints | floats | texts, max_size=4),
        max_size=3,
    ),
    st.integers(0, 20),
)
def test_any_tables_come_back(tables, num_rows):
    tables = {
        name: {column: values[:num_rows] for column, values in table.items()}
        for name, table in tables.items()
    }
    assert_same(tables, round_trip(capture(tables=tables)).tables)


def test_what_is_said_of_the_capture_comes_back():
    meta = {"backend": "fsdp2", "devices": ["cuda:0"], "incomplete": False, "n": None}
    back = round_trip(capture(meta=meta))
    assert back == capture(meta=meta)


def test_meta_is_made_plain():
    meta = {"nan": float("nan"), "n": np.int64(3), "x": (1, {2: complex(1, 2)})}
    back = round_trip(capture(meta=meta)).meta
    assert back == {"nan": None, "n": 3, "x": [1, {"2": "(1+2j)"}]}


def test_meta_that_is_made_when_it_is_looked_at_comes_back():
    later = ChainMap({"a": 1}, {"b": [2]})
    assert round_trip(capture(meta=later)).meta == {"a": 1, "b": [2]}
    assert round_trip(capture(meta={"x": later})).meta == {"x": {"a": 1, "b": [2]}}


def test_narrow_dtypes_and_flags_are_widened():
    table = {
        "b": np.array([True, False]),
        "i": np.array([1, 2], np.int32),
        "f": np.array([0.5, 1], np.float32),
    }
    back = round_trip(capture(tables={"t": table})).tables["t"]
    assert back["b"].tolist() == [1, 0]
    assert back["i"].dtype == np.int64
    assert back["f"].tolist() == [0.5, 1.0]


def test_paths_that_are_no_utf8_come_back():
    table = {"path": ("a/\udcff", "", "ü", "a/\udcff")}
    assert round_trip(capture(tables={"t": table})).tables["t"] == table


def test_only_the_wanted_tables_are_decoded():
    tables = {name: {"x": np.arange(5)} for name in "abc"}
    assert list(round_trip(capture(tables=tables), {"b"}).tables) == ["b"]
    assert round_trip(capture(tables=tables), ()).tables == {}


def test_large_captures_are_cut_into_parts():
    noise = np.random.default_rng(0).integers(0, 2**62, 200_000)
    large = capture(tables={"t": {"x": noise}})
    body = encode_body(large)
    parts = split_body(large, body, digest_offset=0)
    assert len(parts) == -(-len(body) // PART_BYTES) > 4
    assert max(map(len, parts)) < PART_BYTES + 1000
    assert_same(large.tables, round_trip(large).tables)


def test_a_million_events_take_few_bytes():
    rng = np.random.default_rng(0)
    events = {
        "time_us": np.cumsum(rng.integers(0, 50, 100_000)),
        "delta_bytes": rng.integers(-100, 100, 100_000) * 512,
        "category": rng.integers(0, 14, 100_000),
    }
    assert len(encode_body(capture(tables={"events": events}))) < 4 * 100_000


def test_columns_that_are_none_are_refused():
    for column in (np.zeros((2, 2)), np.array(["a"]), np.array([1 + 1j])):
        with pytest.raises(ValueError, match="neither numbers nor texts"):
            encode_body(capture(tables={"t": {"c": column}}))
    uneven = {"a": np.arange(2), "b": ("x",)}
    with pytest.raises(ValueError, match="different lengths"):
        encode_body(capture(tables={"t": uneven}))


def test_what_is_too_large_is_not_written(monkeypatch):
    monkeypatch.setattr(body_codec, "MAX_CAPTURE_BYTES", 800)
    assert size_of({"t": {"x": np.arange(100)}}) == 800
    encode_body(capture(tables={"t": {"x": np.arange(100)}}))
    with pytest.raises(ValueError, match="larger"):
        encode_body(capture(tables={"t": {"x": np.arange(101)}}))
    with pytest.raises(ValueError, match="larger"):
        encode_body(capture(tables={"t": {"x": ("ä" * 369,)}}))


# Hostile bytes.


def body_of(tables, *blocks, meta=None):
    return pack({"meta": meta or {}, "tables": tables}, *blocks)


def zeros(num_rows):
    """A block of a few bytes that decodes to so many zeros."""
    return encode_block([np.zeros(num_rows, np.int64)], ["i8"])


def claim(num_rows, block, name="t", columns=(("c", "i8"),), sizes=None):
    return [name, num_rows, columns, sizes or [len(block), 0, 0]]


def test_claimed_rows_are_bounded_before_anything_is_allocated(monkeypatch):
    block = zeros(100_000)
    decode_body(body_of([claim(100_000, block)], block))
    monkeypatch.setattr(body_codec, "MAX_CAPTURE_BYTES", 799_999)
    monkeypatch.setattr(body_codec, "decode_block", None)  # never asked
    with pytest.raises(CorruptError, match="claims"):
        decode_body(body_of([claim(100_000, block)], block))


def test_many_small_tables_share_one_bound(monkeypatch):
    monkeypatch.setattr(body_codec, "MAX_CAPTURE_BYTES", 8 * 250)
    block = zeros(100)
    with pytest.raises(CorruptError, match="claims"):
        decode_body(body_of([claim(100, block, name=n) for n in "abc"], block * 3))


def test_rows_that_head_and_block_count_differently_are_damage():
    block = zeros(100)
    for num_rows in (0, 99, 101, -1, 2**40, "100", None, True):
        with pytest.raises(CorruptError):
            decode_body(body_of([claim(num_rows, block)], block))


def test_texts_are_bounded():
    def text_table(codes, lengths, text):
        blocks = [
            encode_block([np.array(codes)], ["i8"]),
            encode_block([np.array(lengths, np.int64)], ["i8"]),
            zlib.compress(text),
        ]
        sizes = list(map(len, blocks))
        plain = claim(len(codes), b"", columns=[["c", "text"]], sizes=sizes)
        return body_of([plain], *blocks)

    good = decode_body(text_table([0, 1, 0], [1, 2], b"abb"))[1]
    assert good == {"t": {"c": ("a", "bb", "a")}}
    for codes, lengths, text in (
        ([0, 2], [1, 2], b"abb"),  # no such text
        ([0, -1], [1, 2], b"abb"),
        ([0, 1], [1, 1, 1], b"abc"),  # more texts than rows
        ([0, 1], [1, 3], b"abb"),  # longer than there is
        ([0, 1], [4, -1], b"abb"),
        ([0, 1], [1, 2], b"a\xff\xff"),  # no UTF-8
    ):
        with pytest.raises(CorruptError):
            decode_body(text_table(codes, lengths, text))


def test_a_bomb_of_text_is_no_allocation(monkeypatch):
    monkeypatch.setattr(body_codec, "MAX_CAPTURE_BYTES", 1 << 16)
    blocks = [zeros(4), encode_block([np.array([1 << 24])], ["i8"])]
    blocks.append(zlib.compress(bytes(1 << 24)))
    plain = claim(4, b"", columns=[["c", "text"]], sizes=list(map(len, blocks)))
    with pytest.raises(CorruptError, match="longer"):
        decode_body(body_of([plain], *blocks))


@pytest.mark.parametrize(
    "tables",
    [
        [{}],
        [{"name": "t"}],
        "text",
        None,
        [None],
        [[1]],
        [claim(1, b"", columns=[["c"]])],
        [claim(1, b"", columns=[["c", "i8"], ["c", "i8"]])],
        [claim(1, b"", sizes=[10**12, 0, 0])],
        [claim(1, b"", sizes=[-5, 0, 0])],
        [claim(0, b"", columns=[], sizes=[0])],
        [claim(1, b"", columns=[["c", "text"]])],
        [{}] * 65,
    ],
)
def test_odd_heads_are_damage(tables):
    with pytest.raises(CorruptError):
        decode_body(body_of(tables, zeros(1)))


@pytest.mark.parametrize("meta", ["text", 5, [1]])
def test_odd_meta_is_damage(meta):
    with pytest.raises(CorruptError):
        decode_body(body_of([], meta=meta))
    for text in (b'{"meta":{"a":NaN},"tables":[]}', b'{"meta":' + b"[" * 100_000):
        with pytest.raises(CorruptError):
            decode_body(len(text).to_bytes(4, "little") + text)


@given(st.data())
def test_flipped_bits_are_found_whatever_they_hit(data):
    tables = {"t": {"x": np.arange(100) ** 2, "s": tuple("abcde" * 20)}}
    given_capture = capture(tables=tables)
    body = encode_body(given_capture)
    parts = split_body(given_capture, body, digest_offset=0)
    flipped = bytearray(parts[0])
    at = data.draw(st.integers(0, len(flipped) - 1))
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    try:
        back = decode_capture([decode_part(bytes(flipped))])
    except FormatError:
        return
    assert_same(tables, back.tables)  # it hit the entry or the digest's offset


@given(st.binary(max_size=300), st.sampled_from([decode_body, decode_part]))
def test_any_bytes_are_a_capture_or_damage(data, decode):
    try:
        found = decode(data)
    except FormatError:
        return
    assert len(found) == 2


# Parts.


def parts_of(num_values=100_000, seed=0):
    noise = np.random.default_rng(seed).integers(0, 2**62, num_values)
    given_capture = capture(tables={"t": {"x": noise}})
    body = encode_body(given_capture)
    return [decode_part(p) for p in split_body(given_capture, body, digest_offset=0)]


def test_missing_strange_and_repeated_parts_are_damage():
    parts, others = parts_of(), parts_of(seed=1)
    assert len(parts) == len(others) >= 3
    join_parts(parts)
    for wrong in (
        [],
        parts[:-1],
        parts[1:],
        [parts[0], *parts[2:]],
        [parts[0], others[1], *parts[2:]],
        [parts[0], parts[0], *parts[2:]],
        [*parts, parts[-1]],
        [(parts[0][0], parts[1][1]), *parts[1:]],
    ):
        with pytest.raises(CorruptError):
            join_parts(wrong)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": 5},
        {"label": None},
        {"time_ns": "5"},
        {"time_ns": 2**63},
        {"iteration": True},
        {"step": 1.5},
        {"offset": -1},
        {"num_bytes": None},
        {"function": "f" * 10_001},
    ],
)
def test_entries_with_odd_fields_are_damage(change):
    plain = from_json(to_json(ENTRY), dict)
    assert from_json(to_json({**plain, "new": 1}), CaptureEntry) == ENTRY
    with pytest.raises(CorruptError):
        from_json(to_json({**plain, **change}), CaptureEntry)
