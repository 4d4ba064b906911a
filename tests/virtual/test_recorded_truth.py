"""A real GPU's allocator against the virtual GPU's, event by event.

The recording is NiuHuangxiaozi's of three training steps with mixed precision at 200 tokens
(torch 2.6.0, capability 8.6); `recorded_training` has its operations. With another torch
the same training makes other temporaries, so only the peak is the same to the byte.
"""

from __future__ import annotations

import os
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests import programs
from tests.virtual.running import ROOT, python

RECORDED = Path(
    os.environ.get("MEMBOARD_REAL_DATA", "missing"),
    "snapshots",
    "NiuHuangxiaozi+assignment2-systems__cs336_systems__profile_memory__"
    "forward_and_backward_memory_snapshot_200_mixed_precision.pickle",
)
IN_ORDER = 12_920
"""Of 12,976 events; the others empty autocast's cache at its end, in the order of a table of
addresses."""
RESERVED = 1150 << 20
TRAINING = """
import torch
from tests.virtual import recorded_training
recorded_training.main()
print(torch.__version__)
"""

needs_recording = pytest.mark.skipif(
    not RECORDED.is_file(),
    reason="MEMBOARD_REAL_DATA does not name the recorded inputs",
)


def performed(folder: Path) -> tuple[str, dict[str, Any]]:
    """torch's version and its snapshot of the same training on a virtual GPU."""
    variables = environment(parse_device("24GiB,8.6"), python=python())
    variables["PYTHONPATH"] = str(ROOT)
    out = folder / "snapshot.pickle"
    words = (out, "200", "--mixed")
    done = programs.run(TRAINING, *words, env=variables, python=python())
    return done.stdout.split()[-1], pickle.loads(out.read_bytes())


def events(snapshot: dict[str, Any]) -> list[tuple[str, int]]:
    return [
        (event["action"], event["size"])
        for event in snapshot["device_traces"][0]
        if event["action"] != "snapshot"
    ]


def peak_bytes(events: list[tuple[str, int]]) -> int:
    live = peak = 0
    for action, size in events:
        live += {"alloc": size, "free_completed": -size}.get(action, 0)
        peak = max(peak, live)
    return peak


def reserved_bytes(snapshot: dict[str, Any]) -> int:
    return sum(segment["total_size"] for segment in snapshot["segments"])


@needs_recording
def test_a_training_allocates_as_it_did_on_a_real_gpu(tmp_path):
    version, snapshot = performed(tmp_path)
    recorded = pickle.loads(RECORDED.read_bytes())
    real, ours = events(recorded), events(snapshot)
    assert peak_bytes(ours) == peak_bytes(real)
    assert reserved_bytes(recorded) == RESERVED
    if version.startswith("2.6."):
        assert ours[:IN_ORDER] == real[:IN_ORDER]
        assert sorted(ours[IN_ORDER:]) == sorted(real[IN_ORDER:])
        assert reserved_bytes(snapshot) == RESERVED
    else:
        alike = (Counter(real) & Counter(ours)).total()
        assert alike > 0.998 * len(real)
        assert abs(reserved_bytes(snapshot) - RESERVED) < 0.06 * RESERVED
