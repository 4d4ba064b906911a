"""The first block of code of each page, and all later commands, do what the page says."""

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

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.docs import NAMES
from tests import programs
from tests.test_docs import TEXTS, blocks_of

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
ELSEWHERE = {
    "--on ": "needs torch's CUDA build; tests/virtual runs such",
    "accelerate": "torchrun starts the same",
    "import-config train.py": "needs a program of Composer",
    "torchrun --nproc-per-node": "the page torchrun starts the same",
    "memboard demo": "first blocks run it",
    "#SBATCH": "needs Slurm",
    "$SLURM": "needs Slurm",
    "npx": "runs tests",
    "pytest": "runs tests",
    "--nnodes": "needs several hosts",
    "/shared": "needs a folder that hosts share",
    "://": "needs a store",
    "srun": "needs Slurm",
}
"""Commands that are only parsed, by what is in them, and why."""

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

SERVED = """
import os, signal, subprocess, sys
python, module, *words = sys.argv[1:]
command = [python, "-m", module, *words]
is_served = module == "tensorboard.main" or words[0] in ("open", "demo")
if not is_served or {"--no-serve", "--inspect"} & {*words}:
    os.execv(python, command)
said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
is_stopped = False
with subprocess.Popen(command, **said) as served:
    for line in served.stdout:
        print(line, end="")
        if "until Ctrl-C" in line or "CTRL+C to quit" in line:
            is_stopped = True
            served.send_signal(signal.SIGINT)
sys.exit(0 if is_stopped and module == "tensorboard.main" else served.returncode)
"""
"""A Python and its module; one that serves is interrupted once it serves."""


def commands(folder: Path, python: Path) -> Path:
    """bin/ with what an installation puts there, run by this Python."""
    folder.mkdir()
    (folder / "served.py").write_text(SERVED)
    (folder / "python").symlink_to(python)
    served = f'"{sys.executable}" "{folder / "served.py"}" "{python}"'
    scripts = {
        "torchrun": f'"{python}" -m torch.distributed.run',
        "tensorboard": f"{served} tensorboard.main",
        "memboard": f"{served} memboard.tb_plugin.cli",
    }
    for name, command in scripts.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)
    return folder


def inputs(folder: Path, recording: Path) -> None:
    """The files that the pages name."""
    for name in ("runs/exp1", "memboard-runs/train"):
        shutil.copytree(recording, folder / name)
    (folder / "train.py").write_text(TRAIN)
    (folder / "package").mkdir()
    (folder / "package" / "train.py").write_text(TRAIN)
    snapshot = gzip.decompress(RECORDED.read_bytes())
    (folder / "dumps").mkdir()
    for name in (
        "snapshot",
        "rank0",
        "rank1",
        "dumps/rank0",
        "dumps/rank1",
        "dumps/rank0_memory_snapshot",
    ):
        (folder / f"{name}.pickle").write_bytes(snapshot)
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
    trace = {"schemaVersion": 1, "traceEvents": [{**event, "ts": 1, "dur": 2}]}
    for name in (
        "log/host_1.1.pt.trace.json",
        "traces/rank0.json",
        "traces/rank1.json",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(trace))
    (folder / "trace.json.gz").write_bytes(gzip.compress(json.dumps(trace).encode()))
    profiler = "profiler: {schedule: {skip_first: 1, wait: 0, warmup: 1, active: 4}}"
    (folder / "train.yaml").write_text(profiler)
    settings = "memprofiler_cfg: {enabled: true, collect_funcs: {default: [step]}}"
    (folder / "memprofiler.yaml").write_text(settings)


@pytest.fixture(scope="module")
def run_block(tmp_path_factory, forking_python):
    """Runs a block, each distinct one once."""
    demo = tmp_path_factory.mktemp("demo")
    words = ["--simulate", "2", "--steps", "20", "--no-serve", "--out", str(demo)]
    assert main(["demo", *words]) == 0

    @cache
    def run(kind: str, text: str) -> None:
        folder = tmp_path_factory.mktemp("block")
        bin_dir = commands(folder / "bin", forking_python)
        work = folder / "work"
        work.mkdir()
        inputs(work, demo / "simulated-2x20")
        environment = {
            **os.environ,
            "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / '.package'}",
            "BROWSER": "true",
            "OMP_NUM_THREADS": "1",
            "PYTHON_EXEC": str(forking_python),  # of torchrun's ranks
            "MEMBOARD_CACHE_DIR": str(folder / "cache"),
            "HOME": str(folder),
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
        # The process that makes reports of dumps may still be removing its own files.
        shutil.rmtree(folder, ignore_errors=True)

    return run


def test_every_page_that_is_only_parsed_is_one():
    assert set(PARSED) <= set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PARSED])
def test_the_first_block_runs_as_it_stands(name, run_block):
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    kind, text = blocks_of(name)[0]
    run_block(kind, text)


def later_commands() -> dict[str, str]:
    """Each page's commands behind its first block, without what others run."""
    found, begun = {}, set()
    for page in TEXTS:
        bash = [text for kind, text in blocks_of(page)[1:] if kind == "bash"]
        lines = "".join(bash).replace("\\\n", " ").splitlines()
        new = [line for line in lines if line[:1] != "#" and line not in begun]
        begun |= {*new}
        found[page] = "\n".join(
            line for line in new if not any(word in line for word in ELSEWHERE)
        )
    return {page: text for page, text in found.items() if text}


LATER = later_commands()


@pytest.mark.parametrize("page", LATER)
def test_later_commands_run_as_they_stand(page, run_block):
    run_block("bash", LATER[page])
