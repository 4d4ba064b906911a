"""torch's own trackers behind one face, as the tests' oracle.

Written against torch 2.13; `VERSIONS` are those whose trackers were read and behave the
same. Another torch skips the comparisons instead of comparing with something unknown.
"""

from __future__ import annotations

import pytest
import torch

VERSIONS = ("2.13", "2.14", "2.15")


def require():
    """Skip where torch's trackers are not the ones that these tests know."""
    if not torch.__version__.startswith(VERSIONS):
        pytest.skip(f"torch {torch.__version__}: its trackers are not known here")


def fsdp_tracker(model, optimizer, inputs=()):
    """torch's tracker of FSDP2 models."""
    require()
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker

    tracker = FSDPMemTracker(model, optimizer)
    tracker.track_inputs(tuple(inputs))
    return tracker


def plain_tracker(model, optimizer, inputs=()):
    """torch's tracker of any model."""
    require()
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker = MemTracker()
    tracker.kept = model  # it knows modules weakly
    tracker.track_external(model, optimizer, *inputs)
    return tracker


def states(tracker):
    """What it saw at every module state but the peaks, as `reduction.ours`."""
    return {
        (stats.mod_fqn, state.value): [_snapshot(s) for s in snapshots]
        for stats in tracker.memory_tracking.values()
        for state, snapshots in stats.snapshots.items()
        if "Peak" not in state.value
    }


def peaks(tracker):
    """The highest totals of modules' forward and backward, by call."""
    return {
        (stats.mod_fqn, state.value): [
            s[torch.device("cpu")]["Total"] for s in snapshots
        ]
        for stats in tracker.memory_tracking.values()
        for state, snapshots in stats.snapshots.items()
        if "Peak" in state.value
    }


def peak_snapshot(tracker):
    """{device: {category: bytes}} at the highest moment of all."""
    return _snapshot(tracker.get_tracker_snapshot("peak"))


def _snapshot(snapshot):
    return {
        str(device): {
            str(getattr(name, "value", name)): size
            for name, size in sizes.items()
            if size and name != "Total"
        }
        for device, sizes in snapshot.items()
        if sizes["Total"]
    }
