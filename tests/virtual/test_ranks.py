"""Jobs of several ranks on virtual GPUs: all at once, and single ones of them alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.recordings import read_run
from tests.virtual.running import PATIENCE_S, PROGRAMS, ROOT, python

STEPS = 3


@pytest.fixture
def predict(virtual_python, tmp_path):
    """What `memboard run --on h100 --json` answers of a program, and its terminal."""

    def predict_it(program: str, *words: str, ranks: tuple[str, ...], code: int = 0):
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        target = program if program.endswith(".py") else PROGRAMS / f"{program}.py"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "memboard.tb_plugin.cli",
                "run",
                "--python",
                str(virtual_python),
                "--on",
                "h100",
                "--name",
                "job",
                "--json",
                *ranks,
                str(target),
                *words,
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=PATIENCE_S,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)["ranks"], done.stderr

    return predict_it


def ran(ranks):
    """That each took its steps and missed nothing."""
    for rank in ranks:
        assert (rank["ended"], rank["num_steps"]) == ("stopped", STEPS), rank
        assert rank["absent"] == []


def taken(ranks):
    """By rank, what its one device held."""
    names = ("peak_allocated_bytes", "peak_active_bytes", "peak_reserved_bytes")
    names += ("categories_bytes",)
    return {
        rank["rank"]: {name: device[name] for name in names}
        for rank in ranks
        for device in rank["devices"]
    }


@pytest.mark.parametrize(
    "words",
    [
        ("train_fsdp2",),
        pytest.param(("train_pipeline", "1f1b"), marks=pytest.mark.matrix),
    ],
)
def test_a_rank_alone_takes_what_it_takes_beside_all_others(predict, words, tmp_path):
    together, _ = predict(*words, ranks=("--nproc", "2"))
    ran(together)
    assert set(read_run(tmp_path / "memboard-runs" / "job")) == {0, 1}
    alone, _ = predict(*words, ranks=("--world-size", "2", "--ranks", "1"))
    ran(alone)
    assert taken(alone) == {1: taken(together)[1]}


def test_ddp_with_a_sampler_and_batch_norm_over_ranks(predict, tmp_path):
    ranks, said = predict(
        "train_ddp", str(tmp_path), ranks=("--world-size", "16", "--ranks", "9")
    )
    ran(ranks)
    assert "saved on rank 9" in said


def test_tensor_parallel_holds_a_part_of_each_layer(predict):
    ranks, _ = predict(
        "train_tensor_parallel", ranks=("--world-size", "4", "--ranks", "3")
    )
    ran(ranks)
    words, width, blocks = 512, 256, 3
    split = words * width + (width + 1) * words + blocks * (2 * width + 1) * 4 * width
    whole = 2 * width + blocks * 3 * width
    found = taken(ranks)[3]["categories_bytes"]
    assert found["param"] == pytest.approx(4 * (split // 4 + whole), rel=0.01)
    assert found["optimizer"] == pytest.approx(2 * found["param"], rel=0.01)


@pytest.mark.matrix
def test_two_dimensions_and_a_checkpoint_of_shards(predict, tmp_path):
    ranks, said = predict(
        "train_mesh",
        "2",
        str(tmp_path / "saved"),
        ranks=("--world-size", "8", "--ranks", "5"),
    )
    ran(ranks)
    assert "saved on rank 5" in said
    assert "saved on rank 0" not in said, "it was run for rank 5, and not asked for"
    width, blocks = 256, 4
    shard = blocks * ((2 * width + 1) * 4 * width // 8 + width // 4)
    held = taken(ranks)[5]["categories_bytes"]
    assert held["optimizer"] == pytest.approx(2 * 4 * shard, rel=0.01)


@pytest.mark.matrix
def test_a_stage_in_the_middle_learns_the_shapes_of_its_neighbours(predict):
    ranks, said = predict(
        "train_pipeline",
        "interleaved",
        ranks=("--world-size", "3", "--ranks", "1"),
    )
    ran(ranks)
    assert [rank["rank"] for rank in ranks] == [1]
    assert "rank 0 is done" not in said


@pytest.mark.parametrize(
    "how", ["store", pytest.param("tcp", marks=pytest.mark.matrix)]
)
def test_a_store_of_the_programs_own_waits_for_nobody(predict, how, tmp_path):
    ranks, said = predict(
        "train_own_store",
        how,
        str(tmp_path),
        ranks=("--world-size", "4", "--ranks", "2"),
    )
    ran(ranks)
    if how == "store":
        assert "2 run-7 {'NVIDIA H100 80GB HBM3'}" in said, "rank 0 has named the run"


SHARES = """
import torch
device = torch.device("cuda", 0)
held = torch.empty(23 << 29, dtype=torch.uint8, device=device)
weight = torch.nn.Parameter(torch.ones(8, device=device))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(10):
    weight.sum().backward()
    optimizer.step()
"""


@pytest.mark.matrix
def test_ranks_on_one_device_are_added_up_and_hosts_are_not(predict, tmp_path):
    (tmp_path / "shares.py").write_text(SHARES)
    words = ("--nproc", "2", "--on", "24GiB,8.9")
    ranks, _ = predict("shares.py", ranks=(*words, "--devices", "1"), code=3)
    for rank, other in zip(ranks, reversed(ranks), strict=True):
        (device,), (beside,) = rank["devices"], other["devices"]
        (context,) = beside["estimates"]
        assert device["others_low_bytes"] == (
            beside["peak_reserved_bytes"] + context["low_bytes"]
        )
        assert device["needed_high_bytes"] > device["capacity_bytes"]
    ranks, _ = predict("shares.py", ranks=(*words, "--per-host", "1"))
    for rank in ranks:
        (device,) = rank["devices"]
        assert device["others_high_bytes"] == 0


FAILS = """
import os, sys
import torch.distributed as dist
rank = int(os.environ["RANK"])
if rank == 1:
    raise ValueError("no data")
dist.init_process_group("gloo")
dist.recv_object_list([None], src=1)
"""


def test_a_rank_that_fails_ends_the_others(predict, tmp_path):
    (tmp_path / "fails.py").write_text(FAILS)
    ranks, _ = predict("fails.py", ranks=("--nproc", "2"), code=2)
    assert [rank["fit"] for rank in ranks] == ["cannot say"] * 2
    assert ranks[1]["error"] == "ValueError: no data"
    assert ranks[0]["error"] == "another rank failed before"


def test_a_rank_that_was_run_for_another_and_fails_is_told(predict, tmp_path):
    (tmp_path / "fails.py").write_text(FAILS)
    # What ranks send is taken over while torch is imported: theirs has not been yet.
    ranks = ("--python", python(), "--world-size", "2", "--ranks", "0")
    ranks, _ = predict("fails.py", ranks=ranks, code=2)
    (rank,) = ranks
    (words,) = rank["absent"]
    assert words.startswith(
        "Rank 1 sends objects to others, which go on with their own"
    )
    assert words.endswith("it was run for that, and ValueError: no data")
