"""Runs a program in the environment of the packages that MemBoard is compared with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("MEMBOARD_PEERS_PYTHON", "")
ROOT = Path(__file__).resolve().parents[2]

needs_peers = pytest.mark.skipif(not PYTHON, reason="MEMBOARD_PEERS_PYTHON is not set")


def run(program: str, settings: dict[str, Any], *, ranks: int = 1) -> str:
    """What `programs/<program>.py` prints; `ranks` of it under torchrun."""
    launcher = ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    told = ["-m", f"tests.peers.programs.{program}", json.dumps(settings)]
    environment = {
        name: value for name, value in os.environ.items() if "MEMBOARD" not in name
    }
    done = subprocess.run(
        [PYTHON, *(launcher if ranks > 1 else []), *told],
        env={
            **environment,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "NODE_RANK": "0",  # torchrun does not set what Composer reads
        },
        capture_output=True,
        text=True,
        check=False,
    )
    told = "\n".join(line for line in done.stderr.splitlines() if "USDT:" not in line)
    assert done.returncode == 0, f"{done.returncode}: {told[-4000:]}"
    return done.stdout
