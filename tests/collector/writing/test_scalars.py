"""Headline scalars: thinned without losing a maximum, shown by TensorBoard's own tabs."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memboard as mb
from memboard.collector.format.columns import (
    AXES,
    DEVICE_COUNTERS,
    PROGRESS,
    RSS,
    STEP_TABLE,
    TIMING,
    device_byte_columns,
)
from memboard.collector.format.names import SCALARS_DIR
from memboard.collector.format.records import Schema
from memboard.collector.writing.rank_file import RankFile
from memboard.collector.writing.scalars import Scalars, ScalarsFile, tags_of
from tests import programs
from tests.collector.recordings import (
    ONLY_STEPS,
    rank_files,
    read,
    wait_until,
)
from tests.collector.writing.clockwork import Clockwork, header, identity
from tests.collector.writing.clockwork import row as plain_row

CPU = Schema(
    schema_id=0,
    table=STEP_TABLE,
    phase="train",
    columns=(*AXES, *TIMING, *PROGRESS, *RSS),
)
GPU = Schema(
    schema_id=0,
    table=STEP_TABLE,
    phase="train",
    columns=(*AXES, *TIMING, *device_byte_columns()),
)
RSS_TAG = "memboard/rss_gib"
TIME_TAG = "memboard/step_time_seconds"


def scalar_files(run_dir):
    return sorted((run_dir / SCALARS_DIR).glob("*tfevents*"))


def points(run_dir):
    """{tag: [(step, value)]} as TensorBoard's own event loader reads them."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util.tensor_util import make_ndarray

    found: dict[str, list[tuple[int, float]]] = {}
    for path in scalar_files(run_dir):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.tag != "memboard/header":
                    point = (event.step, float(make_ndarray(value.tensor)))
                    found.setdefault(value.tag, []).append(point)
    return found


def write(run_dir, rows, schema=CPU):
    file = ScalarsFile(run_dir, header(), schema)
    for index, row in enumerate(rows):
        file.add(row)
        if index % 1000 == 0:
            file.flush()
    file.close()
    return points(run_dir)


def written(run_dir, steps, ms=200):
    """Points of steps, seconds and resident bytes, one after so many milliseconds."""
    start = time.time_ns() - 10**15
    rows = [
        [start + at * ms * 10**6, step, seconds, None, None, None, rss]
        for at, (step, seconds, rss) in enumerate(steps)
    ]
    return write(run_dir, rows)


def test_slow_steps_are_all_kept(tmp_path):
    found = written(tmp_path, [(s, 0.5 + s, (s + 1) * 2**29) for s in range(30)])
    assert found[RSS_TAG] == [(s, (s + 1) / 2) for s in range(30)]
    assert found[TIME_TAG] == [(s, 0.5 + s) for s in range(30)]


def test_fast_steps_are_thinned_and_every_maximum_stays_at_its_step(tmp_path):
    steps = [(s, 0.001, 2**30 + (s % 50) * 2**20) for s in range(5000)]
    steps[2345] = 2345, 9.0, 2**33
    found = written(tmp_path, steps, ms=1)
    for tag, high in ((RSS_TAG, 8.0), (TIME_TAG, 9.0)):
        kept = [step for step, _ in found[tag]]
        assert 40 <= len(kept) <= 60
        assert kept == sorted(set(kept))
        assert (2345, high) in found[tag]


def test_windows_widen_so_that_a_long_run_stays_small(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "memboard.collector.writing.scalars._WINDOWS_PER_DOUBLING", 1000
    )
    found = written(tmp_path, [(s, 0.1, 2**30 + s) for s in range(7000)], ms=100)
    # Windows of 0.1, 0.2 and 0.4 s, 1,000 each: 7,000 steps of 0.1 s.
    assert 2900 < len(found[RSS_TAG]) < 3100
    (path,) = scalar_files(tmp_path)
    assert path.stat().st_size < 600_000


