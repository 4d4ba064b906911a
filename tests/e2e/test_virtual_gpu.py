"""The installed wheel puts a program on a virtual GPU, whose sources it brings along."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.virtual.running import PATIENCE_S, ROOT, python

TRAINS = """
import torch
weight = torch.nn.Parameter(torch.ones(1024, 1024, device="cuda"))
optimizer = torch.optim.AdamW([weight])
while True:
    (weight @ weight).sum().backward()
    optimizer.step()
"""


def test_the_wheel_runs_a_program_on_a_virtual_gpu(viewer, tmp_path):
    (tmp_path / "train.py").write_text(TRAINS)
    named = python()
    constraints = str(ROOT / "tests" / "constraints.txt")
    # What memboard[virtual] asks for, but for the compiler: this machine has one.
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            viewer / "python",
            "install",
            "--quiet",
            "-c",
            constraints,
            "pyelftools",
        ],
        check=True,
    )
    variables = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    done = subprocess.run(
        [
            viewer / "memboard",
            "run",
            "--json",
            "--python",
            named,
            "--on",
            "h100",
            "train.py",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=PATIENCE_S,
        env={**variables, "MEMBOARD_CACHE_DIR": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (rank,) = json.loads(done.stdout)["ranks"]
    assert rank["num_steps"] == 3
    assert rank["devices"][0]["categories_bytes"]["optimizer"] >= 8 << 20
