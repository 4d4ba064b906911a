"""The first block of code of each page does as it stands what the page says."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tb_plugin.docs import NAMES
from tests import programs
from tests.builders import RunBuilder
from tests.conftest import with_patience
from tests.test_docs import blocks_of

ROOT = Path(__file__).parent.parent
RECORDED = ROOT / "tests/virtual/recorded/torch2.13_native.pickle.gz"

DEMO = "is the README's first command, which .ci/run runs"

PARSED = {
    "getting-started": DEMO,
    "pages": DEMO,
    "composer": "needs Composer, which pins another torch",
    "contributing": "runs all tests",
    "kubernetes": "needs a cluster",
    "measured": "is a benchmark",
    "predict": "needs torch's CUDA build; tests/virtual runs it",
    "ray": "needs Ray",
    "slurm": "needs Slurm",
    "stores": "installs a package",
}
"""Pages whose block `test_docs.py` only parses, and why."""
NEEDS = {"trainers": "transformers"}

TRAIN = """
import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=parser.parse_args().lr)
for _ in range(3):
    model(torch.rand(4, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
"""What the pages call train.py."""

IN_FOLDER = """
import os, pathlib, sys
os.chdir(sys.argv[1])
exec(compile(pathlib.Path("block.py").read_text(), "block.py", "exec"))
"""

MEMBOARD = """
import os, signal, subprocess, sys
words = sys.argv[1:]
command = [sys.executable, "-m", "tb_plugin.cli", *words]
if words[0] not in ("open", "demo") or "--no-serve" in words:
    os.execv(sys.executable, command)
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
    for line in served.stdout:
        print(line, end="")
        if "until Ctrl-C" in line:
            served.send_signal(signal.SIGINT)
sys.exit(served.returncode)
"""
"""The command; what serves until it is interrupted is interrupted once it serves."""


def commands(folder: Path) -> Path:
    """bin/ with what an installation puts there."""
    folder.mkdir()
    (folder / "memboard.py").write_text(MEMBOARD)
    modules = {"torchrun": "-m torch.distributed.run", "python": ""}
    modules |= {"tensorboard": "-m tensorboard.main"}
    modules |= {"memboard": str(folder / "memboard.py")}
    for name, module in modules.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        script.chmod(0o755)
    return folder


def inputs(folder: Path) -> None:
    """The files that the pages name."""
    RunBuilder(folder / "runs" / "exp1").simple(2, 20)
    (folder / "train.py").write_text(TRAIN)
    (folder / "package").mkdir()
    (folder / "package" / "train.py").write_text(TRAIN)
    snapshot = gzip.decompress(RECORDED.read_bytes())
    (folder / "dumps").mkdir()
    for name in ("snapshot", "rank0", "rank1", "dumps/rank0_memory_snapshot"):
        (folder / f"{name}.pickle").write_bytes(snapshot)
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
    trace = {"schemaVersion": 1, "traceEvents": [{**event, "ts": 1, "dur": 2}]}
    (folder / "log").mkdir()
    (folder / "log" / "host_1.1.pt.trace.json").write_text(json.dumps(trace))


@pytest.fixture(scope="module")
def run_block(tmp_path_factory):
    """Runs a block, each distinct one once."""

    @cache
    def run(kind: str, text: str) -> None:
        folder = tmp_path_factory.mktemp("block")
        bin_dir = commands(folder / "bin")
        work = folder / "work"
        work.mkdir()
        inputs(work)
        environment = {
            **os.environ,
            "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": with_patience(
                f"{ROOT}{os.pathsep}{ROOT / 'tb_plugin/named'}"
            ),
            "BROWSER": "true",
            "OMP_NUM_THREADS": "1",
            "MEMBOARD_CACHE_DIR": str(folder / "cache"),
        }
        if kind == "python":
            (work / "block.py").write_text(text)
            done = programs.run(IN_FOLDER, work, check=False, env=environment)
        else:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=work,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        shutil.rmtree(folder)

    return run


def test_every_page_that_is_only_parsed_is_one():
    assert set(PARSED) <= set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PARSED])
def test_the_first_block_runs_as_it_stands(name, run_block):
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    kind, text = blocks_of(name)[0]
    run_block(kind, text)
