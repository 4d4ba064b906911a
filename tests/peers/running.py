"""Runs a program in the environment of the packages that MemBoard is compared with."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import pytest

from tests.programs import Program

PYTHON = os.environ.get("MEMBOARD_PEERS_PYTHON", "")

needs_peers = pytest.mark.skipif(not PYTHON, reason="MEMBOARD_PEERS_PYTHON is not set")

_CODE = "import json, sys, {0}; {0}.main(json.loads(sys.argv[1]))"


def run(program: str, settings: dict[str, Any], *, ranks: int = 1) -> str:
    """What the first of `ranks` prints of `programs/<program>.py`.

    Its packages are imported once, and each run is forked from there.
    """
    module = f"tests.peers.programs.{program}"
    jobs = [
        Program(
            _CODE.format(module),
            json.dumps(settings),
            env=environment,
            python=PYTHON,
            preloaded=(module,),
        )
        for environment in _environments(ranks)
    ]
    printed = [job.communicate() for job in jobs]
    for job, (_, errors) in zip(jobs, printed, strict=True):
        told = "\n".join(line for line in errors.splitlines() if "USDT:" not in line)
        assert job.wait() == 0, f"{job.returncode}: {told[-4000:]}"
    return printed[0][0]


def _environments(ranks: int) -> list[dict[str, str]]:
    """Of each rank, as torchrun would set them; alone a program has none."""
    own = {name: value for name, value in os.environ.items() if "MEMBOARD" not in name}
    own["OMP_NUM_THREADS"] = "1"
    if ranks == 1:
        return [own]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "GROUP_RANK": "0",
        "NODE_RANK": "0",  # torchrun does not set what Composer reads
    }
    return [{**own, "RANK": str(n), "LOCAL_RANK": str(n)} for n in range(ranks)]