def test_steps_that_go_back_are_left_out_so_that_nothing_is_purged(tmp_path):
    found = written(tmp_path, [(s, 1.0, 2**30) for s in (5, 6, 7, 3, 4, 7, 8)])
    assert [step for step, _ in found[RSS_TAG]] == [5, 6, 7, 8]


def test_what_is_absent_or_not_finite_is_no_point(tmp_path):
    seconds = [None, math.nan, math.inf, 2.0]
    found = written(tmp_path, [(at, value, 2**30) for at, value in enumerate(seconds)])
    assert found[TIME_TAG] == [(3, 2.0)]
    assert len(found[RSS_TAG]) == 4


def test_device_peaks_are_among_the_headlines(tmp_path):
    names = [column.name for column in GPU.columns]
    values = [None] * len(names)
    values[:3] = [time.time_ns(), 0, 0.5]
    values[names.index("allocated_peak_bytes")] = 3 * 2**30
    values[names.index("reserved_bytes")] = 5 * 2**30
    found = write(tmp_path, [values], GPU)
    assert found == {
        "memboard/allocated_peak_gib": [(0, 3.0)],
        "memboard/reserved_gib": [(0, 5.0)],
        TIME_TAG: [(0, 0.5)],
    }


def device_row(step, phase_columns=GPU, **values):
    names = [column.name for column in phase_columns.columns]
    row = [None] * len(names)
    row[:3] = [1_780_000_000 * 10**9 + step * 10**9, step, 0.5]
    for name, value in values.items():
        row[names.index(name)] = value
    return row


MONITORED = Schema(
    schema_id=0,
    table=STEP_TABLE,
    phase="train",
    columns=(*AXES, *TIMING, *device_byte_columns(), *DEVICE_COUNTERS),
)


def by_memory_monitor(stats):
    """As Composer's callback makes its report of torch.cuda.memory_stats()."""
    report = {}
    for key, name in (
        *(
            (f"{stat}_bytes.all.{metric}", f"{metric}_{word}_mem")
            for metric in ("current", "peak")
            for stat, word in (
                ("allocated", "allocated"),
                ("active", "active"),
                ("inactive_split", "inactive"),
                ("reserved", "reserved"),
            )
        ),
        ("num_alloc_retries", "alloc_retries"),
    ):
        value = stats[key]
        if "bytes" in key:
            value /= 1.0e9
            if value:
                value = round(value, 4 - math.floor(math.log10(abs(value))))
        report[f"memory/{name}"] = value
    return report


@given(
    st.lists(
        st.lists(st.integers(0, 2**40), min_size=9, max_size=9), min_size=1, max_size=5
    )
)
def test_memory_monitors_keys_have_its_values(steps):
    """Peaks are the highest so far, though ours are each step's own."""
    highest = dict.fromkeys(("allocated", "active", "inactive_split", "reserved"), 0)
    expected: dict[str, list[tuple[int, float]]] = {}
    rows = []
    for step, (*sizes, retries) in enumerate(steps):
        values, stats = {}, {"num_alloc_retries": retries}
        for at, stat in enumerate(highest):
            values[f"{stat}_bytes"], values[f"{stat}_peak_bytes"] = sizes[2 * at :][:2]
            highest[stat] = max(highest[stat], sizes[2 * at + 1])
            stats[f"{stat}_bytes.all.current"] = sizes[2 * at]
            stats[f"{stat}_bytes.all.peak"] = highest[stat]
        for name, value in by_memory_monitor(stats).items():
            expected.setdefault(name, []).append((step, float(np.float32(value))))
        rows.append(device_row(step, MONITORED, num_alloc_retries=retries, **values))
    with TemporaryDirectory() as run_dir:
        scalars = Scalars(Path(run_dir), header, print, tags_of("composer"))
        scalars.take_schema(MONITORED)
        for row in rows:
            scalars.add(0, row)
        scalars.flush(closing=True)
        found = points(Path(run_dir))
    memory = {name: at for name, at in found.items() if name.startswith("memory/")}
    assert memory == expected
    assert len(memory) == 9
    assert TIME_TAG in found, "beside our own"


