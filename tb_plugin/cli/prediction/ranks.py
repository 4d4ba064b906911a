"""Ranks of a distributed job that run, with the environment that torchrun gives each."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PER_HOST: Final = 8
"""Processes of a host, unless something else is given."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Which ranks of how many run, and whether they run together."""

    kind: Literal["alone", "lone", "all"] = "alone"
    """alone: a process that is no rank; lone: some, one after the other, each as if all
    others were there; all: every one, at the same time, on the same devices."""
    world_size: int = 1
    per_host: int = 1
    chosen: tuple[int, ...] = (0,)

    def rounds(self) -> list[list[dict[str, str]]]:
        """The variables of the processes that run at the same time, round by round."""
        if self.kind == "alone":
            return [[{}]]
        job = {
            "MASTER_PORT": str(_free_port()),
            "TORCHELASTIC_RUN_ID": secrets.token_hex(4),
        }
        each = [self.variables(rank, job) for rank in self.chosen]
        return [each] if self.kind == "all" else [[variables] for variables in each]

    def host(self, rank: int) -> int | None:
        """The host whose devices a rank shares with others; None: it runs alone."""
        return rank // self.per_host if self.kind == "all" else None

    def variables(self, rank: int, job: Mapping[str, str]) -> dict[str, str]:
        """Of one rank; `job` has at least those that only the job as a whole knows."""
        host, local = divmod(rank, self.per_host)
        hosts = -(-self.world_size // self.per_host)
        on_host = min(self.per_host, self.world_size - host * self.per_host)
        numbers = {
            "RANK": rank,
            "WORLD_SIZE": self.world_size,
            "LOCAL_RANK": local,
            "LOCAL_WORLD_SIZE": on_host,
            "GROUP_RANK": host,
            "GROUP_WORLD_SIZE": hosts,
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": self.world_size,
            "ROLE_NAME": "default",
            "MASTER_ADDR": "127.0.0.1",
            "TORCHELASTIC_RESTART_COUNT": 0,
            "TORCHELASTIC_MAX_RESTARTS": 0,
            "TORCHELASTIC_USE_AGENT_STORE": False,
            "OMP_NUM_THREADS": 1,
        }
        if self.kind == "lone":
            # Their threads would ask a store of Python while the interpreter ends.
            numbers["TORCH_NCCL_ENABLE_MONITORING"] = 0
        return {**job, **{variable: str(value) for variable, value in numbers.items()}}


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
