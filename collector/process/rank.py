"""This process's identity: rank, local_rank, world_size, node_rank, host, job, attempt.

Asked in this order, the first that knows wins:

1. the configuration;
2. `RANK` and `WORLD_SIZE`, which torchrun sets and torch.distributed reads;
3. torch.distributed, once it is initialised;
4. the launcher: Open MPI, MVAPICH, MPICH and Intel MPI (PMI), SLURM;
5. nobody: rank 0 of 1.

An answer from 4 or 5 is not settled: the program may yet call `init_process_group`
with other numbers (processes spawned inside one SLURM task all see the same variables).
Each step and each flush ask again until it is, and the writer then goes on in a file of
the right name.

torch is never imported here: what is not loaded cannot be initialised.
"""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.core.plain import text_of
from memboard.collector.core.source import TORCH_ERRORS
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.collector.config import RecordConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """This process within the job. Unknown is None."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int | None
    node_rank: int | None
    host: str
    job: str
    """Same text on every rank of one start of the job; empty where nothing tells."""
    settled: bool
    """Whether nothing that comes later can know better."""


class _Launcher(NamedTuple):
    """The variables of one launcher; the first of several that is set counts."""

    rank: tuple[str, ...]
    world_size: tuple[str, ...]
    local_rank: tuple[str, ...]
    local_world_size: tuple[str, ...]
    node_rank: tuple[str, ...]


_TORCH: Final = _Launcher(
    ("RANK",),
    ("WORLD_SIZE",),
    ("LOCAL_RANK",),
    ("LOCAL_WORLD_SIZE",),
    ("GROUP_RANK", "NODE_RANK"),
)

_OTHERS: Final = (
    _Launcher(
        ("OMPI_COMM_WORLD_RANK",),
        ("OMPI_COMM_WORLD_SIZE",),
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_SIZE",),
        (),  # OMPI_COMM_WORLD_NODE_RANK counts ranks on the node, not nodes
    ),
    _Launcher(
        ("MV2_COMM_WORLD_RANK",),
        ("MV2_COMM_WORLD_SIZE",),
        ("MV2_COMM_WORLD_LOCAL_RANK",),
        ("MV2_COMM_WORLD_LOCAL_SIZE",),
        (),
    ),
    _Launcher(
        ("PMI_RANK",),
        ("PMI_SIZE",),
        ("MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "SLURM_LOCALID"),
        ("MPI_LOCALNRANKS", "PALS_LOCAL_SIZE"),
        ("PALS_NODEID", "SLURM_NODEID"),
    ),
    # Last, because mpirun inside a SLURM job sees the variables of its own launch.
    _Launcher(
        ("SLURM_PROCID",),
        ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        ("SLURM_LOCALID",),
        ("SLURM_NTASKS_PER_NODE",),
        ("SLURM_NODEID",),
    ),
)

_MAX_DIMENSIONS: Final = 64
"""Of a mesh; torch's has far fewer, and a mapping may have no end."""

_MAX_DIGITS: Final = 7
"""More digits are no rank, and no file's name has room for them."""

_JOB: Final = (
    ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"),
    ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    ("PMIX_NAMESPACE",),
    ("OMPI_MCA_ess_base_jobid",),
    ("PMI_KVSNAME",),
    ("MASTER_ADDR", "MASTER_PORT"),
)
"""Variables that are equal on all ranks of one start and differ between starts."""


def identify(config: RecordConfig, environ: Mapping[str, str] = os.environ) -> Identity:
    """Who this process is, as far as can be known now. Cheap; may be asked again."""
    torch = _from_environment(_TORCH, environ)
    by_torch = torch.get("rank") is not None and torch.get("world_size") is not None
    numbers: dict[str, int | None] = dict(torch)
    if not by_torch:
        numbers = _from_distributed() or _from_others(environ) or numbers
        for field, value in torch.items():  # LOCAL_RANK is often set without RANK
            numbers[field] = value if numbers.get(field) is None else numbers[field]
    for field in ("rank", "local_rank", "world_size"):
        chosen = getattr(config, field)
        numbers[field] = numbers.get(field) if chosen is None else chosen
    rank = numbers.get("rank") or 0
    local_rank = numbers.get("local_rank")
    return Identity(
        rank=rank,
        local_rank=_guess_local_rank(rank) if local_rank is None else local_rank,
        world_size=max(numbers.get("world_size") or 1, rank + 1),
        local_world_size=numbers.get("local_world_size"),
        node_rank=numbers.get("node_rank"),
        host=socket.gethostname(),
        job=job_key(environ),
        settled=by_torch or config.rank is not None or "distributed" in numbers,
    )