def test_peaks_of_memory_monitors_keys_know_other_phases(tmp_path):
    """What an evaluation needed is in torch's peak, which nothing resets there."""
    val = Schema(schema_id=1, table=STEP_TABLE, phase="val", columns=GPU.columns)
    scalars = Scalars(tmp_path, header, print, tags_of("composer"))
    for schema in (GPU, val):
        scalars.take_schema(schema)
    scalars.add(0, device_row(0, allocated_peak_bytes=10**9))
    scalars.add(1, device_row(0, allocated_peak_bytes=7 * 10**9))
    scalars.add(0, device_row(1, allocated_peak_bytes=2 * 10**9))
    scalars.flush(closing=True)
    found = points(tmp_path)["memory/peak_allocated_mem"]
    assert found == [(0, 1.0), (1, 7.0)]


def test_without_being_asked_for_there_are_none_of_composers(tmp_path):
    found = write(tmp_path, [device_row(0, allocated_peak_bytes=2**30)], GPU)
    assert set(found) == {"memboard/allocated_peak_gib", TIME_TAG}
    assert tags_of(False) == ()


def test_only_rank_0_writes_one_file_and_only_of_training(tmp_path):
    for rank in range(3):
        with mb.record(tmp_path / "run", **ONLY_STEPS, rank=rank, world_size=3) as rec:
            for _ in range(3):
                rec.step()
            with rec.phase("val"):
                rec.step(1000)
    assert len(scalar_files(tmp_path / "run")) == 1
    steps = {step for steps in points(tmp_path / "run").values() for step, _ in steps}
    assert 0 < len(steps) <= 3
    assert steps <= {0, 1, 2}
    assert len(rank_files(tmp_path / "run")) == 3


def test_scalars_can_be_switched_off(tmp_path):
    with mb.record(tmp_path / "run", **ONLY_STEPS, scalars=False) as rec:
        rec.step()
    assert not (tmp_path / "run" / SCALARS_DIR).exists()


def test_a_rank_that_turns_out_not_to_be_0_takes_its_scalars_back(
    tmp_path, monkeypatch
):
    class Distributed:
        is_available = is_initialized = staticmethod(lambda: True)
        get_rank = staticmethod(lambda: 2)
        get_world_size = staticmethod(lambda: 4)

    with mb.record(tmp_path / "run", **ONLY_STEPS) as rec:
        rec.step()
        wait_until(lambda: scalar_files(tmp_path / "run"))
        monkeypatch.setitem(sys.modules, "torch.distributed", Distributed)
        rec.step()
        wait_until(lambda: rec.rank == 2)
    assert scalar_files(tmp_path / "run") == []
    assert read(*rank_files(tmp_path / "run")).steps() == [0, 1]


def test_a_rank_that_comes_out_as_its_first_rows_come_leaves_rank_0_the_scalars(
    tmp_path, monkeypatch
):
    """Between the writer's question who this is and its look at the rows."""
    clockwork = Clockwork(
        tmp_path, who=identity(settled=False), scalars=True, flush_seconds=3600
    )
    opened = RankFile.open

    def slow(self, path, head):
        opened(self, path, head)
        clockwork.who = identity(2, 4)
        clockwork.writer.put_row(0, plain_row(0))

    with monkeypatch.context() as patch:
        patch.setattr(RankFile, "open", slow)
        with clockwork as writer:
            wait_until(lambda: writer._num_finished == 1)
            ScalarsFile(tmp_path, header(), CPU).close()
            patch.undo()
    paths = rank_files(tmp_path)
    assert (paths[-1].name[:9], read(*paths).steps()) == ("rank00002", [0])
    assert len(scalar_files(tmp_path)) == 1


# Two jobs in one run.


