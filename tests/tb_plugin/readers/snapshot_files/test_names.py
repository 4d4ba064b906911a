"""Rank, step and label out of the names that people and frameworks give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.formats.snapshots.files.names import (
    SnapshotName,
    alike,
    is_layout,
    likelihood,
    parse_names,
)


@pytest.mark.parametrize(
    ("path", "rank", "step", "label"),
    [
        ("snapshot.pickle", None, None, ""),
        ("memory_snapshot.pickle", None, None, ""),
        ("my_snapshot.pickle.203439", None, None, "my"),
        ("snapshot.pickle.1ce048", None, None, ""),
        ("memory_snapshot_rank3.pickle", 3, None, ""),
        ("memory_snapshot_rank0_step6.pkl", 0, 6, ""),
        ("oom_memory_snapshot_rank2_step17.pkl", 2, 17, "oom"),
        ("rank_3_memory_snapshot.pickle.gz", 3, None, ""),
        ("memory_snapshot_rank3.json.gz", 3, None, ""),
        ("iteration_10/rank3_memory_snapshot.pickle", 3, 10, ""),
        ("iteration_10_exit/rank3_memory_snapshot.pickle", 3, 10, "exit"),
        ("step_000000000010/000003_step_10.pickle", 3, 10, ""),
        ("step_000000000010_exit/000003_step_10.pickle", 3, 10, "exit"),
        ("step_4_rank3/snapshot.pickle", 3, 4, ""),
        ("oom_rank12/snapshot.pickle", 12, None, "oom"),
        ("step_5/rank_2/snapshot.pickle", 2, 5, ""),
        ("rank0.3.memory_snapshot.pickle", 0, 3, ""),
        ("rank7.ba30.memory_snapshot.pickle", 7, 30, ""),
        ("ep1-ba30-rank7.memory_snapshot.pickle", 7, 30, ""),
        ("rank0_oom_snapshot.pickle", 0, None, "oom"),
        ("oom_rank-5_snapshot.pickle", 5, None, "oom"),
        ("snapshot_rank05_p1d0c0t0.pickle", 5, None, "p1d0c0t0"),
        ("memory_snapshot_time17.5_rank3_x.pickle", 3, None, "time17.5_x"),
        ("snapshot_rank3_pid77.pickle", 3, None, "pid77"),
        ("text-to-SQL_snapshot.pickle", None, None, "text-to-SQL"),
        # What looks like a rank or a step and is none.
        (
            "memory_snapshot_200_mixed_precision.pickle",
            None,
            None,
            "200_mixed_precision",
        ),
        ("local_rank3_memory_snapshot.pickle", None, None, "local_rank3"),
        ("tp_rank1_memory_snapshot.pickle", None, None, "tp_rank1"),
        ("lora_rank8_memory_snapshot.pickle", None, None, "lora_rank8"),
        ("frank3_memory_snapshot.pickle", None, None, "frank3"),
        ("timestep5_memory_snapshot.pickle", None, None, "timestep5"),
        ("my_rank_3_things/snapshot.pickle", None, None, ""),
        ("memory_snapshot_rank12345678.pickle", None, None, "rank12345678"),
        (
            "memory_snapshot_step999999999999999999.pickle",
            None,
            None,
            "step" + "9" * 18,
        ),
    ],
)
def test_what_names_tell(path, rank, step, label):
    *folders, name = path.split("/")
    assert parse_names(name, folders) == SnapshotName(rank, step, None, label)


def test_the_name_of_the_file_goes_before_its_folders():
    said = parse_names("memory_snapshot_rank1.pickle", ["step_3", "rank_2"])
    assert (said.rank, said.step) == (1, 3)
    said = parse_names("snapshot.pickle", ["rank_1", "rank_2"])
    assert said.rank == 2, "the nearest folder"


def test_a_number_of_ranks_is_taken_where_it_is_said():
    assert parse_names("cgmem_rank0_world8_local0.pickle").world_size == 8
    assert parse_names("memory_snapshot_rank1_world0.pickle").world_size is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("snapshot.pickle", "yes"),
        ("dump_snapshot.pickle.418a6f", "yes"),
        ("cuda_snapshot.pkl", "yes"),
        ("oom_snapshot.pickle", "yes"),
        ("rank3_memory_snapshot.pickle.gz", "yes"),
        ("network-snapshot-000200.pkl", "maybe"),
        ("memory.pickle", "maybe"),
        ("000003_step_10.pickle", "yes"),
        ("snapshot_rank3_pid77.pickle", "yes"),
        ("rank3.pickle", "maybe"),
        ("data.pkl", "maybe"),
        ("memory_snapshot.json", "yes"),
        ("memory_timeline.json", "maybe"),
        ("config.json", "no"),
        ("snapshot", "no"),
        (".pickle", "no"),
        ("model.pt", "no"),
        ("memory_snapshot.pickle.tmp", "no"),
        ("x" * 300 + "_memory_snapshot.pickle", "no"),
    ],
)
def test_which_names_are_snapshots(name, expected):
    assert likelihood(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("step_10", "step_000000000010_exit", "oom_rank3")),
        *((name, True) for name in ("iteration_10", "rank_3", "rank3", "oom_rank-3")),
        *((name, True) for name in ("step_4_rank3", "rank3_step4", "global_step_7")),
        *((name, False) for name in ("steps", "rank", "oom", "exp_step_3", "run1", "")),
        ("step_3_of_my_search", False),
    ],
)
def test_which_folders_are_part_of_a_layout(name, expected):
    assert is_layout(name) is expected


@given(st.text(max_size=300), st.lists(st.text(max_size=40), max_size=3))
def test_any_name_is_parsed_and_what_is_found_is_sane(name, folders):
    said = parse_names(name, folders)
    likelihood(name)
    assert said.rank is None or 0 <= said.rank < 10**7
    assert said.step is None or 0 <= said.step <= 2**53
    assert len(said.label) <= 200
    assert all(c.isprintable() for c in said.label)


@given(st.integers(0, 9_999_999), st.integers(0, 10**12), st.sampled_from("_-. "))
def test_rank_and_step_come_back(rank, step, gap):
    name = f"memory_snapshot{gap}rank{rank}{gap}step{step}.pickle"
    assert parse_names(name) == SnapshotName(rank, step)


@pytest.mark.parametrize(
    ("name", "is_alike"),
    [
        ("dump_rank1.pickle", True),
        ("dump_rank0001.pickle", True),
        ("dump_rank1.pkl", False),
        ("dump_rank.pickle", False),
        ("dump_rank1_b.pickle", False),
        ("Dump_rank1.pickle", False),
    ],
)
def test_names_that_differ_in_their_numbers_alone_are_alike(name, is_alike):
    known = ["other.pickle", "dump_rank0.pickle"]
    assert alike([name], known) == ([name] if is_alike else [])
    assert alike([name], []) == []
