"""Real traces against figures that were computed from them by other means."""

from __future__ import annotations

import csv
import functools
import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from memboard.tb_plugin.analysis.operators.captured import captured_graphs
from memboard.tb_plugin.analysis.operators.replayed import with_captured
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.analysis.time.slice_tree import SliceTree
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from tests.tb_plugin.readers.traces.reading import read

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "nowhere")) / "kineto"
MORE = Path(os.environ.get("MEMBOARD_MORE_TRACES", "nowhere"))
EXPECTED = sorted(path for root in (REAL, MORE) for path in root.rglob("expected.json"))
FIGURES = [
    pytest.param((path.parent / name, figures), id=f"{path.parent.name}/{name}")
    for path in EXPECTED
    for name, figures in json.loads(path.read_text()).get("independent", {}).items()
]
FILES = sorted(
    path
    for root in (REAL, MORE)
    for path in root.rglob("*.json*" if root == MORE else "*")
    if path.is_file()
    and "expected" not in path.name
    and path.name not in ("pypi043.json", "execution_details.json")
)

traces = functools.lru_cache(maxsize=None)(read)

pytestmark = pytest.mark.skipif(
    not EXPECTED, reason="MEMBOARD_REAL_DATA and MEMBOARD_MORE_TRACES hold no traces"
)


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_every_file_loads(path):
    trace = traces(path)
    assert trace.start_ns <= trace.end_ns
    for problem in trace.problems:
        assert problem.what


@pytest.fixture(params=FIGURES)
def recorded(request):
    """A trace and its figures; each file is read once."""
    path, figures = request.param
    return traces(path), figures


def test_counts_and_what_the_trace_says_of_itself(recorded):
    trace, figures = recorded
    assert dict(trace.num_events) == figures["by_ph_cat"]
    assert sum(trace.num_events.values()) == figures["events"]
    facts, distributed = trace.facts, figures["distributedInfo"] or {}
    assert facts.rank == distributed.get("rank", -1)
    assert facts.world_size == distributed.get("world_size", -1)
    assert len(facts.devices) == figures.get("n_device_properties", len(facts.devices))
    assert distributed.items() <= facts.distributed.items()


def test_steps_start_and_last_as_they_should_to_the_nanosecond(recorded):
    trace, figures = recorded
    base = figures.get("baseTimeNanoseconds", trace.facts.base_time_ns) or 0
    found = []
    for row in range(len(trace.slices)):
        name = trace.name_of(row)
        if name.startswith("ProfilerStep#") and not trace.category_of(row).startswith(
            "gpu_"
        ):
            start = int(trace.slices.start_ns[row]) + trace.base_ns - base
            found.append([name, start, int(trace.slices.duration_ns[row])])
    expected = [
        [name, start, round(duration * 1000)]
        for name, start, duration in figures["profiler_steps"]
    ]
    # The figures' own floats hold absolute times to a quarter of a microsecond.
    tolerance = 500 if not base else 1
    for ours, theirs in zip(sorted(found), sorted(expected), strict=True):
        assert ours[0] == theirs[0]
        assert abs(ours[1] - theirs[1] * 1000) <= tolerance
        assert ours[2] == theirs[2]


def test_memory_by_device(recorded):
    trace, figures = recorded
    memory = trace.memory
    expected = figures["memory_by_device_type_id"]
    found = defaultdict(list)
    for row in range(len(memory)):
        key = f"{memory.device_type[row]}:{memory.device[row]}"
        found[key].append(row)
    assert found.keys() == expected.keys()
    for key, rows in found.items():
        said = expected[key]
        num_bytes = memory.num_bytes[rows].astype(np.int64)
        assert len(rows) == said["events"]
        if said.get("peak_total_allocated") is not None:
            peak = int(memory.allocated_bytes[rows].max())
            assert peak == said["peak_total_allocated"]
        if said.get("peak_total_reserved") is not None:
            peak = int(memory.reserved_bytes[rows].max())
            assert peak == said["peak_total_reserved"]
        counted = {
            "allocs": int((num_bytes > 0).sum()),
            "alloc_bytes": int(num_bytes[num_bytes > 0].sum()),
            "net_bytes": int(num_bytes.sum()),
            "has_addr": bool((memory.address[rows] != 0).any()),
        }
        assert counted == {name: said.get(name, counted[name]) for name in counted}


def test_kernels_and_how_long_they_ran(recorded):
    trace, figures = recorded
    gpu = figures.get("gpu")
    if not gpu:
        pytest.skip("without a device")
    kernels = [
        int(row)
        for row in trace.device_work.row
        if trace.category_of(row).lower() == "kernel"
    ]
    assert len(kernels) == gpu["kernels"]
    total = int(trace.slices.duration_ns[kernels].sum())
    assert total == pytest.approx(gpu["kernel_us_sum"] * 1000, abs=len(kernels))
    nccl = [row for row in kernels if trace.name_of(row).lower().startswith("nccl")]
    assert len(nccl) == gpu["nccl_kernels"]
    total = int(trace.slices.duration_ns[nccl].sum())
    assert total == pytest.approx(gpu["nccl_us_sum"] * 1000, abs=len(nccl) + 1)


