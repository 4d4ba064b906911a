"""A simulated run reads as a real one, says what it is, and has the faults it names."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from memboard.collector.simulate import SimulatedRun, write_run
from memboard.collector.simulate.host import TIMED_TABLES
from memboard.collector.simulate.memory import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from memboard.collector.simulate.run import EIGHT_METRICS, STEP_COLUMNS
from tests.recordings import read_run

GIB = 1 << 30


def test_every_rank_has_a_file_that_says_it_is_simulated(simulated, faults):
    assert sorted(simulated) == list(range(72))
    words = tuple(fault.words for fault in faults.values())
    for rank, recording in simulated.items():
        header = recording.header
        assert header.simulated
        assert header.planted == words
        assert "imulated" in header.device_name
        assert header.world_size == 72
        assert header.local_rank == rank % 8
        assert header.node_rank == rank // 8
        assert header.device_total_bytes == DEVICE_TOTAL_BYTES == 80 * GIB
    assert len({recording.header.host for recording in simulated.values()}) == 9
    assert len({recording.header.attempt for recording in simulated.values()}) == 72
    meshes = {tuple(sorted(r.header.mesh.items())) for r in simulated.values()}
    assert len(meshes) == 72


def test_tables_and_columns_are_a_real_recording_s(simulated):
    host = {table.name for table in TIMED_TABLES if table.is_per_host}
    every = {table.name for table in TIMED_TABLES} - host
    for rank, recording in simulated.items():
        expected = {"step"} | every | (host if rank % 8 == 0 else set())
        assert set(recording.tables) == expected
        recorded = {
            n for n, status in recording.sources().items() if status == "recorded"
        }
        tracked = {c.kind for c in recording.captures} - {"oom"}
        assert recorded == {"device", "rss"} | tracked | (expected - {"step"})
        for name, table in recording.tables.items():
            assert (np.diff(table["time_ns"]) > 0).all(), (rank, name)
            assert (np.diff(table["step"]) >= 0).all(), (rank, name)
        times = [capture.time_ns for capture in recording.captures]
        assert times == sorted(times)
    columns = list(simulated[0].steps)
    assert columns == ["time_ns", "step", *(column.name for column in STEP_COLUMNS)]


def test_every_rank_keeps_torch_s_relations_at_every_step(simulated):
    for recording in simulated.values():
        steps = recording.steps
        for infix in ("", "_small_pool", "_large_pool"):
            active = steps[f"active{infix}_bytes"]
            reserved = steps[f"reserved{infix}_bytes"]
            assert (steps[f"allocated{infix}_bytes"] <= active).all()
            assert (steps[f"requested{infix}_bytes"] <= active).all()
            assert (active + steps[f"inactive_split{infix}_bytes"] <= reserved).all()
            for stat in ("allocated", "active", "reserved", "requested"):
                peak = steps[f"{stat}{infix}_peak_bytes"]
                assert (steps[f"{stat}{infix}_bytes"] <= peak).all()
            assert (
                steps[f"active{infix}_peak_bytes"]
                <= steps[f"reserved{infix}_peak_bytes"]
            ).all()
        for stat in ("allocated", "active", "reserved", "inactive_split", "requested"):
            pools = (steps[f"{stat}_{pool}_pool_bytes"] for pool in ("small", "large"))
            assert (sum(pools) == steps[f"{stat}_bytes"]).all()
        assert steps["reserved_bytes"].max() <= DEVICE_TOTAL_BYTES - NON_TORCH_BYTES
        free = recording.tables["device_free"]
        total = free["device_free_bytes"] + free["device_used_bytes"]
        assert (total == DEVICE_TOTAL_BYTES).all()
        assert (np.diff(steps["tokens"]) > 0).all()


def test_the_leaking_rank_keeps_what_the_words_say_of_every_step(
    simulated, healthy, faults
):
    fault = faults["leak"]
    (rank,) = fault.ranks
    held = simulated[rank].steps["allocated_bytes"]
    assert (np.diff(held[fault.first_step :]) == fault.keeps.num_bytes).all()
    assert (np.diff(held[: fault.first_step]) == 0).all()
    assert held[-1] - held[0] == pytest.approx(10 * GIB, rel=0.02)
    assert f"keeps {fault.keeps.num_bytes / 2**20:.1f} MiB" in fault.words
    for other in healthy:
        assert (np.diff(other.steps["allocated_bytes"]) == 0).all()


def test_the_out_of_memory_rank_fills_its_device_and_ends_without_a_close(
    simulated, healthy, faults
):
    fault = faults["oom"]
    recording = simulated[fault.ranks[0]]
    steps = recording.steps
    assert recording.close is None
    # The step that fails never ends.
    assert steps["step"][-1] == fault.last_step - 1
    assert f"out of memory at step {fault.last_step}" in fault.words
    limit = DEVICE_TOTAL_BYTES - NON_TORCH_BYTES
    assert steps["reserved_peak_bytes"].max() > limit - 2 * fault.keeps.num_bytes
    # Before it fails it goes on for a while by giving back what it can.
    retries = np.append(steps["num_alloc_retries"], 0)
    assert (np.diff(retries[:-1]) >= 0).all()
    assert np.flatnonzero(retries)[0] == fault.first_retry < fault.last_step
    (note,) = recording.notes_of("oom")
    assert note.step == fault.last_step
    assert note.data["values"]["num_ooms"] == 1
    assert note.data["values"]["num_alloc_retries"] > retries.max()
    for other in healthy:
        assert other.close is not None
        assert other.close.how == "closed"
        assert other.steps["num_ooms"].max() == 0
        assert len(other.steps["step"]) == 120


def digest_of(directory) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*events*")
        if path.is_file()
    }


@pytest.mark.parametrize(("metrics", "num_ranks"), [("8", 34), ("all", 4)])
def test_equal_settings_give_equal_bytes_however_many_processes_write(
    tmp_path, metrics, num_ranks
):
    run = SimulatedRun(num_ranks=num_ranks, num_steps=6, metrics=metrics)
    one = write_run(run, tmp_path / "one")
    two = write_run(run, tmp_path / "two", num_processes=2)
    assert digest_of(tmp_path / "one") == digest_of(tmp_path / "two")
    assert one.num_bytes == two.num_bytes
    assert one.num_bytes == sum(
        path.stat().st_size for path in (tmp_path / "one").rglob("*.events")
    )


def test_another_seed_gives_another_run(tmp_path):
    for seed in (0, 1):
        run = SimulatedRun(num_ranks=2, num_steps=12, metrics="8", seed=seed)
        write_run(run, tmp_path / str(seed))
    seeds = digest_of(tmp_path / "0"), digest_of(tmp_path / "1")
    assert not set(seeds[0].values()) & set(seeds[1].values())


def test_eight_metrics_are_eight_columns_of_one_table(tmp_path):
    write_run(SimulatedRun(num_ranks=3, num_steps=2500, metrics="8"), tmp_path)
    for recording in read_run(tmp_path).values():
        assert list(recording.tables) == ["step"]
        assert set(recording.steps) == {"time_ns", "step", *EIGHT_METRICS}
        num_steps = len(recording.steps["step"])
        assert (recording.steps["step"] == np.arange(num_steps)).all()
        assert recording.captures == []


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 5])
def test_few_ranks_get_the_faults_that_fit_them(tmp_path, num_ranks):
    run = SimulatedRun(num_ranks=num_ranks, num_steps=3)
    written = write_run(run, tmp_path)
    recordings = read_run(tmp_path)
    assert len(recordings) == num_ranks == written.num_files
    assert len(written.planted) == min(num_ranks, 5)
    killed = [rank for rank, recording in recordings.items() if recording.close is None]
    assert len(killed) == (num_ranks > 2)
    single = [words.partition(":")[0] for words in written.planted[:4]]
    assert len(set(single)) == len(single)


@pytest.mark.parametrize("num_steps", [1, 2])
def test_short_runs_run_out_too(tmp_path, num_steps):
    write_run(SimulatedRun(num_ranks=4, num_steps=num_steps), tmp_path)
    kinds = [c.kind for r in read_run(tmp_path).values() for c in r.captures]
    assert kinds.count("oom") == 1


def test_a_run_is_never_written_over_another(tmp_path):
    run = SimulatedRun(num_ranks=1, num_steps=1)
    write_run(run, tmp_path)
    before = digest_of(tmp_path)
    with pytest.raises(FileExistsError, match="not empty"):
        write_run(run, tmp_path)
    assert digest_of(tmp_path) == before
