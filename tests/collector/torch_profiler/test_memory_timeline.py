"""Memory by category: torch's own picture as an oracle."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch

from memboard.collector.core.source import Unavailable
from memboard.collector.format.memory import CATEGORIES as KNOWN
from memboard.collector.torch_profiler.digest import memory_timeline
from memboard.collector.torch_profiler.digest.memory_timeline import (
    CATEGORIES,
    CATEGORY_OF,
    DeviceTimeline,
    memory_timelines,
    thinned,
    timeline_csv,
    timeline_table,
)
from tests.collector.torch_profiler.training import Training


@pytest.fixture(scope="module")
def profile():
    training = Training()
    training.step()
    made = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        profile_memory=True,
        record_shapes=True,
        with_stack=True,
    )
    with made:
        for _ in range(3):
            training.step()
    return made


def test_the_sums_are_those_of_torchs_own_picture(profile, tmp_path):
    (timeline,) = memory_timelines(profile, 1)
    path = tmp_path / "timeline.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile.export_memory_timeline(str(path), "cpu")
    times_us, sizes = json.loads(path.read_text())
    theirs = np.array(sizes)[:, 1:]
    assert timeline.device == "cpu"
    # torch's moments are microseconds, of which the last state stands.
    ours_us = np.array([int(moment / 1000) for moment in timeline.time_ns.tolist()])
    last = [
        np.flatnonzero(ours_us == moment)[-1] for moment in sorted(set(times_us[1:]))
    ]
    total = timeline.total[last]
    by_moment = dict(zip(times_us, theirs.sum(axis=1).tolist(), strict=True))
    assert total.tolist() == [by_moment[moment] for moment in sorted(set(times_us[1:]))]
    order = list(memory_timeline.CATEGORY_OF)
    assert order[:4] == ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY"]
    for name, column in (
        ("param", 0),
        ("optimizer", 1),
        ("activation", 4),
        ("grad", 5),
    ):
        held = timeline.held[last, CATEGORIES.index(name)]
        assert held.max() == theirs[:, column].max(), name


def test_the_table_adds_up_and_speaks_our_words(profile):
    timelines = memory_timelines(profile, 1)
    table = timeline_table(timelines)
    assert set(CATEGORIES) <= set(KNOWN)
    assert set(CATEGORY_OF.values()) < set(CATEGORIES)
    assert list(table) == ["time_ns", "device", *(f"{c}_bytes" for c in CATEGORIES)]
    total = sum(np.asarray(table[f"{name}_bytes"]) for name in CATEGORIES)
    assert total.tolist() == timelines[0].total.tolist()
    assert (np.diff(table["time_ns"]) > 0).all()
    assert timeline_table([])["device"] == ()
    assert timeline_csv([]) == ",".join(table) + "\n"


def test_what_would_take_minutes_is_absent_with_a_reason(profile):
    with pytest.raises(Unavailable, match="takes too long") as caught:
        memory_timelines(profile, 10**9)
    assert "fewer steps" in caught.value.remedy


def test_torch_may_answer_anything(monkeypatch, profile):
    class Odd:
        def __init__(self, results):
            raise KeyError("another torch")

    import torch.profiler._memory_profiler as analysis

    monkeypatch.setattr(analysis, "MemoryProfile", Odd)
    with pytest.raises(Unavailable, match="KeyError: 'another torch'"):
        memory_timelines(profile, 1)


def made(num=5, device="cuda:0", most=3 * 2**30):
    held = np.zeros((num, len(CATEGORIES)), np.int64)
    held[:, 0] = np.linspace(0, most // 3, num)
    held[:, 3] = np.linspace(0, most - most // 3, num)
    time_ns = 10**18 + np.arange(num, dtype=np.int64) * 10**6
    return DeviceTimeline(device, time_ns, held)


def test_thinning_keeps_the_peak_and_both_ends():
    timeline = made(10_000)
    timeline.held[4321, 5] = 2**40
    few = thinned(timeline, 100)
    assert len(few.time_ns) == 100
    assert few.total.max() == timeline.total.max()
    assert few.time_ns[0] == timeline.time_ns[0]
    assert few.time_ns[-1] == timeline.time_ns[-1]
    assert (np.diff(few.time_ns) > 0).all()
    assert thinned(timeline, 10_000) is timeline
