"""Traces that are damaged, odd or made to do harm: each says what is wrong, and no more."""

from __future__ import annotations

import gc
import gzip
import json
import sys
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.traces import read_trace, trace_file
from memboard.tb_plugin.formats.traces.bytes import inflated
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.errors import ImportFailedError, LimitError, RefusedError
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import Limits
from tests.tb_plugin.readers.traces.reading import (
    document,
    event,
    names_of,
    problems_of,
    read,
)

THREE = document([event("a", 1), event("b", 2), event("c", 3)])


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (b'"b"', b'"C:\\Users\\data"', "C:\\Users\\data"),
        (b'"b"', b'"a\x01b\nc"', "a b c"),
        (b'"b"', b'"b\xff"', "b\ufffd"),
        (b'"b"', b'"b\\ud800"', "b\ufffd"),
        (b'"b"', b'"C:\\dir\\"', "C:\\dir\\"),
    ],
)
def test_damaged_texts_are_repaired(old, new, kept):
    trace = read(THREE.replace(old, new))
    assert names_of(trace) == ["a", kept, "c"]
    assert not trace.problems


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"N/A", b"1e999"])
def test_numbers_that_are_none_are_not_there(word):
    args = b'"args": {"blocks per SM": %b, "device": 0}' % word
    kernel = event("k", 2, cat="kernel", args={})
    text = document([event("a", 1), kernel, event("c", 3)])
    trace = read(text.replace(b'"args": {}', args))
    assert len(trace.slices) == 3
    assert np.isnan(trace.device_work.blocks_per_sm).all()
    assert trace.args_of(names_of(trace).index("k")) == {
        "blocks per SM": None,
        "device": 0,
    }


@pytest.mark.parametrize(
    ("damaged", "left", "problems"),
    [
        (THREE[:-2], "abc", {"The file ends inside its list of events: it is incomplete.": 1}),
        (THREE[:-2] + b",", "abc", {"The file ends inside its list of events: it is incomplete.": 1}),
        (THREE[:-20], "ab", {
            "The file ends inside its list of events: it is incomplete.": 1,
            "events that could not be read are not shown": 1,
        }),
        (THREE.replace(b'"name": "b"', b'"name" "b"'), "ac", {
            "events that could not be read are not shown": 1,
        }),
        (THREE.replace(b'"ts": 2', b'"ts": "x"'), "ac", {"events without a time are not shown": 1}),
        (THREE.replace(b'"ts": 2', b'"ts": 1e300'), "ac", {"events without a time are not shown": 1}),
        (THREE.replace(b'"ts": 2', b'"ts": 1e1000000'), "ac", {
            "events without a time are not shown": 1,
        }),
        (THREE.replace(b'"ts": 2, ', b""), "ac", {"events without a time are not shown": 1}),
        (THREE.replace(b'"ph": "X"', b'"ph": "?"', 1), "bc", {"events of phase '?' are not shown": 1}),
        (THREE.replace(b'"dur": 1', b'"dur": -5', 1), "abc", {
            "slices of negative duration are shown as points": 1,
        }),
        (THREE.replace(b', "dur": 1', b"", 1), "abc", {
            "slices without a duration are shown as points": 1,
        }),
    ],
)  # fmt: skip
def test_what_is_wrong_is_counted_and_hides_nothing_else(damaged, left, problems):
    trace = read(damaged)
    assert sorted(names_of(trace)) == list(left)
    assert problems_of(trace) == problems


EVENT = json.dumps(event("a")).encode()
DEEP = 100_000


@pytest.mark.parametrize(
    ("events", "nouns"),
    [
        (b"[" * DEEP + b"]" * DEEP, "values nested deeper than 500 levels"),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "values nested deeper than 500 levels"),
        (EVENT[:-1] + b', "args": {"a":' + b"[" * DEEP + b"]" * DEEP + b"}}",
         "values nested deeper than 500 levels"),
        (b"[%b], [%b, %b]" % (EVENT, EVENT, EVENT), "lists"),
        (b'"a", "b"', "texts"),
        (b"1, -2.5, null", "numbers or null"),
        (b'"a", [], {"b": 1}', "texts, lists and objects without a phase (`ph`)"),
        (b'{"ph": 1, "ts": 1}', "objects that cannot be read"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_list", [False, True])
def test_a_list_that_holds_no_events_is_refused_by_what_it_holds(
    events, nouns, is_list
):
    text = b"[%b]" % events if is_list else b'{"traceEvents": [%b]}' % events
    with pytest.raises(RefusedError) as error:
        read(text)
    assert error.value.what.endswith(f"holds no events but {nouns}.")
    assert "`ph`" in error.value.remedy


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"null", "null"),
        (b"1", "a number"),
        (b'"[]"', "a text"),
        (b'{"a": 1}', "an object"),
    ],
)
def test_events_that_are_no_list_are_refused_by_what_they_are(value, kind):
    with pytest.raises(RefusedError) as error:
        read(b'{"a": 1, "traceEvents": %b}' % value)
    assert error.value.what == f"Its `traceEvents` is {kind}, not a list of events."
    assert error.value.where == "byte 24"