def test_the_longest_kernels_and_operators(recorded):
    trace, figures = recorded
    if "top_kernels" not in figures:
        pytest.skip("without tables")
    profile = TraceProfile(trace)
    kernels = profile.kernels
    names = [trace.strings[row] for row in kernels.name.tolist()]
    for name, calls, total_us in figures["top_kernels"]:
        at = names.index(name)
        assert kernels.num_calls[at] == calls
        assert kernels.total_ns[at] == pytest.approx(total_us * 1000, abs=calls + 1)
    duration = trace.slices.duration_ns.astype(np.int64)
    # Of the figures self is without operators alone; the table's also without calls.
    category = [trace.category_of(row) for row in range(len(duration))]
    is_node = np.isin(category, ("cpu_op", "operator"))
    own = duration - SliceTree(trace.slices, is_node).inner_sums(duration)
    for name, calls, self_us, total_us in figures["top_ops_self_host"]:
        rows = np.array(
            [row for row in np.flatnonzero(is_node) if trace.name_of(row) == name]
        )
        assert len(rows) == calls
        assert own[rows].sum() == pytest.approx(self_us * 1000, abs=2 * calls + 1)
        assert duration[rows].sum() == pytest.approx(total_us * 1000, abs=calls + 1)


@pytest.mark.parametrize(
    "path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_all_time_of_devices_is_in_rows(path):
    """The sum over kernels, copies and fills: those that ran at the same time count each."""
    trace = traces(path)
    profile = TraceProfile(trace)
    rows = trace.device_work.row
    total_ns = trace.slices.duration_ns[rows].sum(dtype=np.int64)
    for table in (profile.launching, profile.launching_by_shapes):
        assert table.device_self_ns.sum() == total_ns
    roles = profile.roles[rows]
    is_kernel = (roles == Role.KERNEL) | (roles == Role.COMMUNICATION)
    kernels_ns = trace.slices.duration_ns[rows[is_kernel]].sum(dtype=np.int64)
    for kernels in (profile.kernels, profile.kernels_by_properties):
        assert kernels.total_ns.sum() == kernels_ns
    modules = profile.modules
    in_modules_ns = modules.device_self_ns.sum() + modules.backward_device_self_ns.sum()
    assert in_modules_ns + modules.outside_device_ns == total_ns


@pytest.mark.skipif(not MORE.is_dir(), reason="MEMBOARD_MORE_TRACES holds no traces")
def test_operators_of_a_replayed_graph_are_those_that_tracelens_reports():
    (folder,) = MORE.glob("*vllm_decode_full_graph_execution")
    captures = [
        graph
        for path in (folder / "capture_traces").glob("*.json.gz")
        for graph in captured_graphs(traces(path))
    ]
    (path,) = folder.glob("*.json.gz")
    profile = TraceProfile(with_captured(traces(path), captures))
    table = profile.launching
    assert table.device_self_ns.sum() == profile.times.work_ns.sum()
    ours = {
        profile.operator_names[name]: (took / 1e3, calls)
        for name, took, calls in zip(
            table.name.tolist(), table.device_self_ns, table.num_calls, strict=True
        )
        if took
    }
    with (folder / "tracelens" / "ops_summary.csv").open() as file:
        reported = {
            row["name"]: (float(row["total_direct_kernel_time_sum"]), int(row["Count"]))
            for row in csv.DictReader(file)
        }
    assert ours.keys() == reported.keys()
    for name, (took_us, calls) in reported.items():
        # Its times are floats of microseconds since the machine started.
        assert ours[name][0] == pytest.approx(took_us, abs=0.01 * calls + 0.01)
        assert ours[name][1] == calls


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if ".trace.json" in path.name],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_slice_shows_all_its_arguments(path):
    from tests.perf.trace_replicator import read as plain

    try:
        events = plain(path)["traceEvents"]
    except json.JSONDecodeError:
        pytest.skip("damaged")
    trace = traces(path)
    for row in range(0, len(trace.slices), max(len(trace.slices) // 50, 1)):
        handle = int(trace.slices.args[row])
        if handle >= 0:
            assert trace.args_of(row) == events[handle]["args"]
            assert trace.name_of(row) == events[handle]["name"]


@pytest.mark.skipif(not REAL.is_dir(), reason="MEMBOARD_REAL_DATA holds no traces")
def test_a_raw_memory_timeline_is_as_its_reader_has_it():
    folder = REAL / "hta_memory_timeline_raw"
    expected = json.loads((folder / "expected.json").read_text())
    trace = read(folder / "memory_timeline.raw.gz")
    assert trace.base_ns == expected["first_time"]
    assert trace.base_ns + trace.end_ns == expected["last_time"]
    totals = defaultdict(int)
    last = {}
    for series in trace.series:
        rows = slice(series.first_row, series.first_row + series.num_points)
        last[series.name] = int(trace.counters.value[rows][-1])
        before = 0
        for time_ns, value in zip(
            trace.counters.time_ns[rows].tolist(),
            trace.counters.value[rows].tolist(),
            strict=True,
        ):
            totals[time_ns] += int(value) - before
            before = int(value)
    peak = max(np.cumsum([totals[time_ns] for time_ns in sorted(totals)]))
    assert peak == expected["peak_total_bytes"]
    names = ("parameter", "optimizer_state", "input", "temporary")
    assert [last.get(name, 0) for name in names] == expected["sizes_last"][:4]