def test_the_second_job_says_why_it_has_no_scalars_and_records_all_else(tmp_path):
    code = "import sys, memboard as mb\nwith mb.record(sys.argv[1]) as rec:\n    rec.step(7)\n"
    with mb.record(tmp_path / "run", **ONLY_STEPS) as rec:
        rec.step()
        wait_until(lambda: scalar_files(tmp_path / "run"))
        result = programs.run(code, tmp_path / "run")
        rec.step()
    assert "Give each job its own run directory" in result.stderr
    assert len(scalar_files(tmp_path / "run")) == 1
    files = {read(path).steps()[0]: read(path) for path in rank_files(tmp_path / "run")}
    assert files[0].steps() == [0, 1]
    assert files[7].source("scalars")["status"] == "failed"
    assert files[7].close.how == "closed"


def test_a_killed_jobs_lock_dies_with_it(tmp_path):
    code = (
        "import os, sys, memboard as mb\n"
        "rec = mb.record(sys.argv[1])\n"
        "rec.step(); rec.flush(60); os.kill(os.getpid(), 9)\n"
    )
    programs.run(code, tmp_path / "run", check=False)
    assert len(scalar_files(tmp_path / "run")) == 1
    with mb.record(tmp_path / "run", **ONLY_STEPS) as rec:
        rec.step()
    assert len(scalar_files(tmp_path / "run")) == 2


# In TensorBoard itself.


@pytest.fixture(params=["true", "false"], ids=["rust", "python"])
def tensorboard_url(request, tmp_path):
    """A TensorBoard on a logdir with the user's loss and one recording."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    run_dir = tmp_path / "logs" / "exp1"
    user = EventFileWriter(str(run_dir))
    with mb.record(run_dir, **ONLY_STEPS) as rec:
        for step in range(5):
            value = summary_pb2.Summary.Value(tag="loss", simple_value=1.0 / (step + 1))
            summary = summary_pb2.Summary(value=[value])
            user.add_event(
                event_pb2.Event(wall_time=time.time(), step=step, summary=summary)
            )
            rec.step()
            time.sleep(0.12)
    user.close()
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tensorboard.main",
            "--logdir",
            str(tmp_path / "logs"),
            "--port",
            "0",
            "--load_fast",
            request.param,
            "--reload_interval",
            "1",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "GRPC_ENABLE_FORK_SUPPORT": "0"},
    )
    try:
        lines = itertools.takewhile(bool, iter(process.stdout.readline, ""))
        url = next(
            word
            for line in lines
            for word in line.split()
            if word.startswith("http://localhost:")
        )
        yield url.rstrip("/")
    finally:
        process.terminate()
        process.wait(300)
        process.stdout.close()


@pytest.mark.slow
def test_both_loaders_show_the_scalars_beside_the_loss(tensorboard_url):
    import json

    def get(path):
        with urllib.request.urlopen(tensorboard_url + path, timeout=120) as response:
            return json.load(response)

    own = f"exp1/{SCALARS_DIR}"

    def shown():
        tags = get("/data/plugin/scalars/tags")
        return len(tags.get(own, {})) == 2 and "loss" in tags.get("exp1", {})

    wait_until(shown)
    tags = get("/data/plugin/scalars/tags")
    assert set(tags) == {"exp1", own}  # a rank is never a run
    assert set(tags[own]) == {RSS_TAG, TIME_TAG}
    assert tags[own][TIME_TAG]["displayName"] == "memboard/Step time (s)"
    wait_until(
        lambda: len(get(f"/data/plugin/scalars/scalars?run={own}&tag={RSS_TAG}")) == 5
    )
    series = get(f"/data/plugin/scalars/scalars?run={own}&tag={RSS_TAG}")
    assert [step for _, step, _ in series] == [0, 1, 2, 3, 4]
    assert all(0.01 < value < 1000 for _, _, value in series)
    # Time Series asks by another route.
    metrics = get("/data/plugin/timeseries/tags")["scalars"]["runTagInfo"]
    assert RSS_TAG in metrics[own]
