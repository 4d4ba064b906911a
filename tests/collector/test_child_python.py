"""Pythons that we start: modules that lie in the current folder are not theirs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from memboard.collector.process.child_python import own_module
from tests.virtual.test_current_folder import CLI

PLANTED = ("json", "pickle", "runpy", "socket", "memboard", "tensorboard", "torch")
PLANT = """
import sys
print("PLANTED", __name__, sys.argv, file=sys.stderr, flush=True)
raise SystemExit(3)
"""


@pytest.fixture
def folder(tmp_path):
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(PLANT)
    return tmp_path


@pytest.mark.parametrize("version", [sys.version_info, (3, 10, 0)], ids=["own", "3.10"])
def test_a_module_is_run_with_its_arguments_and_those_of_the_folder_are_not(
    folder, monkeypatch, version
):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "version_info", version)
        command = own_module("json.tool", "--compact")
    done = subprocess.run(
        command,
        cwd=folder,
        input='{"a": 1}',
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"a": 1}


START = CLI.split("from memboard")[0]
"""As the installed command, in whose path the current folder is not."""

TENSORBOARD = """
from pathlib import Path
from memboard.collector.cli.tensorboard import serving
with serving(Path("runs"), 0) as server:
    print(server.url)
"""
SIMULATION = """
from pathlib import Path
from memboard.collector.simulate.run import write_run
from memboard.collector.simulate.series import SimulatedRun
run = SimulatedRun(num_ranks=34, num_steps=3, metrics="8")
print(write_run(run, Path("simulated"), num_processes=2).num_files, "files")
"""
TRAINING = """
from pathlib import Path
from memboard.collector.cli.demo.launch import plan_training
plan_training(1, 3, 60, 0).run(Path("trained"))
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [(TENSORBOARD, "http"), (SIMULATION, "34 files"), (TRAINING, "Trained 1 rank")],
    ids=["tensorboard", "simulation", "training"],
)
def test_a_demo_runs_nothing_that_lies_in_the_current_folder(folder, code, words):
    done = subprocess.run(
        [sys.executable, "-c", START + code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PLANTED" not in done.stdout + done.stderr
    assert words in done.stdout
