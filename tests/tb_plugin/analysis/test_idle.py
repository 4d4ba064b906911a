"""Idle time by cause, launch delay and queue length: by hand, and counted in the file."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memboard.tb_plugin.analysis.time.profiled_steps import profiled_steps
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.waiting.idle import idle_times
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.importer import Importer
from tests.kineto_files import KinetoFile
from tests.tb_plugin.analysis.made_devices import MadeDevice
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.pages.profiled import columns_of

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "/nowhere")) / "kineto"


@pytest.fixture
def importer(tmp_path):
    made = Importer(ColumnCache(tmp_path / "cache"))
    yield made
    made.close()


def idle_in(made, tmp_path, importer):
    """Of each device and its streams."""
    path = made.write(tmp_path / "a.json")
    return idle_times(TraceProfile(read_trace(path, importer)()))


def test_each_gap_has_the_cause_that_its_launch_tells(tmp_path, importer):
    made = KinetoFile()
    # Launched (2 us long), begins, lasts: all in us.
    made.kernel("first", 100, 110, 40)
    made.kernel("at once behind it", 105, 150.02, 9.98)
    made.kernel("the host came late", 165, 170, 10)
    made.kernel("was queued, and still began late", 168, 210, 10)
    (idle,) = idle_in(made, tmp_path, importer)
    assert (idle.device, idle.num_works, idle.num_launched) == (0, 4, 4)
    assert idle.span_ns == 110_000
    assert (idle.host_ns, idle.launch_ns) == (5_000, 5_000)
    assert (idle.kernel_ns, idle.stream_ns, idle.other_ns) == (20, 0, 30_000)
    # Delays: 8, 43.02, 3 and 40 us.
    assert idle.delay_p50_ns == 24_000
    assert idle.queue_max == 2
    # 5 us of one, 5 of two, 40.02 of one; 3 of one, 2 of two, 40 of one; from 100 to 210.
    assert idle.queue_mean == pytest.approx((5 + 10 + 40.02 + 3 + 4 + 40) / 110)


def test_a_gap_is_split_at_the_launch_that_was_not_started_at_once(tmp_path, importer):
    made = KinetoFile()
    made.kernel("first", 10, 20, 5)
    # Launched 35 us after the device ran dry, and held up by what nobody recorded.
    made.kernel("waits elsewhere", 60, 463_000, 100)
    (idle,) = idle_in(made, tmp_path, importer)
    assert (idle.host_ns, idle.launch_ns, idle.kernel_ns) == (35_000, 2_000, 0)
    assert idle.other_ns == 463_000_000 - 62_000
    assert idle.idle_ns + 105_000 == idle.span_ns


def test_a_stream_waits_for_the_end_of_another_ones_work(tmp_path, importer):
    made = KinetoFile()
    made.kernel("a", 0, 10, 10)
    made.kernel("b", 50, 55, 45, stream=20)
    made.kernel("needs b", 52, 101, 10)
    device, first, second = idle_in(made, tmp_path, importer)
    assert (device.host_ns, device.launch_ns, device.kernel_ns) == (
        30_000,
        5_000,
        1_000,
    )
    assert (first.host_ns, first.launch_ns, first.kernel_ns) == (32_000, 2_000, 1_000)
    assert first.stream_ns == 100_000 - 54_000
    assert second.idle_ns == 0


def test_work_that_begins_amid_another_streams_waited_for_the_device(
    tmp_path, importer
):
    made = KinetoFile()
    made.kernel("a", 0, 10, 10)
    made.kernel("fills the device", 11, 21, 500, stream=20)
    made.kernel("begins where that leaves room", 12, 400, 10)
    _, first, _ = idle_in(made, tmp_path, importer)
    assert (first.idle_ns, first.stream_ns) == (380_000, 380_000)


def test_what_the_host_did_is_known_by_its_innermost_slices(tmp_path, importer):
    made = KinetoFile()
    made.step(1, 0, 1_000)
    made.kernel("first", 10, 20, 80)
    made.slice("train.py(3): step", 100, 500, "python_function")
    made.slice("aten::sum", 200, 150)
    made.slice("cudaMalloc", 220, 100, "cuda_runtime")
    made.kernel("second", 500, 505, 10)
    (idle,) = idle_in(made, tmp_path, importer)
    assert [
        (part.cause.value, part.duration_ns, part.longest) for part in idle.host_parts
    ] == [
        ("host outside operators", 250_000, "train.py(3): step"),
        ("runtime calls", 100_000, "cudaMalloc"),
        ("host operators", 50_000, "aten::sum"),
    ]
    assert idle.host_ns == 400_000


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_idle_time_is_what_the_rules_of_a_made_device_say(
    tmp_path, importer, seed, holds
):
    made = MadeDevice(seed, holds=holds)
    idle = idle_in(made.file, tmp_path, importer)[0]
    parts = ("host", "launch", "kernel", "stream", "other")
    microseconds = {part: getattr(idle, f"{part}_ns") / 1_000 for part in parts}
    assert microseconds == {part: made.idle[part] for part in parts}
    assert sum(part.duration_ns for part in idle.host_parts) == idle.host_ns
    assert bool(idle.other_ns) == holds


def counted(path, device):
    """The same of a whole device, in plain loops over the file's own events."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    launches, work = {}, []
    for event in events:
        correlation = event.get("args", {}).get("correlation")
        if event.get("cat") in ("cuda_runtime", "cuda_driver") and correlation:
            known = launches.get(correlation)
            if known is None or event["ts"] < known["ts"]:
                launches[correlation] = event
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            work.append(event)
    work = [one for one in work if one["args"]["device"] == device]
    work.sort(key=lambda one: one["ts"])
    found, delays, changes = defaultdict(float), [], []
    reach = work[0]["ts"]
    for at, one in enumerate(work):
        call = launches.get(one["args"]["correlation"])
        gap = max(one["ts"] - reach, 0)
        if at and call is not None:
            returned = max(reach, min(call["ts"] + call["dur"], one["ts"]))
            called = max(reach, min(call["ts"], one["ts"]))
            found["host"] += called - reach if gap else 0
            found["launch"] += returned - called if gap else 0
            rest = one["ts"] - returned if gap else 0
            is_empty = returned > reach
            if rest > (100 if is_empty else 20):
                found["other"] += rest
            else:
                found["launch" if is_empty else "kernel"] += rest
        elif at:
            found["other" if gap > 20 else "kernel"] += gap
        reach = max(reach, one["ts"] + one["dur"])
        if call is not None:
            delays.append(max(one["ts"] - call["ts"] - call["dur"], 0))
            changes += [(call["ts"], 1), (max(one["ts"], call["ts"]), -1)]
    length = most = 0
    for _, change in sorted(changes, key=lambda one: (one[0], -one[1])):
        length += change
        most = max(most, length)
    return found, sorted(delays), most, reach - work[0]["ts"]


