"""Devices step by step: against every nanosecond counted, and against the whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.time.device_use import use_at
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.traces_builder import MadeTrace

KERNELS = st.lists(
    st.tuples(
        st.integers(0, 100),
        st.integers(0, 40),
        st.sampled_from((0.0, 0.3, 0.8, 2.5, np.inf, np.nan)),
        st.sampled_from((0.0, 12.5, 50.0, 100.0, np.nan)),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)
"""Start, duration, blocks per SM, occupancy, whether it uses tensor cores."""


def traced(steps, kernels):
    """Steps (start, duration) of the host; kernels each on a stream of its own.

    Without launches, so that steps last as they are marked.
    """
    made = MadeTrace()
    for number, (start, took) in enumerate(steps):
        made.slice("main", f"ProfilerStep#{number + 7}", start, took, "user_annotation")
    for at, (start, took, _, _, on_cores) in enumerate(kernels):
        stream = f"stream {at}"
        made.track(stream, kind="device", device=0, stream=at)
        name = "volta_s884gemm" if on_cores else "volta_sgemm"
        made.slice(stream, name, start, took, "kernel", correlation=at + 1)
    trace = made.build()
    work = trace.device_work
    order = np.argsort(work.correlation)
    blocks, occupancy = np.empty(len(order)), np.empty(len(order))
    blocks[order] = [one[2] for one in kernels]
    occupancy[order] = [one[3] for one in kernels]
    return replace(
        trace,
        device_work=replace(work, blocks_per_sm=blocks, occupancy_pct=occupancy),
    )


def by_step(trace):
    (found,) = TraceProfile(trace).device_steps
    return found


def counted(kernels, start, end):
    """The same figures, nanosecond by nanosecond."""
    moments = range(start, end)
    running = [[k for k in kernels if k[0] <= t < k[0] + k[1]] for t in moments]
    every = [one for those in running for one in those]
    said = [one[3] / 100 for one in every if not np.isnan(one[3])]
    filled = [
        min(1.0, sum(one[2] for one in those if not np.isnan(one[2])))
        for those in running
    ]
    knows_blocks = any(not np.isnan(one[2]) for one in kernels)
    nothing = float("nan")
    return {
        "num_kernels": sum(start <= one[0] < end for one in kernels),
        "kernel_ns": len(every),
        "busy_ns": sum(bool(those) for those in running),
        "utilization": np.mean([bool(those) for those in running]),
        "sm_efficiency": np.mean(filled) if knows_blocks else nothing,
        "occupancy": np.mean(said) if said else nothing,
        "tensor_core_share": (np.mean([one[4] for one in every]) if every else nothing),
    }


@given(KERNELS)
def test_each_step_has_what_a_count_of_its_nanoseconds_gives(kernels):
    steps = ((5, 20), (25, 30), (60, 50))
    found = by_step(traced(steps, kernels))
    for index, (start, took) in enumerate(steps):
        for name, value in counted(kernels, start, start + took).items():
            own = getattr(found, name)[index]
            assert own == pytest.approx(value, abs=1e-9, nan_ok=True), name
        assert found.span_ns[index] == took


@given(KERNELS, st.lists(st.integers(1, 99), min_size=1, max_size=6, unique=True))
def test_steps_weighted_are_the_whole(kernels, cuts):
    edges = [-1, *sorted(cuts), 150]
    steps = [(a, b - a) for a, b in pairwise(edges)]
    trace = traced(steps, kernels)
    found = by_step(trace)
    (whole,) = TraceProfile(trace).devices
    assert found.num_kernels.sum() == whole.num_kernels
    assert found.kernel_ns.sum() == whole.kernel_ns
    assert found.busy_ns.sum() == whole.busy_ns
    assert found.span_ns.sum() == whole.span_ns

    def mean(values, weights) -> float | None:
        weights = np.where(np.isnan(values), 0, weights)
        total = weights.sum()
        return float(np.nansum(values * weights) / total) if total else None

    about = pytest.approx
    assert mean(found.utilization, found.span_ns) == about(whole.utilization)
    assert mean(found.sm_efficiency, found.span_ns) == about(whole.sm_efficiency)
    share = mean(found.tensor_core_share, found.kernel_ns)
    assert share == about(whole.tensor_core_share)
    if not any(np.isnan(one[3]) for one in kernels):
        assert mean(found.occupancy, found.kernel_ns) == about(whole.occupancy)


def test_a_step_in_which_nothing_ran_has_no_mean_of_kernels():
    nan = float("nan")
    trace = traced([(0, 100), (100, 100)], [(10, 20, nan, 50.0, False)])
    found = by_step(trace)
    assert use_at(found, 1).utilization == 0
    for word in ("sm_efficiency", "occupancy", "tensor_core_share"):
        assert getattr(use_at(found, 1), word) is None
    assert use_at(found, 0).sm_efficiency is None


def test_steps_of_very_many_kernels_are_exact():
    """Sums of times that are far beyond 2^63 together."""
    day = 86_400 * 10**9
    kernels = [(day - 1000 + at, 500, 0.5, 50.0, False) for at in range(300)]
    found = by_step(traced([(0, day), (day, day)], kernels))
    assert found.kernel_ns.tolist() == [300 * 500, 0]
    assert found.busy_ns.tolist() == [799, 0]
