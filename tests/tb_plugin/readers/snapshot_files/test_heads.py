"""Files are told by their first bytes, with what is plainly wrong with them."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.registry import (
    HEAD_BYTES,
    Verdict,
    fault_of,
    look,
    sniff,
)
from tests.made_snapshots import everything, long_history

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", ""), "snapshots")
FILES = [p for p in sorted(REAL.glob("*")) if p.suffix != ".json"] if REAL.name else []


def test_snapshots_are_told_in_every_form(tmp_path):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for made in (everything(), everything()["segments"], long_history(50)):
            data = pickle.dumps(made, protocol)
            assert sniff(data[:HEAD_BYTES]) == "snapshots"
            packed = gzip.compress(data)
            assert sniff(packed[:HEAD_BYTES]) == "snapshots"
    plain = {"segments": [], "device_traces": [[]]}
    assert sniff(pickle.dumps(plain)) == "snapshots"
    text = json.dumps(plain, indent=1).encode()
    assert sniff(b"\n " + text) == "snapshots"
    assert sniff(gzip.compress(text)) == "snapshots"


@pytest.mark.skipif(not FILES, reason="MEMBOARD_REAL_DATA holds no snapshots")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_recorded_file_is_told_and_has_no_fault(path):
    assert look(str(path)) == "snapshots"
    assert fault_of(str(path)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"segments": [{"start": 0.0, "end": 1.5, "text": "speech"}], "language": "en"},
        {"state_dict": {"blocks.0.weight": np.zeros(3)}, "step": 3},
        list(range(100)),
        b"segment_type",
    ],
)
def test_other_pickles_are_not_taken_for_snapshots(other):
    assert sniff(pickle.dumps(other)) == "other"


@pytest.mark.parametrize(
    "text", [b"[1]", b'{"segments": [], "blocks": 3}', b"device_traces segments"]
)
def test_other_json_is_not_taken_for_snapshots(text):
    assert sniff(text) == "other"


def test_what_holds_nothing_yet_is_unclear(tmp_path):
    assert sniff(b"") == "unclear"
    assert look(str(tmp_path / "missing.pickle")) == "unclear"


def test_what_is_cut_off_in_its_first_bytes_is_a_stub():
    whole = pickle.dumps(long_history(50))
    verdicts = [sniff(whole[:length]) for length in range(1, 400)]
    first = verdicts.index("snapshots")
    assert set(verdicts[:first]) == {"stub"}
    assert set(verdicts[first:]) == {"snapshots"}
    assert sniff(gzip.compress(b"x" * 100)[:11]) == "stub"
    assert sniff(pickle.dumps([1, 2])) == "other", "it has its end"
    assert sniff(b"\x80\x04" + bytes(1000)) == "other", "words come earlier"
    assert sniff(b"{") == "unfinished", "JSON is everywhere"


def test_a_bomb_is_not_inflated(tmp_path):
    path = tmp_path / "memory.pickle.gz"
    path.write_bytes(gzip.compress(bytes(200 << 20)))
    assert look(str(path)) == "other"


@given(st.binary(max_size=300))
def test_any_bytes_get_a_verdict(data):
    for head in (data, b"\x1f\x8b" + data):
        assert sniff(head) in get_args(Verdict)


def test_what_is_plainly_wrong_is_named(tmp_path):
    good = pickle.dumps(long_history(2000))
    cases = {
        "empty": (b"", "empty"),
        "cut": (good[: len(good) // 2] + b"\0", "has no end"),
        "cut early": (good[:20], "has no end"),
        "cut and packed": (gzip.compress(good)[:11], "was cut off"),
        "other": (pickle.dumps({"a": 1}), "neither a memory snapshot nor a trace"),
        "good": (good, ""),
        "packed": (gzip.compress(good), ""),
    }
    for name, (data, expected) in cases.items():
        path = tmp_path / f"{name}_snapshot.pickle"
        path.write_bytes(data)
        fault = fault_of(str(path))
        assert (fault is None) == (expected == "")
        if fault is not None:
            assert expected in fault[0]
            assert fault[1], "it says what to do"
    fault = fault_of(str(tmp_path / "missing.pickle"))
    assert fault is not None
    assert "cannot be read" in fault[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_hold_us_up(tmp_path):
    path = tmp_path / "memory_snapshot.pickle"
    os.mkfifo(path)
    assert look(str(path)) == "unclear"