def is_distributed() -> bool:
    """Whether torch.distributed is initialised: it then knows best. Half a microsecond."""
    module = sys.modules.get("torch.distributed")
    try:
        return module is not None and module.is_available() and module.is_initialized()
    except AttributeError:
        return False  # half imported


def job_key(environ: Mapping[str, str] = os.environ) -> str:
    """What all ranks of one start of the job share; empty where nothing tells."""
    parts = (
        ":".join(environ.get(name, "") for name in names)
        for names in _JOB
        if environ.get(names[0])
    )
    return "/".join(parts)


def new_attempt(now_ns: int) -> str:
    """Name of one start: UTC to the millisecond and a random suffix, sorts by time."""
    import secrets  # whoever only reads needs none

    seconds, rest = divmod(now_ns, 10**9)
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return f"{moment:%Y%m%dT%H%M%S}{rest // 10**6:03d}-{secrets.token_hex(4)}"


def mesh_coordinates(mesh: Any) -> dict[str, int]:
    """This rank's place in a DeviceMesh (or a mapping of them), by dimension name.

    Unnamed dimensions are `dim0`, `dim1` ...; empty where the rank is not in the mesh.

    Raises:
        ConfigError: `mesh` is neither a DeviceMesh nor a mapping of names to numbers.
    """
    if mesh is None:
        return {}
    try:
        if hasattr(type(mesh), "items"):
            return _coordinates(mesh.items())
        place = mesh.get_coordinate()
        if place is None:
            return {}
        names = mesh.mesh_dim_names or [f"dim{index}" for index in range(len(place))]
        return _coordinates(zip(names, place, strict=True))
    except TORCH_ERRORS as error:
        raise ConfigError(
            f"'mesh' must be a torch DeviceMesh or a mapping such as"
            f' {{"dp": 0, "tp": 1}}, got a {type(mesh).__name__} ({text_of(error)}).'
        ) from error


def _coordinates(pairs: Iterable[tuple[Any, Any]]) -> dict[str, int]:
    """Places by dimension name.

    Raises:
        ValueError: there are more than any mesh has.
    """
    first = tuple(islice(pairs, _MAX_DIMENSIONS + 1))
    if len(first) > _MAX_DIMENSIONS:
        raise ValueError(f"it has more than {_MAX_DIMENSIONS} dimensions")
    return {text_of(dimension): int(place) for dimension, place in first}


def _from_environment(
    launcher: _Launcher, environ: Mapping[str, str]
) -> dict[str, int | None]:
    return {
        field: _first_number(environ, names)
        for field, names in zip(launcher._fields, launcher, strict=True)
    }


def _from_others(environ: Mapping[str, str]) -> dict[str, int | None] | None:
    for launcher in _OTHERS:
        of_launcher = _from_environment(launcher, environ)
        if of_launcher["rank"] is not None:
            return of_launcher
    return None


def _from_distributed() -> dict[str, int | None] | None:
    if not is_distributed():
        return None
    module = sys.modules["torch.distributed"]
    try:
        rank, world_size = module.get_rank(), module.get_world_size()
    except (AttributeError, RuntimeError, ValueError):
        return None  # torn down this very moment
    return {"rank": rank, "world_size": world_size, "distributed": 1}


def _guess_local_rank(rank: int) -> int:
    """Ranks fill hosts in order, one per accelerator; without one, one host is all."""
    cuda = sys.modules.get("torch.cuda")
    try:
        # Counting devices is safe only once the program itself has started CUDA.
        count = cuda.device_count() if cuda and cuda.is_initialized() else 0
    except (AttributeError, RuntimeError):
        count = 0
    return rank % count if count else rank


def _first_number(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for variable in names:
        text = environ.get(variable, "").strip()
        if text.isdecimal() and len(text) <= _MAX_DIGITS:
            return int(text)
    return None
