"""Idle time by cause, launch delay and queue length: by hand, and counted in the file."""

from __future__ import annotations

import gzip
import json
import math
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from memboard.tb_plugin.analysis.time.profiled_steps import profiled_steps
from memboard.tb_plugin.analysis.trace.idle import idle_times
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.importer import Importer
from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.pages.profiled import columns_of

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "/nowhere")) / "kineto"


@pytest.fixture
def importer(tmp_path):
    made = Importer(ColumnCache(tmp_path / "cache"))
    yield made
    made.close()


def test_each_gap_has_the_cause_that_its_launch_tells(tmp_path, importer):
    made = KinetoFile()
    # Launched (2 us long), begins, lasts: all in us.
    made.kernel("first", 100, 110, 40)
    made.kernel("at once behind it", 105, 150.02, 9.98)
    made.kernel("the host came late", 165, 170, 10)
    made.kernel("was queued, and still began late", 168, 200, 10)
    (idle,) = idle_times(read_trace(made.write(tmp_path / "a.json"), importer)())
    assert (idle.device, idle.num_works, idle.num_launched) == (0, 4, 4)
    assert idle.span_ns == 100_000
    assert (idle.host_ns, idle.kernel_ns, idle.other_ns) == (10_000, 20, 20_000)
    # Delays: 8, 43.02, 3 and 30 us.
    assert idle.delay_p50_ns == 19_000
    assert idle.queue_max == 2
    # 5 us of one, 5 of two, 40.02 of one; 3 of one, 2 of two, 30 of one; from 100 to 200.
    assert idle.queue_mean == pytest.approx((5 + 10 + 40.02 + 3 + 4 + 30) / 100)


def test_a_gap_is_split_at_the_late_launch_that_was_not_started_at_once(
    tmp_path, importer
):
    made = KinetoFile()
    made.kernel("first", 10, 20, 5)
    # Launched 35 us after the device ran dry, and held up by what nobody recorded.
    made.kernel("waits elsewhere", 60, 463_000, 100)
    (idle,) = idle_times(read_trace(made.write(tmp_path / "a.json"), importer)())
    assert (idle.host_ns, idle.kernel_ns) == (35_000, 0)
    assert idle.other_ns == 463_000_000 - 60_000
    assert idle.idle_ns + 105_000 == idle.span_ns


def test_work_of_a_whole_device_may_wait_for_another_stream_too(tmp_path, importer):
    made = KinetoFile()
    made.kernel("a", 0, 10, 10)
    made.kernel("b", 50, 55, 10, stream=20)
    made.kernel("late on its stream", 52, 165, 10)
    device, first, second = idle_times(
        read_trace(made.write(tmp_path / "a.json"), importer)()
    )
    assert (device.host_ns, device.other_ns) == (35_000, 100_000)
    assert (first.host_ns, first.other_ns) == (32_000, 113_000)
    assert (second.host_ns, second.other_ns) == (0, 0)


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
        if at and call is not None and call["ts"] > reach:
            is_held_up = one["ts"] - call["ts"] - call["dur"] > 10
            found["host"] += call["ts"] - reach if is_held_up else gap
            found["other"] += one["ts"] - call["ts"] if is_held_up else 0
        elif at and call is not None and gap < 30:
            found["kernel"] += gap
        elif at:
            found["other"] += gap
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
    found = {one.stream: one for one in idle_times(of_first_step(trace))[1:]}
    names = {"host_wait": "host_ns", "kernel_wait": "kernel_ns", "other": "other_ns"}
    compared = 0
    theirs = defaultdict(dict)
    for one in said["get_idle_time_breakdown"]:
        if one["rank"] == rank:
            name = names[one["idle_category"]]
            theirs[one["stream"]][name] = one["idle_time"] * 1000
            compared += 1
    for stream, times in theirs.items():
        # That tool gives the host the whole gap before a late launch, also what follows it.
        idle = found[stream]
        assert idle.kernel_ns == times.get("kernel_ns", 0)
        assert idle.host_ns <= times.get("host_ns", 0)
        both = times.get("host_ns", 0) + times.get("other_ns", 0)
        assert idle.host_ns + idle.other_ns == both
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
    idle = idle_times(read_trace(path, importer)())[0]
    found, delays, most, span = counted(path, idle.device)
    near = lambda us: pytest.approx(us * 1000, abs=100)  # noqa: E731
    assert idle.span_ns == near(span)
    assert idle.host_ns == near(found["host"])
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
    made.kernel("the host came late", 165, 170, 10)
    made.kernel("was queued, and still began late", 168, 185, 25)
    made.write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    (run,) = (page := Page(tmp_path)).get("/runs")["runs"]
    found = answered(
        lambda: page.get("/trace_idle", run=run["id"]),
        lambda answer: answer["state"] == "ready",
    )
    (sentence,) = found["sentences"]
    assert sentence == (
        "GPU 0 was idle 25.0 % of 100 µs: 20.0 % the host launched late, 5.0 % gaps between"
        " kernels. Fewer or larger launches help: a larger batch, fused operators, CUDA"
        " graphs."
    )
    columns = columns_of(found["table"])
    assert columns["where"] == ["GPU 0"]
    (idle,) = [one for one in found["table"]["columns"] if one["key"] == "idle_ms"]
    assert (idle["numbers"].tolist(), idle["notes"]) == ([0.025], ["25.0 %"])
