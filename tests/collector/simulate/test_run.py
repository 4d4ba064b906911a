"""A simulated run reads as a real one, says what it is, and has the faults it names."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from collector.format.numeric import ABSENT
from collector.format.rollup import COARSE_BUCKETS, FINE_BUCKETS
from collector.simulate import SimulatedRun, write_run
from collector.simulate.curves import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from collector.simulate.faults import (
    IMBALANCE_BYTES,
    STRAGGLER_FACTOR,
    WORKER_BYTES,
    plan_faults,
)
from collector.simulate.history.captures import STEPS_BEFORE
from collector.simulate.host import NUM_WORKERS, TIMED_TABLES
from collector.simulate.run import EIGHT_METRICS, STEP_COLUMNS
from tests.recordings import Recording, read_run

GIB = 1 << 30
RUN = SimulatedRun(num_ranks=72, num_steps=300)
FAULTS = {fault.kind: fault for fault in plan_faults(RUN.num_ranks, RUN.num_steps)}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory) -> dict[int, Recording]:
    directory = tmp_path_factory.mktemp("run")
    write_run(RUN, directory)
    return read_run(directory)


def healthy(ranks: dict[int, Recording]) -> list[Recording]:
    faulty = {rank for fault in FAULTS.values() for rank in fault.ranks}
    return [recording for rank, recording in ranks.items() if rank not in faulty]


def test_every_rank_has_a_file_that_says_it_is_simulated(ranks):
    assert sorted(ranks) == list(range(72))
    words = tuple(fault.words for fault in FAULTS.values())
    for rank, recording in ranks.items():
        header = recording.header
        assert header.simulated
        assert header.planted == words
        assert "imulated" in header.device_name
        assert header.world_size == 72
        assert header.local_rank == rank % 8
        assert header.node_rank == rank // 8
        assert header.device_total_bytes == DEVICE_TOTAL_BYTES == 80 * GIB
    assert len({recording.header.host for recording in ranks.values()}) == 9
    assert len({recording.header.attempt for recording in ranks.values()}) == 72
    meshes = {tuple(sorted(r.header.mesh.items())) for r in ranks.values()}
    assert len(meshes) == 72


def test_tables_and_columns_are_a_real_recording_s(ranks):
    host = {table.name for table in TIMED_TABLES if table.per_host}
    every = {table.name for table in TIMED_TABLES} - host
    for rank, recording in ranks.items():
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
    columns = list(ranks[0].steps)
    assert columns == ["time_ns", "step", *(column.name for column in STEP_COLUMNS)]


def test_every_rank_keeps_torch_s_relations_at_every_step(ranks):
    for recording in ranks.values():
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
        assert (steps["tokens"] % 256 == 0).all()
        assert (np.diff(steps["tokens"]) > 0).all()


def test_a_digest_covers_the_rows_before_it(ranks):
    for recording in ranks.values():
        num_rows = num_chunks = 0
        due_rows, due_chunks = 1024, 64
        digests = iter(recording.digests)
        chunks = iter(recording.chunks)
        # Replay the file: after each chunk, is a digest where the recorder writes it?
        kinds = [k for k in recording.kinds if k in ("chunk", "digest")]
        previous = 0
        for index, kind in enumerate(kinds):
            if kind == "chunk":
                num_rows += len(next(chunks)[1].columns[0])
                num_chunks += 1
                continue
            offset, digest = next(digests)
            is_last = index == len(kinds) - 1
            due = num_rows >= due_rows or num_chunks >= due_chunks
            assert due or (is_last and recording.close)
            assert digest.previous_offset == previous
            assert sum(table.num_rows for table in digest.tables) == num_rows
            due_rows, due_chunks = (
                max(1024, num_rows * 1.25),
                max(64, num_chunks * 1.25),
            )
            previous = offset
        assert num_chunks < due_chunks
        if recording.close is not None:
            assert recording.kinds[-2:] == ["digest", "close"]
            assert recording.close.digest_offset == previous > 0


def test_directories_and_rollups_equal_the_chunks(ranks):
    recording = ranks[0]
    directory = [
        (int(offset), int(rows), int(first), int(last))
        for _, digest in recording.digests
        for table in digest.tables
        for offset, rows, first, last in zip(
            table.chunk_offset,
            table.chunk_rows,
            table.chunk_first_step,
            table.chunk_last_step,
            strict=True,
        )
    ]
    chunks = [
        (offset, len(c.columns[1]), int(c.columns[1].min()), int(c.columns[1].max()))
        for offset, c in recording.chunks
    ]
    assert sorted(directory) == sorted(chunks)
    _, digest = recording.digests[-1]
    assert len(digest.schemas) == len(digest.tables) == len(recording.tables)
    assert [note.kind for note in digest.notes] == [n.kind for n in recording.notes]
    for table in digest.tables:
        schema = recording.schemas[table.schema_id]
        rows = recording.tables[schema.table]
        assert table.fine_rows == 1  # shorter than the rollup: held row by row
        for column in schema.columns[2:]:
            rolled, width, bound = (
                (table.fine, table.fine_rows, FINE_BUCKETS)
                if column.headline
                else (table.coarse, table.coarse_rows, COARSE_BUCKETS)
            )
            values = rows[column.name].astype(float)
            values[rows[column.name] == ABSENT] = np.nan
            starts = np.arange(0, len(values), width)
            assert len(starts) <= bound
            expected = np.fmax.reduceat(values, starts)
            got = rolled[f"{column.name}:max"].astype(float)
            got[got == float(ABSENT)] = np.nan
            np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_the_imbalanced_rank_holds_nine_gib_more_than_the_others(ranks):
    (rank,) = FAULTS["imbalance"].ranks
    assert rank == 13
    others = np.array([r.steps["allocated_bytes"] for r in healthy(ranks)])
    surplus = ranks[rank].steps["allocated_bytes"] - np.median(others, axis=0)
    assert np.abs(surplus - IMBALANCE_BYTES).max() < 0.2 * GIB
    assert (others.max(axis=0) - others.min(axis=0)).max() < GIB


def test_the_leaking_rank_keeps_what_the_words_say_of_every_step(ranks):
    fault = FAULTS["leak"]
    (rank,) = fault.ranks
    held = ranks[rank].steps["allocated_bytes"]
    modelled = modelled_steps(ranks[rank])
    leaking = modelled[modelled >= fault.first_step]
    kept = np.diff(held[leaking]) / np.diff(leaking)
    assert (kept == fault.bytes_per_step).all()
    assert (np.diff(held[: fault.first_step]) == 0).all()
    assert held[-1] - held[0] == pytest.approx(10 * GIB, rel=0.02)
    assert f"keeps {fault.bytes_per_step / 2**20:.1f} MiB" in fault.words
    for other in healthy(ranks):
        held = other.steps["allocated_bytes"][modelled_steps(other)]
        assert (np.diff(held) == 0).all()


def modelled_steps(recording):
    """Steps that no history shows: of those the allocator itself tells."""
    shown = {
        step
        for capture in recording.captures
        if capture.kind == "history"
        for step in range(capture.step + 1 - STEPS_BEFORE, capture.step + 1)
    }
    return np.array([s for s in recording.steps["step"].tolist() if s not in shown])


def test_the_out_of_memory_rank_fills_its_device_and_ends_without_a_close(ranks):
    fault = FAULTS["oom"]
    (rank,) = fault.ranks
    recording = ranks[rank]
    steps = recording.steps
    assert recording.close is None
    assert steps["step"][-1] == fault.last_step == 269
    assert steps["reserved_bytes"][-1] == DEVICE_TOTAL_BYTES - NON_TORCH_BYTES
    assert steps["num_ooms"][-4:].tolist() == [0, 1, 2, 3]
    retries = steps["num_alloc_retries"]
    assert (np.diff(retries) >= 0).all()
    assert retries[-1] >= 12
    assert retries[fault.first_step] == 0
    (note,) = recording.notes_of("oom")
    assert note.step == fault.last_step
    for name, value in note.data["values"].items():
        assert steps[name][-1] == value
    assert "reserved_bytes" in note.data["values"]
    for other in healthy(ranks):
        assert other.close is not None
        assert other.close.how == "closed"
        assert other.steps["num_ooms"].max() == 0
        assert len(other.steps["step"]) == 300


def test_the_straggler_takes_longer_from_its_step_on(ranks):
    fault = FAULTS["straggler"]
    (rank,) = fault.ranks
    others = np.array([r.steps["step_time_seconds"] for r in healthy(ranks)])
    assert np.isnan(others[:, 0]).all()  # nothing to be timed from
    ratio = ranks[rank].steps["step_time_seconds"][1:] / np.median(
        others[:, 1:], axis=0
    )
    before, after = ratio[: fault.first_step - 1], ratio[fault.first_step - 1 :]
    assert np.abs(before - 1).max() < 0.05
    assert np.abs(after - STRAGGLER_FACTOR).max() < 0.05


def test_the_hungry_host_s_workers_grow_and_fill_its_memory(ranks):
    fault = FAULTS["dataloader"]
    assert len(fault.ranks) == 8
    for rank, recording in ranks.items():
        table = recording.tables["workers"]
        largest = table["workers_max_rss_bytes"]
        assert (table["num_workers"] == NUM_WORKERS).all()
        assert (table["workers_rss_bytes"] > (NUM_WORKERS - 1) * 0.9 * largest).all()
        if rank in fault.ranks:
            assert largest[-1] == pytest.approx(WORKER_BYTES, rel=0.02)
        else:
            assert largest.max() < 2 * GIB
    hungry = ranks[fault.ranks[0]].tables["memory"]
    assert hungry["memory_used_bytes"][-1] > 0.85 * hungry["memory_total_bytes"][-1]
    usual = ranks[0].tables["memory"]
    assert usual["memory_used_bytes"].max() < 0.2 * usual["memory_total_bytes"][-1]


def test_a_planted_fault_is_marked_on_its_first_rank_and_on_rank_0(ranks):
    for rank, recording in ranks.items():
        labels = [note.data["label"] for note in recording.notes_of("mark")]
        expected = [
            f"planted: {f.words}" for f in FAULTS.values() if rank in (0, f.ranks[0])
        ]
        assert sorted(labels) == sorted(expected)


def digest_of(directory) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*.events")
    }


def test_equal_settings_give_equal_bytes_however_many_processes_write(tmp_path):
    run = SimulatedRun(num_ranks=70, num_steps=12, metrics="8")
    one = write_run(run, tmp_path / "one")
    two = write_run(run, tmp_path / "two", num_processes=2)
    other = SimulatedRun(num_ranks=70, num_steps=12, metrics="8", seed=1)
    write_run(other, tmp_path / "other")
    assert digest_of(tmp_path / "one") == digest_of(tmp_path / "two")
    assert one.num_bytes == two.num_bytes
    assert one.num_bytes == sum(
        path.stat().st_size for path in (tmp_path / "one").rglob("*.events")
    )
    seeds = digest_of(tmp_path / "one"), digest_of(tmp_path / "other")
    assert not set(seeds[0].values()) & set(seeds[1].values())


def test_eight_metrics_are_eight_columns_of_one_table(tmp_path):
    run = SimulatedRun(num_ranks=3, num_steps=2500, metrics="8", rows_per_chunk=100)
    write_run(run, tmp_path)
    for recording in read_run(tmp_path).values():
        assert list(recording.tables) == ["step"]
        assert set(recording.steps) == {"time_ns", "step", *EIGHT_METRICS}
        num_steps = len(recording.steps["step"])
        assert (recording.steps["step"] == np.arange(num_steps)).all()
        if recording.close is not None:
            # So small a file has one at its end alone.
            covered = [digest.tables[0].num_rows for _, digest in recording.digests]
            assert covered == [2500]


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 5, 9])
def test_few_ranks_get_the_faults_that_fit_them(tmp_path, num_ranks):
    run = SimulatedRun(num_ranks=num_ranks, num_steps=3)
    written = write_run(run, tmp_path)
    recordings = read_run(tmp_path)
    assert len(recordings) == num_ranks == written.num_files
    assert len(written.planted) == min(num_ranks, 5)
    faults = plan_faults(num_ranks, 3)
    single = [f.ranks[0] for f in faults if f.kind != "dataloader"]
    assert len(set(single)) == len(single)
    killed = [rank for rank, recording in recordings.items() if recording.close is None]
    assert killed == [f.ranks[0] for f in faults if f.kind == "oom"]


def test_a_run_is_never_written_over_another(tmp_path):
    run = SimulatedRun(num_ranks=1, num_steps=1)
    write_run(run, tmp_path)
    before = digest_of(tmp_path)
    with pytest.raises(FileExistsError, match="not empty"):
        write_run(run, tmp_path)
    assert digest_of(tmp_path) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_ranks": 0},
        {"num_ranks": 100_001},
        {"num_ranks": 1, "num_steps": 0},
        {"num_ranks": 1, "seed": -1},
        {"num_ranks": 1, "rows_per_chunk": 0},
    ],
)
def test_numbers_out_of_range_are_refused_with_the_range(wrong):
    with pytest.raises(ValueError, match=r"give a number from \d+ to \d+"):
        SimulatedRun(**wrong)
