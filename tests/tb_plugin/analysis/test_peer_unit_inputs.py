"""The inputs of torch-tb-profiler's own tests, as far as they were recorded: ours says what
it says, but for what each test names, where it is wrong or cannot say anything."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from memboard.tb_plugin.analysis.arrays import NOTHING
from memboard.tb_plugin.analysis.ranks.distributed import compared
from memboard.tb_plugin.analysis.time.device_use import filled_levels
from memboard.tb_plugin.analysis.time.intervals import total_ns
from memboard.tb_plugin.analysis.trace.timeline.counters import utilization_buckets
from memboard.tb_plugin.analysis.trace_memory.pictures import memory_curve
from tests.tb_plugin.analysis.test_profile_conformance import (
    COSTS,
    OVERLAP,
    REAL,
    expected,
    needs_real,
    peer_of,
    profile_of,
)
from tests.traces_builder import rest_ns

pytestmark = needs_real

US = 1_000
UNDERFLOWS = {
    # Nothing on the host is an operator: the peer's only step lasts -2^64 us.
    "unit/TestDistributed.test_distributed_nccl_user_annotation_has_communication",
    "unit/TestMemoryCurve.test_memory_curve_step_plot",
}
GLOO_GPU = "unit/TestDistributed.test_distributed_gloo_gpu"


def units() -> list[tuple[str, str]]:
    found = sorted(path.parent for path in REAL.glob("unit/*/expected.json"))
    return [
        (f"unit/{folder.name}", name)
        for folder in found
        for name in sorted(expected(f"unit/{folder.name}")["independent"])
    ]


def told_of(folder: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the peer answers, and what it computed before it rounded."""
    (key,) = [
        key
        for key in expected(folder)["peer_head_raw"]
        if name.startswith(f"{key.split('|')[0]}.")
    ]
    return peer_of(folder)[name], expected(folder)["peer_head_raw"][key]


def test_fourteen_of_its_inputs_were_recorded():
    assert len({folder for folder, _ in units()}) == 14


@pytest.mark.parametrize(("folder", "name"), units())
def test_steps_and_their_parts_are_the_peers(folder, name):
    told, _ = told_of(folder, name)
    inner, profile = told["internal"], profile_of(folder, name)
    assert [str(number) for number in profile.steps.number] == inner["steps_names"]
    parts = profile.parts
    if folder in UNDERFLOWS:
        assert np.array(inner[COSTS])[0, -1] < -(2**60)
        (start,), (end,) = profile.steps.start_ns, profile.steps.end_ns
        assert parts.parts_ns.sum() == end - start > 0
        return
    costs = np.array(inner[COSTS])[:, :-1]
    if folder == "unit/TestDataPipe.test_datapipe":
        # All of a step is its loader's, and the peer's rest all of it again.
        assert (costs[0, 5], costs[0, 7]) == (23, 23)
        costs[0, 7] = 0
    assert (parts.parts_ns / US).tolist() == costs.tolist()
    beside = (parts.computation_ns, parts.communication_ns, parts.overlap_ns)
    beside = np.stack((*beside, rest_ns(parts)), axis=1)
    assert (beside / US).tolist() == inner[OVERLAP]


@pytest.mark.parametrize(("folder", "name"), units())
def test_the_use_of_devices_is_the_peers(folder, name):
    _, raw = told_of(folder, name)
    profile = profile_of(folder, name)
    assert {str(use.device) for use in profile.devices} == set(raw["gpu_utilization"])
    for use in profile.devices:
        key = str(use.device)
        assert use.utilization == pytest.approx(raw["gpu_utilization"][key])
        for ours, word, scale in (
            (use.sm_efficiency, "avg_est_sm_efficiency", 1),
            # The trace's per cent, which the peer passes on and calls a share.
            (use.occupancy, "avg_est_occupancy", 100),
        ):
            if raw[word][key] is None:
                assert ours is None
            else:
                assert ours * scale == pytest.approx(raw[word][key])
        # Of `kernel1` nothing is known.
        is_known = folder != "unit/TestProfiler.test_group_by_kernel_columns"
        assert use.tensor_core_known_share == is_known
        # NaN where no operator launched a kernel: the kernels are there all the same.
        ratio = raw["tc_ratio"][key] or 0
        assert use.tensor_core_share == (ratio if is_known else None)


