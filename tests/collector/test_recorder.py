"""Steps, their numbers, and what header and notes say: what lies on disk afterwards."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest

import memboard as mb
from tests.collector.recordings import (
    ONLY_STEPS,
    rank_files,
    read,
    read_only_file,
    record,
    wait_until,
)

# Steps and their numbers.


def test_each_step_is_one_row_with_its_time_and_memory(tmp_path):
    before = time.time_ns()
    with record(tmp_path / "run") as rec:
        for _ in range(5):
            time.sleep(0.01)
            rec.step()
    after = time.time_ns()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [0, 1, 2, 3, 4]
    times = found.column("time_ns")
    assert before <= times[0] <= times[-1] <= after
    assert times == sorted(times)
    seconds = found.column("step_time_seconds")
    assert seconds[0] is None  # nobody knows when the first step began
    assert all(0.009 < value <= (after - before) / 1e9 for value in seconds[1:])
    assert all(2**20 < value < 2**40 for value in found.column("rss_bytes"))
    assert found.close.how == "closed"
    assert found.damages == []


@pytest.mark.usefixtures("no_garbage")
def test_rows_seen_by_the_page_equal_the_process_itself(tmp_path):
    psutil = pytest.importorskip("psutil")
    with record(tmp_path / "run", flush_seconds=3600) as rec:
        rec.step()
        assert rec.flush(60)  # what the writer loads, it has loaded
        ballast = np.ones(2**24)  # 128 MiB, touched
        rec.step()
        high = psutil.Process().memory_info().rss
        del ballast
        rec.step()
        low = psutil.Process().memory_info().rss
    rows = read_only_file(tmp_path / "run").column("rss_bytes")[1:]
    assert abs(rows[0] - high) < 8 * 2**20
    assert abs(rows[1] - low) < 8 * 2**20
    assert rows[0] - rows[1] > 100 * 2**20


def test_own_numbers_lead_and_the_default_continues_from_them(tmp_path):
    with record(tmp_path / "run") as rec:
        rec.step(100)
        rec.step()
        rec.step(500)
        rec.step()
        rec.step(np.int64(700))
        rec.step(800.0)
        rec.step(np.float32(900))
    steps = read_only_file(tmp_path / "run").steps()
    assert steps == [100, 101, 500, 501, 700, 800, 900]


def test_a_step_that_goes_back_is_recorded_as_it_is_and_marked(tmp_path):
    with record(tmp_path / "run") as rec:
        for step in (10, 11, 11, 5, 6):
            rec.step(step)
        rec.step()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == [10, 11, 11, 5, 6, 7]
    assert found.notes_of("mark") == [{"label": "step went back from 11 to 5"}]


def test_what_is_no_number_is_told_once_and_replaced_by_the_count(tmp_path, caplog):
    class Tensor:
        def __index__(self):
            raise AssertionError("reading a tensor would wait for the device")

    bad = [math.nan, math.inf, "7", Tensor(), 1.5, 2**70, [3], np.float64("nan")]
    with record(tmp_path / "run") as rec:
        for value in bad:
            rec.step(value, tokens=value, samples=value)
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(len(bad)))
    assert found.column("tokens") == [None] * len(bad)
    told = [r for r in caplog.records if "must be a whole number" in r.getMessage()]
    assert [r.getMessage().split()[1] for r in told] == ["step", "tokens", "samples"]


def test_a_count_that_would_go_down_is_told_and_left_out(tmp_path, caplog):
    with record(tmp_path / "run") as rec:
        rec.step(tokens=5)
        rec.step(tokens=-3)
        rec.step(-7)  # a step may be any number
    found = read_only_file(tmp_path / "run")
    assert found.column("tokens") == [5, 5, 5]
    assert found.steps() == [0, 1, -7]
    assert "tokens must be a whole number from 0 up, got -3" in caplog.text


def test_tokens_and_samples_are_totals_and_epochs_are_columns(tmp_path):
    with record(tmp_path / "run") as rec:
        rec.step()
        rec.epoch(3, 20)
        rec.step(tokens=100, samples=4)
        rec.step(tokens=50)
        rec.epoch(4)
        rec.step(samples=np.int32(6))
    found = read_only_file(tmp_path / "run")
    assert found.column("tokens") == [None, 100, 150, 150]
    assert found.column("samples") == [None, 4, 4, 10]
    assert found.column("epoch") == [None, 3, 3, 4]
    assert found.notes_of("epoch") == [
        {"epoch": 3, "length": 20},
        {"epoch": 4, "length": None},
    ]


def test_steps_from_several_threads_are_all_taken_one_by_one(tmp_path):
    def train():
        for _ in range(500):
            rec.step(tokens=1)

    with record(tmp_path / "run") as rec:
        threads = [threading.Thread(target=train) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = read_only_file(tmp_path / "run")
    assert found.steps() == list(range(2000))
    assert found.column("tokens") == list(range(1, 2001))


def test_a_step_within_a_step_does_not_lock_up(tmp_path):
    with record(tmp_path / "run") as rec:
        source = rec._session.engine._reads[0]

        def sample():
            rec._session.engine._reads[0] = source
            rec.step()  # as a signal handler or a finaliser might
            return source()

        rec._session.engine._reads[0] = sample
        rec.step()
        rec.step()
    assert sorted(read_only_file(tmp_path / "run").steps()) == [0, 1, 2]


# What the header and the notes say.


def test_the_header_says_who_and_how(tmp_path):
    class Mesh:
        mesh_dim_names = ("dp", "tp")

        def get_coordinate(self):
            return [1, 0]

    with record(
        tmp_path / "exp1", rank=3, local_rank=1, world_size=4, mesh=Mesh()
    ) as rec:
        rec.step()
        assert rec.rank == 3
        attempt = rec.attempt
    (path,) = rank_files(tmp_path / "exp1")
    assert path.name == f"rank00003-{attempt}.events"
    header = read(path).header
    assert (header.run_id, header.attempt) == ("exp1", attempt)
    assert (header.rank, header.local_rank, header.world_size) == (3, 1, 4)
    assert header.mesh == {"dp": 1, "tp": 0}
    assert header.config["flush_seconds"] == 0.1
    assert header.config["host"] is False
    assert header.memory_total_bytes > 2**28
    assert header.device_type in {"cpu", "cuda"}
    assert set(header.versions) >= {"python", "memboard"}
    assert abs(header.started.wall_ns - time.time_ns()) < 60e9


def test_timed_sources_record_at_their_own_pace(tmp_path):
    only = {name: off for name, off in ONLY_STEPS.items() if off is False}
    config = {**only, "host": 0.05, "process": 0.2, "flush_seconds": 0.1}
    before = time.monotonic()
    with mb.record(tmp_path / "run", config=config) as rec:
        rec.step(41)
        wait_until(
            lambda: rec.flush(60) and len(read(rec.path).column("step", "process")) >= 4
        )
    seconds = time.monotonic() - before
    found = read_only_file(tmp_path / "run")
    tables = {schema.table: schema for schema in found.schemas.values()}
    assert tables["memory"].interval_seconds == 0.05
    used = found.column("memory_used_bytes", table="memory")
    shares = found.column("process_cpu_pct", table="process")
    assert tables["swap"].interval_seconds == 0.5 if "swap" in tables else True
    assert 4 <= len(shares) <= seconds / 0.2 + 1
    assert len(shares) <= len(used) <= seconds / 0.05 + 1
    assert all(value > 2**20 for value in used)
    assert set(found.column("step", table="memory")) <= {0, 42}


def test_model_optimizer_and_mesh_may_come_later(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    with record(tmp_path / "run") as rec:
        rec.attach(model=model, optimizer=torch.optim.SGD(model.parameters()))
        rec.attach(mesh={"dp": 2})
        rec.attach(mesh="nonsense")
        rec.attach(model=object())
        rec.attach(model=torch.nn.LazyLinear(2))
    found = read_only_file(tmp_path / "run")
    assert found.notes_of("model")[-1] == {"type": "LazyLinear"}
    assert found.notes_of("model")[0] == {
        "type": "Linear",
        "num_params": 8,
        "num_trainable_params": 6,
    }
    assert found.notes_of("optimizer") == [{"type": "SGD"}]
    assert found.notes_of("mesh") == [{"dp": 2}]
