"""Merged traces read back, and held against the Chrome trace format.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from memboard.tb_plugin.merging.discovery import inputs_of_files
from memboard.tb_plugin.merging.merged_trace import merged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memboard.tb_plugin.merging.inputs import Inputs

PHASES = frozenset("XBEiICsftMbneNODPSTpFRcav(),=")
SCOPES = frozenset("gpt")


def merge(inputs: Inputs) -> dict[str, Any]:
    """The merged trace, valid by the format."""
    text = b"".join(merged(inputs))
    trace = json.loads(text, parse_constant=_refuse)
    check(trace)
    return trace


def merge_files(*paths: Path, **options: Any) -> dict[str, Any]:
    return merge(inputs_of_files(paths, **options))


def events(trace: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def ns_of(trace: dict[str, Any], event: dict[str, Any]) -> int:
    """When an event was, in nanoseconds since 1970."""
    return trace["baseTimeNanoseconds"] + round(event["ts"] * 1000)


def process_names(trace: dict[str, Any]) -> dict[int, str]:
    named = [e for e in events(trace, "M") if e["name"] == "process_name"]
    return {event["pid"]: event["args"]["name"] for event in named}


def rank_of(trace: dict[str, Any], event: dict[str, Any]) -> int:
    """The rank whose process an event lies in."""
    words = process_names(trace)[event["pid"]].split()
    assert words[0] == "Rank"
    return int(words[1])


def check(trace: dict[str, Any]) -> None:
    """Hold a trace against the format, field by field."""
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert isinstance(trace["metadata"], dict)
    pids, names = set(), Counter()
    for event in trace["traceEvents"]:
        phase = event["ph"]
        assert phase in PHASES, event
        assert type(event["pid"]) is int, event
        assert type(event["tid"]) is int, event
        if phase == "M":
            assert isinstance(event["args"], dict), event
            if event["name"] in ("process_name", "process_sort_index"):
                names[event["name"], event["pid"]] += 1
            continue
        pids.add(event["pid"])
        if "ts" in event:
            assert math.isfinite(event["ts"]), event
        if phase == "X":
            assert "ts" in event, event
        if phase in "sft":
            assert "id" in event, event
        if phase in "iI":
            assert event.get("s", "t") in SCOPES, event
    for pid in pids:
        assert names["process_name", pid] == 1
        assert names["process_sort_index", pid] == 1
    indexes = [
        event["args"]["sort_index"]
        for event in trace["traceEvents"]
        if event["ph"] == "M" and event["name"] == "process_sort_index"
    ]
    assert len(set(indexes)) == len(indexes)


def write_trace(path: Path, root: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(root), encoding="utf-8")
    return path


def torch_trace(
    path: Path,
    found: Sequence[dict[str, Any]],
    *,
    rank: int | None = None,
    base_ns: int = 1_790_857_026 * 10**9,
    **top: Any,
) -> Path:
    """As torch 2.13 lays it out."""
    root: dict[str, Any] = {"schemaVersion": 1, **top}
    if rank is not None:
        root["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": 2}
    root |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    return write_trace(
        path, {**root, "traceEvents": list(found), "traceName": path.name}
    )


def slice_of(name: str, ts: float, **fields: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": "cpu_op", "name": name, "pid": 12, "tid": 12,
        "ts": ts, "dur": 5.0, **fields,
    }  # fmt: skip


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
