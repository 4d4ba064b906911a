"""Idle time and the critical path give the same time to the host, the launch and neither."""

from __future__ import annotations

import json
import os
from bisect import bisect_left, bisect_right
from collections import Counter
from pathlib import Path

import pytest

from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.waiting.critical_path import critical_path
from memboard.tb_plugin.analysis.trace.waiting.work_starts import Cause
from tests.kineto_files import KinetoFile
from tests.tb_plugin.analysis.made_devices import MadeDevice
from tests.tb_plugin.readers.traces.reading import read

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "/nowhere"))
FILES = sorted(
    path
    for pattern in ("kineto/*/*.pt.trace.json*", "../traces_2026_11/*/*.json*")
    for path in REAL.glob(pattern)
    if path.name != "expected.json"
)
PART_OF = {
    Cause.LAUNCH: "launch",
    Cause.GAP: "launch",
    Cause.UNKNOWN: "not explained",
    Cause.KERNEL: "device",
    Cause.COPY: "device",
}
"""All else is the host's. Whether 20 us are a launch or a gap depends on the stream."""


def profile_of(made):
    content = {**made.file.head, "traceEvents": made.file.events}
    return TraceProfile(read(json.dumps(content).encode()))


def assert_agreement(profile, step):
    """Of each idle time that ends with work on the path; how many there were."""
    splits, works = profile.work_starts.on_device, profile.work_starts
    begin = int(profile.steps.start_ns[step])
    path = critical_path(profile, step)
    on_path = {piece.row for piece in path}
    begins = [piece.start_ns for piece in path]
    compared = 0
    for work in splits.has_gap.nonzero()[0].tolist():
        dry, start = int(splits.dry_ns[work]), int(splits.start_ns[work])
        if int(works.row[work]) not in on_path or dry < begin:
            continue
        idle = Counter(
            {
                "host": int(splits.host_ns()[work]),
                "launch": int(splits.launch_ns()[work] + splits.gap_ns()[work]),
                "not explained": int(splits.unknown_ns()[work]),
            }
        )
        parts = Counter()
        first = max(bisect_right(begins, dry) - 1, 0)
        for piece in path[first : bisect_left(begins, start)]:
            inside = min(piece.end_ns, start) - max(piece.start_ns, dry)
            if inside > 0:
                parts[PART_OF.get(piece.cause, "host")] += inside
        assert parts == +idle
        compared += 1
    return compared


def test_work_leads_to_what_the_recorded_event_made_it_wait_for():
    compared = 0
    for seed in range(12):
        made = MadeDevice(seed, records=True)
        profile = profile_of(made)
        works = profile.work_starts
        waits = {
            int(works.start_ns[work]): int(works.start_ns[producer])
            for work, producer in enumerate(works.awaited.tolist())
            if producer >= 0
        }
        for start, producer in made.waits.items():
            assert waits[start * 1_000] == producer.start * 1_000
            compared += 1
        assert assert_agreement(profile, 0) > 0
    assert compared > 20


@pytest.mark.parametrize(("stream", "waits"), [(7, True), (20, False)])
def test_a_call_that_waits_for_a_stream_leads_to_its_work(stream, waits):
    made = KinetoFile()
    made.step(1, 0, 200)
    made.kernel("other", 5, 10, 90, stream=20)
    made.kernel("own", 8, 15, 60)
    made.slice("cudaStreamSynchronize", 12, 68, "cuda_runtime", correlation=99)
    sync = {"device": 0, "correlation": 99}
    made.device_slice("Stream Sync", 12, 68, "cuda_sync", stream=7, **sync)
    if stream == 20:
        # That stream had nothing to wait for: its work ended later than the call.
        made.events[-1]["args"]["stream"] = 20
    profile = TraceProfile(read(json.dumps({"traceEvents": made.events}).encode()))
    names = [profile.trace.name_of(piece.row) for piece in critical_path(profile, 0)]
    assert ("own" in names) == waits
    assert "other" not in names


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_they_agree_on_made_devices(seed, holds):
    profile = profile_of(MadeDevice(seed, holds=holds))
    assert assert_agreement(profile, 0) > 0


@pytest.mark.parametrize("seed", range(12))
def test_the_path_of_a_made_device_leaves_nothing_unexplained(seed):
    made = MadeDevice(seed, holds=False)
    path = critical_path(profile_of(made), 0)
    assert sum(piece.end_ns - piece.start_ns for piece in path) == made.took * 1_000
    assert Cause.UNKNOWN not in {piece.cause for piece in path}


@pytest.mark.skipif(not FILES, reason="recorded by others: not in the repository")
@pytest.mark.parametrize(
    "file", FILES, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_they_agree_on_what_others_recorded(file):
    profile = TraceProfile(read(file))
    if len(set(profile.work_starts.device.tolist())) > 1:
        pytest.skip("a device may wait for another one")
    for step in range(len(profile.steps)):
        assert_agreement(profile, step)