@pytest.mark.parametrize("other", [b"null", b"[1, [2]]", b'"{\\"ph\\": 1}"'])
def test_what_stands_among_events_hides_none_of_them(other):
    trace = read(THREE.replace(b", {", b", %b, {" % other, 1))
    assert sorted(names_of(trace)) == list("abc")
    ((what, count),) = problems_of(trace).items()
    assert what.endswith("among the events are not shown")
    assert count == 1


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([], "its list of events has no entry"),
        ([{"ph": "M", "name": "process_name", "args": {"name": "a"}}] * 2,
         "its events only name processes and threads"),
        ([{"ph": "X", "name": "a", "dur": 1}],
         "none of its events has a time and a phase that is shown"),
        ([event("a", ph="?")], "none of its events has a time and a phase that is shown"),
    ],
)  # fmt: skip
def test_an_empty_trace_says_why_it_is(events, why):
    assert f"This trace is empty: {why}." in problems_of(read(document(events)))


def test_a_trace_that_ends_before_its_first_event_says_so():
    problems = problems_of(read(b'{"traceEvents": ['))
    assert (
        "This trace is empty: the file ends before its first whole event." in problems
    )


@pytest.mark.parametrize("block", [50, 1 << 18])
@pytest.mark.parametrize(
    "text",
    [
        b'{"traceEvents": [%b], "host_name": "h", "traceEvents": [%b, %b]}',
        b'{"traceEvents": [%b], "host_name": "h"}\n{"traceEvents": [%b, %b]}',
        b"[%b]\n[%b, %b]",
    ],
)
def test_lists_of_events_that_follow_each_other_are_all_read(text, block, monkeypatch):
    monkeypatch.setattr(inflated, "BLOCK", block)
    events = tuple(
        json.dumps(event(name, at)).encode() for at, name in enumerate("abc")
    )
    trace = read(text % events)
    assert names_of(trace) == list("abc")
    ((what, _),) = problems_of(trace).items()
    assert what.startswith("The file has 2 lists of events; all of them are shown.")
    if b"}\n{" not in text and text[:1] == b"{":
        assert trace.facts.host_name == "h"


def test_a_list_inside_something_else_is_not_the_traces_own():
    text = b'{"a": {"traceEvents": []}, "traceEvents": [%b]}' % EVENT
    assert names_of(read(text)) == ["a"]


@pytest.mark.parametrize("after", [b" garbage", b"]", b', "a": ' + b"[" * DEEP])
def test_what_follows_the_events_and_cannot_be_read_is_said(after):
    trace = read(document([event("a")])[:-1] + after)
    assert names_of(trace) == ["a"]
    assert problems_of(trace) == {
        "The part after its events is not valid JSON; it is not shown.": 1
    }


@pytest.mark.parametrize(
    ("content", "what", "remedy"),
    [
        (EVENT.decode().join(["[", "]"]).encode("utf-16"), "UTF-16", "iconv"),
        (document([]).decode().encode("utf-16-be"), "UTF-16", "iconv"),
        (document([]).decode().encode("utf-32"), "UTF-32", "iconv"),
        (gzip.compress(gzip.compress(THREE)), "gzip, twice", "gunzip"),
        (b"\x28\xb5\x2f\xfd\0", "zstd", "unzstd"),
        (EVENT + b"\n" + EVENT, "no list", "Put them into a list"),
    ],
)
def test_other_ways_of_writing_are_named(content, what, remedy):
    with pytest.raises(RefusedError, match=what) as error:
        read(content)
    assert remedy in error.value.remedy


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"),
        (b"\x80\x04K\x01.", "not JSON"),
        (b"hello", "not JSON"),
        (b"<html>hi</html>", "page"),
        (b'{"a": [1, 2]}', "traceEvents"),
        (b'{"traceEvents": 5}', "traceEvents"),
        (b"[[1, 2], [3]]", "memory timeline"),
        (b"[[", "incomplete"),
        (gzip.compress(THREE, mtime=0)[:12], "gzip"),
    ],
)
def test_what_is_no_trace_is_refused_with_a_word_of_what_to_do(content, what):
    with pytest.raises(RefusedError, match=what) as error:
        read(content)
    assert error.value.remedy


def test_odd_types_are_kept_where_they_can_be():
    events = [
        {"ph": "X", "ts": 1, "dur": 1},
        event(name=7, ts=2),
        event(name=None, ts=3, cat=None),
        event("text", ts="4.5", dur="2"),
        event("listed", ts=5, args=[1, 2]),
        event("texts", ts=6, args={"stream": "7", "device": [1]}, cat="kernel"),
        event("huge", ts=7, pid=2**70, tid=-1.0),
        {},
    ]
    trace = read(document(events))
    assert sorted(names_of(trace)) == sorted(
        ["", "7", "", "text", "listed", "texts", "huge"]
    )
    row = names_of(trace).index("text")
    assert int(trace.slices.duration_ns[row]) == 2000
    assert trace.args_of(names_of(trace).index("listed")) == {"args": [1, 2]}