def of_first_step(trace):
    """With the work of the first step alone: that tool leaves out the last one."""
    steps, pairs = profiled_steps(trace), trace.launch_pairs
    begun = trace.slices.starts(pairs[:, 0])
    own = pairs[begun < steps.host_end_ns[0], 1]
    work = trace.device_work
    return replace(trace, device_work=work.take(np.isin(work.row, own)))


@pytest.mark.parametrize("rank", [0, 1])
def test_each_stream_has_what_holistic_trace_analysis_says(importer, rank):
    folder = REAL / "hta_nccl_two_ranks_sampled"
    if not folder.exists():
        pytest.skip("recorded by others: not in the repository")
    said = json.loads((folder / "hta_expected.json").read_text())
    trace = read_trace(folder / f"rank_{rank}.1.pt.trace.json.gz", importer)()
    idles = idle_times(TraceProfile(of_first_step(trace)))[1:]
    found = {one.stream: one for one in idles}
    compared = 0
    theirs = defaultdict(Counter)
    for one in said["get_idle_time_breakdown"]:
        if one["rank"] == rank:
            theirs[one["stream"]][one["idle_category"]] += one["idle_time"] * 1000
            compared += 1
    for stream, times in theirs.items():
        # That tool gives the host the whole gap before a late launch, also what follows it.
        idle = found[stream]
        assert idle.idle_ns == sum(times.values())
        assert idle.host_ns <= times["host_wait"]
        assert times["host_wait"] <= idle.idle_ns
    for one in said["get_queue_length_summary"]:
        if one["rank."] == rank:
            assert found[one["stream."]].queue_max == one["queue_length.max"]
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("rank", [0, 1])
def test_a_real_trace_has_what_its_file_says(importer, rank):
    path = REAL / "hta_nccl_two_ranks_sampled" / f"rank_{rank}.1.pt.trace.json.gz"
    if not path.exists():
        pytest.skip("recorded by others: not in the repository")
    idle = idle_times(TraceProfile(read_trace(path, importer)()))[0]
    found, delays, most, span = counted(path, idle.device)
    near = lambda us: pytest.approx(us * 1000, abs=100)  # noqa: E731
    assert idle.span_ns == near(span)
    assert idle.host_ns == near(found["host"])
    assert sum(part.duration_ns for part in idle.host_parts) == idle.host_ns
    assert idle.launch_ns == near(found["launch"])
    assert idle.kernel_ns == near(found["kernel"])
    assert idle.other_ns == near(found["other"])
    assert idle.num_launched == len(delays)
    assert delays[0] * 1000 <= idle.delay_p50_ns <= delays[-1] * 1000
    middle = delays[(len(delays) - 1) // 2], delays[len(delays) // 2]
    assert idle.delay_p50_ns == near(sum(middle) / 2)
    assert idle.queue_max == most
    assert not math.isnan(idle.queue_mean)


def test_it_is_said_with_its_largest_cause_first_and_what_helps(tmp_path):
    made = KinetoFile()
    made.kernel("first", 100, 110, 40)
    made.slice("aten::sum", 150, 20)
    made.kernel("the host came late", 175, 185, 5)
    made.kernel("was queued", 178, 195, 15)
    made.write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    (run,) = (page := Page(tmp_path)).get("/runs")["runs"]
    found = answered(
        lambda: page.get("/trace_idle", run=run["id"]),
        lambda answer: answer["state"] == "ready",
    )
    (sentence,) = found["sentences"]
    assert sentence == (
        "GPU 0 was idle 40.0 % of 100 µs: 25.0 % before the host launched, 10.0 % launch calls and delay,"
        " 5.0 % gaps between kernels. Before it launched, the host spent 20.0 % in operators"
        " (most in aten::sum), 5.0 % outside operators. Fewer or larger launches help: a larger"
        " batch, fused operators, CUDA graphs."
    )
    columns = columns_of(found["table"])
    assert columns["where"] == ["GPU 0"]
    (idle,) = [one for one in found["table"]["columns"] if one["key"] == "idle_ms"]
    assert (idle["numbers"].tolist(), idle["notes"]) == ([0.04], ["40.0 %"])
