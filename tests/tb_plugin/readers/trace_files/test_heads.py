"""A file of any name is a trace by its own keys, not by those of objects inside it."""

from __future__ import annotations

import json

import pytest

from memboard.tb_plugin.formats.registry import sniff

EVENTS = [{"ph": "X", "pid": 1, "ts": 0}]
TORCH = {"schemaVersion": 1, "distributedInfo": {"rank": 0}}


@pytest.mark.parametrize(
    "content",
    [
        {"traceEvents": EVENTS},
        {"note": 'a "{" in a text', "traceEvents": EVENTS},
        TORCH,
        EVENTS,
    ],
)
def test_a_trace_is_told_by_its_first_bytes(content):
    assert sniff(json.dumps(content).encode()) == "traces"


@pytest.mark.parametrize(
    "content",
    [
        {"expected": {**TORCH, "traceEvents": EVENTS}},
        {"schemaVersion": 1, "device": {"distributedInfo": {}}},
        {"keys": ["schemaVersion", "distributedInfo", "traceEvents"]},
        [{"ph": "X"}],
    ],
)
def test_a_report_about_traces_is_none(content):
    assert sniff(json.dumps(content).encode()) == "other"
