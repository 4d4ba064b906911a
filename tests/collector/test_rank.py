"""Ranks by every launcher's variables, their precedence, and what they leave open."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memboard.collector.config import load
from memboard.collector.errors import ConfigError
from memboard.collector.format.names import parse_rank_file_name, rank_file_name
from memboard.collector.process.rank import (
    identify,
    job_key,
    mesh_coordinates,
    new_attempt,
)

ROOT = Path(__file__).parents[2]
TORCHRUN = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_RANK": "1",
}
SLURM = {
    "SLURM_PROCID": "7",
    "SLURM_LOCALID": "3",
    "SLURM_NTASKS": "16",
    "SLURM_NODEID": "1",
}
MPI = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}


def numbers(environ, **keywords):
    who = identify(load(None, **keywords), environ)
    found = who.rank, who.local_rank, who.world_size, who.local_world_size
    return *found, who.node_rank, who.settled


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, (0, 0, 1, None, None, False)),
        (TORCHRUN, (5, 1, 8, 4, 1, True)),
        (SLURM, (7, 3, 16, None, 1, False)),
        (MPI, (2, 0, 4, 2, None, False)),
        (
            {"PMI_RANK": "3", "PMI_SIZE": "6", "MPI_LOCALRANKID": "1"},
            (3, 1, 6, None, None, False),
        ),
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "12"}, (7, 3, 12, None, 1, False)),
        # torchrun inside srun, mpirun inside a SLURM job: the innermost launcher knows.
        ({**SLURM, **TORCHRUN}, (5, 1, 8, 4, 1, True)),
        ({**SLURM, **MPI}, (2, 0, 4, 2, None, False)),
        # Lightning's launcher sets LOCAL_RANK alone.
        ({"LOCAL_RANK": "3"}, (0, 3, 1, None, None, False)),
        ({"RANK": "1"}, (1, 1, 2, None, None, False)),
    ],
)
def test_each_launchers_variables_are_understood(environ, expected):
    assert numbers(environ) == expected


def test_the_configuration_wins_over_every_launcher():
    found = numbers(TORCHRUN, rank=2, local_rank=0, world_size=3)
    assert found[:3] == (2, 0, 3)
    assert numbers({}, rank=3)[-1], "that settles it"


def test_a_rank_that_no_file_name_has_room_for_counts_as_not_set():
    environ = {"RANK": "12345678901", "WORLD_SIZE": "4"}
    assert identify(load(), environ).rank == 0
    assert identify(load(), {**environ, "RANK": "9999999"}).rank == 9_999_999
    assert parse_rank_file_name(rank_file_name(9_999_999, new_attempt(0))) is not None
    with pytest.raises(ConfigError, match="9999999"):
        load(rank=10**7)


def test_nonsense_in_the_environment_counts_as_not_set():
    assert numbers({"RANK": "two", "WORLD_SIZE": "-1"})[:3] == (0, 0, 1)
    assert numbers({"RANK": "", "WORLD_SIZE": " 4 "})[:3] == (0, 0, 4)


def test_a_rank_beyond_the_world_widens_the_world():
    assert numbers({"RANK": "9", "WORLD_SIZE": "4"})[2] == 10


class Distributed:
    """Stands in for torch.distributed."""

    def __init__(self, rank=None, world_size=None):
        self.rank, self.world_size = rank, world_size

    def is_available(self):
        return True

    def is_initialized(self):
        return self.rank is not None

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return self.world_size


def test_initialised_torch_distributed_beats_a_launcher_but_not_torchrun(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed", Distributed(3, 4))
    who = identify(load(None), SLURM)
    assert (who.rank, who.world_size, who.settled) == (3, 4, True)
    assert identify(load(None), TORCHRUN).rank == 5


def test_uninitialised_or_broken_torch_distributed_is_not_asked(monkeypatch):
    for module in (Distributed(), object()):
        monkeypatch.setitem(sys.modules, "torch.distributed", module)
        assert identify(load(None), {}).settled is False


def test_asking_does_not_import_torch():
    code = (
        "import sys; from memboard.collector.process.rank import identify; from memboard.collector.config import"
        " load; identify(load(None)); print('torch' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "False"


def test_the_job_key_is_the_same_on_every_rank_and_differs_between_starts():
    elastic = {
        "TORCHELASTIC_RUN_ID": "42",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "MASTER_ADDR": "node1",
        "MASTER_PORT": "29500",
    }
    ranks = [{**elastic, "RANK": str(rank), "LOCAL_RANK": "0"} for rank in range(3)]
    assert len({job_key(environ) for environ in ranks}) == 1
    keys = {
        job_key(elastic),
        job_key({**elastic, "TORCHELASTIC_RESTART_COUNT": "1"}),
        job_key({**elastic, "TORCHELASTIC_RUN_ID": "43"}),
        job_key({**elastic, "MASTER_PORT": "29501"}),
        job_key({"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "0"}),
        job_key({"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "1"}),
        job_key(
            {"SLURM_JOB_ID": "9", "SLURM_STEP_ID": "1", "SLURM_RESTART_COUNT": "1"}
        ),
    }
    assert len(keys) == 7
    assert job_key({"RANK": "0"}) == ""


def test_attempts_make_file_names_and_sort_by_time():
    seconds = 1_700_000_000
    moments = [seconds * 10**9 + offset for offset in (0, 10**6, 10**9, 3600 * 10**9)]
    attempts = [new_attempt(moment) for moment in moments]
    assert [attempt[:18] for attempt in sorted(attempts)] == [a[:18] for a in attempts]
    assert attempts[1].startswith("20231114T221320001-")
    for attempt in attempts:
        assert re.fullmatch(r"\d{8}T\d{9}-[0-9a-f]{8}", attempt)
        assert parse_rank_file_name(rank_file_name(12, attempt)).attempt == attempt
    assert len({new_attempt(0) for _ in range(100)}) == 100


class Mesh:
    def __init__(self, names, place):
        self.mesh_dim_names, self.place = names, place

    def get_coordinate(self):
        return self.place


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        (None, {}),
        (Mesh(("dp", "tp"), [1, 0]), {"dp": 1, "tp": 0}),
        (Mesh(None, [2]), {"dim0": 2}),
        (Mesh(("dp",), None), {}),  # this rank is not part of the mesh
        ({"pp": 3}, {"pp": 3}),
    ],
)
def test_mesh_coordinates(mesh, expected):
    assert mesh_coordinates(mesh) == expected


class BrokenMesh(Mesh):
    def get_coordinate(self):
        raise RuntimeError("not initialised")


@pytest.mark.parametrize(
    "mesh", ["dp", 3, {"dp": "x"}, Mesh(("a", "b"), [1]), BrokenMesh((), [])]
)
def test_what_is_no_mesh_is_refused_with_an_example(mesh):
    with pytest.raises(ConfigError, match="DeviceMesh or a mapping"):
        mesh_coordinates(mesh)


def test_a_real_device_mesh():
    torch = pytest.importorskip("torch")
    from torch.distributed.device_mesh import init_device_mesh

    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        assert mesh_coordinates(mesh) == {"dp": 0, "tp": 0}
        who = identify(load(None), {})
        assert (who.rank, who.world_size, who.settled) == (0, 1, True)
    finally:
        torch.distributed.destroy_process_group()