def test_operators_nested_deeply_keep_their_levels():
    num = 1500
    trace = read(document([event(str(i), i, 2 * (num - i)) for i in range(num)]))
    assert trace.tracks[0].num_levels == num
    assert trace.slices.parent.tolist() == [-1, *range(num - 1)]


def test_arguments_nested_deeply_harm_one_event_alone():
    deep = b'"args": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    text = document([event("a", 1), event("b", 2, args={}), event("c", 3)])
    trace = read(text.replace(b'"args": {}', deep))
    assert set("ac") <= set(names_of(trace))


def test_a_day_is_no_time():
    day_us = 24 * 3600 * 10**6
    trace = read(document([event("a", 0, day_us), event("b", day_us, day_us)]))
    assert trace.end_ns == 2 * day_us * 1000


@pytest.mark.parametrize(
    ("spoilt", "what"),
    [
        (lambda b: b[: len(b) // 2], "The file ends inside its gzip stream: it is incomplete."),
        (lambda b: b[: len(b) // 2] + b"\xff" * 9 + b[len(b) // 2 :], "gzip stream is damaged"),
    ],
)  # fmt: skip
def test_a_gzip_stream_that_does_not_end_well_gives_what_there_is(spoilt, what):
    events = [event(f"n{i}", i, args={"x": i * 7919 % 1000}) for i in range(3000)]
    trace = read(spoilt(gzip.compress(document(events))))
    assert 100 < len(trace.slices) < 3000
    assert any(what in said for said in problems_of(trace))


def test_a_gzip_bomb_is_refused(monkeypatch):
    monkeypatch.setattr(inflated, "_MIN_INFLATED", 1 << 22)
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = deflate.compress(b'{"traceEvents": [' + b" " * (1 << 24)) + deflate.flush()
    with pytest.raises(RefusedError, match="no trace does"):
        read(bomb)


def test_more_events_than_are_shown_are_said(monkeypatch):
    monkeypatch.setattr(trace_file, "MAX_EVENTS", 10)
    monkeypatch.setattr(inflated, "BLOCK", 1000)
    trace = read(document([event(str(i), i) for i in range(100)]))
    assert 10 <= len(trace.slices) < 30
    (what,) = problems_of(trace)
    assert what.startswith("Only the first")


def test_markup_stays_text():
    name = "<img src=x onerror=alert(1)>"
    trace = read(document([event(name, args={name: name})], host_name=name))
    assert names_of(trace) == [name]
    assert trace.args_of(0) == {name: name}


@given(st.binary(max_size=300), st.sampled_from([b"", b"[", b'{"traceEvents": [']))
def test_any_bytes_are_a_trace_or_refused(data, start):
    with suppress(ImportFailedError):
        read(start + data)


@given(st.data())
def test_any_damage_leaves_a_trace_or_is_refused(data):
    text = bytearray(document([event(f"n{i}", i, args={"a": [i]}) for i in range(8)]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        what = data.draw(
            st.sampled_from([b"", b'"', b"\\", b"}", b"]", b"{", b"\x00", b",", b"N/A"])
        )
        text[at : at + data.draw(st.integers(0, 3))] = what
    try:
        trace = read(bytes(text))
    except RefusedError:
        return
    for row in range(len(trace.slices)):
        assert isinstance(trace.args_of(row), dict)


def test_arguments_of_a_file_that_is_another_now_are_not_shown(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(document([event(args={"a": 1})]))
    trace = read(path)
    path.write_bytes(document([event(args={"a": 2222})]))
    with pytest.raises(OSError, match="another"):
        trace.args_of(0)


@pytest.mark.usefixtures("no_garbage")
@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_packed_file_is_closed_with_its_trace_even_in_a_circle(tmp_path, monkeypatch):
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: told.append(one.exc_value))
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(document([event(args={"a": 1})])))
    circle: list = [read(path)]
    circle.append(circle)
    gc.collect(0)  # the file, which is younger, is looked at before what holds it
    assert circle[0].args_of(0) == {"a": 1}
    del circle
    gc.collect()
    assert told == []


@pytest.fixture
def importer(tmp_path):
    made = Importer(ColumnCache(tmp_path / "cache"))
    yield made
    made.close()


def test_a_file_is_read_by_a_process_of_its_own_and_kept(importer, tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(document([event("a", args={"x": 1})])))
    trace = read_trace(path, importer)()
    assert names_of(trace) == ["a"]
    assert trace.args_of(0) == {"x": 1}


def test_a_worker_that_needs_too_much_is_stopped(importer, tmp_path, monkeypatch):
    limits = Limits(3 << 20, 60, 600.0)
    monkeypatch.setattr(Limits, "of", lambda *_, **__: limits)
    path = tmp_path / "a.json"
    path.write_bytes(document([event(f"n{i}", i) for i in range(20_000)]))
    with pytest.raises(LimitError, match="more memory") as error:
        read_trace(path, importer)()
    assert "fewer steps" in error.value.remedy