@pytest.mark.parametrize(("folder", "name"), units())
def test_the_use_of_devices_over_time_is_the_peers(folder, name):
    _, raw = told_of(folder, name)
    profile = profile_of(folder, name)
    trace, work = profile.trace, profile.trace.device_work
    every = trace.slices.ranges(work.row)
    is_kernel = np.isin(work.row, kernel_rows(profile))
    for key, told in raw["gpu_util_buckets"].items():
        chosen = is_kernel & (work.device == int(key))
        whole = trace.start_ns, trace.end_ns
        edges, share = utilization_buckets(every[chosen], whole, 100)
        origin = trace.base_ns // US
        ours = [
            [int(edge) // US + origin, float(one)]
            for edge, one in zip(edges, [*share, 0.0], strict=True)
        ]
        assert ours == pytest.approx(np.array(told))
        levels = raw["sm_efficiency_ranges"][key]
        blocks = work.blocks_per_sm[chosen]
        if not levels:
            assert np.isnan(blocks).all()
            continue
        times, level = filled_levels(every[chosen], blocks)
        ours = [
            [start / US + origin, end / US + origin, float(one)]
            for start, end, one in zip(times, times[1:], level, strict=False)
        ]
        assert np.array(ours) == pytest.approx(np.array(levels))


def kernel_rows(profile) -> Any:
    rows = profile.trace.device_work.row
    categories = profile.trace.slices.category[rows]
    texts = [profile.trace.strings[int(one)].lower() for one in categories]
    return rows[[text == "kernel" for text in texts]]


@pytest.mark.parametrize(("folder", "name"), units())
def test_operators_are_the_peers(folder, name):
    told, _ = told_of(folder, name)
    profile = profile_of(folder, name)
    table, strings = profile.operators, profile.trace.strings
    ours = {
        strings[int(table.name[at])]: (
            int(table.num_calls[at]),
            table.host_self_ns[at] / US,
            table.host_total_ns[at] / US,
            table.device_self_ns[at] / US,
            table.device_total_ns[at] / US,
        )
        for at in range(len(table))
    }
    columns = ("self_duration", "total_duration")
    theirs = {
        row["name"]: (
            row["calls"],
            *(row[f"host_{one}"] for one in columns),
            *(row.get(f"device_{one}", 0) for one in columns),
        )
        for row in told["operation/table?group_by=Operation"]["data"]
    }
    if folder == GLOO_GPU:
        # A kernel that names its operator, without the call that launched it.
        device = theirs["aten::add_"][1]
        assert theirs["aten::add_"] == (1, device, device, 0, 0)
        took = told["kernel/table?group_by=Kernel"]["data"]["rows"][0][3]
        theirs["aten::add_"] = (1, device, device, took, took)
    if folder == "unit/TestProfiler.test_group_by_kernel_columns":
        # Launched on another thread meanwhile: that takes nothing of the operator's time.
        assert theirs["op1"][1] == 60 - 3 * 5
        theirs["op1"] = (1, 60, *theirs["op1"][2:])
    assert ours == theirs


@pytest.mark.parametrize(("folder", "name"), units())
def test_kernels_are_the_peers(folder, name):
    told, _ = told_of(folder, name)
    profile = profile_of(folder, name)
    strings = profile.trace.strings

    def rows_of(table, *, with_operator: bool) -> Counter:
        return Counter(
            (
                strings[int(table.name[at])],
                *(
                    (
                        strings[int(table.operator[at])]
                        if table.operator[at] >= 0
                        else "",
                    )
                    if with_operator
                    else ()
                ),
                "Yes" if table.uses_tensor_cores[at] > 0 else "No",
                int(table.num_calls[at]),
                *(
                    round(float(column[at]) / US)
                    for column in (table.total_ns, table.max_ns, table.min_ns)
                ),
            )
            for at in range(len(table))
        )

    by_name = told.get("kernel/table?group_by=Kernel")
    listed = (by_name or {"data": {"rows": []}})["data"]["rows"]
    wanted = Counter((row[0], row[1], *row[2:4], row[5], row[6]) for row in listed)
    assert rows_of(profile.kernels, with_operator=False) == wanted
    by_operator = told.get("kernel/table?group_by=KernelNameAndOpName")
    if not by_operator or folder in (GLOO_GPU, *LOST_KERNELS):
        return
    wanted = Counter(
        (
            row[0],
            # Of none: the peer's root. A step is no operator: the call has the row.
            {"CallTreeRoot": "", "ProfilerStep#1": "cudaLaunchKernel"}.get(
                row[1], row[1]
            ),
            row[6],
            row[8],
            row[9],
            row[11],
            row[12],
        )
        for row in by_operator["data"]["rows"]
    )
    assert rows_of(profile.kernels_by_properties, with_operator=True) == wanted


LOST_KERNELS = {
    # Its table by operator is empty where the runtime's call belongs to none.
    "unit/TestProfiler.test_top_level_runtime",
}


def test_the_curve_and_the_lives_of_memory_are_the_peers():
    folder = "unit/TestMemoryCurve.test_memory_curve_step_plot"
    ((_, name),) = [one for one in units() if one[0] == folder]
    _, raw = told_of(folder, name)
    profile = profile_of(folder, name)
    trace, memory, lives = profile.trace, profile.trace.memory, profile.lives
    first = int(memory.time_ns[0])
    for word, kind in (("CPU", 0), ("GPU0", 1)):
        events = np.flatnonzero(memory.device_type == kind)
        curve = memory_curve(memory, events, (trace.start_ns, trace.end_ns), 1000)
        ours = [
            [(int(at) - first) / US, allocated, reserved]
            for at, allocated, reserved in zip(
                curve.time_ns, curve.allocated_bytes, curve.reserved_bytes, strict=True
            )
        ]
        assert ours == raw["memory_curve_us_B_nostep"][word]
        own = np.flatnonzero(memory.device_type[lives.event] == kind)
        found = Counter(
            (
                float(lives.num_bytes[at]),
                time_of(memory, lives.born[at], first),
                time_of(memory, lives.gone[at], first),
            )
            for at in own.tolist()
        )
        wanted = Counter(
            (size, start, end)
            for _, size, start, end, _ in raw["memory_events_us_B"][word]
        )
        assert found == wanted


def time_of(memory, event: int, first: int) -> float | None:
    if event in (NOTHING, len(memory)):
        return None
    return (int(memory.time_ns[event]) - first) / US


def test_gloo_beside_a_gpu_is_the_peers():
    names = [name for folder, name in units() if folder == GLOO_GPU]
    profiles = [profile_of(GLOO_GPU, name) for name in names]
    ranks = {rank: one.collectives for rank, one in enumerate(profiles)}
    rows = {(row.rank, row.kind): row for row in compared(ranks).rows}
    told = expected(GLOO_GPU)["peer_head"]["profiles"]["All|1"]
    seen = 0
    for worker, table in told["distributed/commops"]["data"].items():
        for what, calls, size, _, latency, _, _, _ in table["rows"]:
            row = rows[int(worker[-1]), what.removeprefix("gloo:")]
            assert (row.num_calls, row.num_bytes) == (calls, size)
            # Two threads' at once: the peer counts such time once, ours is of calls.
            own = ranks[row.rank]
            chosen = np.array([kind == row.kind for kind in own.kind])
            ends = own.start_ns + own.duration_ns
            ranges = np.stack((own.start_ns, ends), axis=1)[chosen]
            assert total_ns(ranges) / US == latency
            assert row.total_ns == own.duration_ns[chosen].sum()
            seen += 1
    assert seen == len(rows) == 4
