"""`memboard run --on` runs nothing that lies in the current folder before the program."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from memboard.collector.virtual.torch_build import torch_of
from tests.virtual.running import PATIENCE_S, python

if TYPE_CHECKING:
    from pathlib import Path

CLI = """
import sys
sys.path[0] = "/dev/null"
from memboard.tb_plugin.cli import main
sys.exit(main())
"""
"""As the installed command, in whose path the current folder is not."""

COMMAND = [sys.executable, "-c", CLI, "run"]

PLANTED = ("json", "re", "runpy", "ctypes", "memboard", "msgspec", "psutil", "torch")
PLANT = """
import sys
print("PLANTED", __name__, file=sys.stderr)
raise SystemExit(3)
"""
PROGRAM = """
import json, sys, torch
import beside
torch.ones(4, device="cuda")
print("PATH", json.dumps(sys.path[:1]), file=sys.stderr)
print(beside.TEXT, file=sys.stderr)
"""


def run(folder: Path, interpreter: str, *words: str) -> str:
    """What it says on stderr."""
    done = subprocess.run(
        [*COMMAND, "--python", interpreter, "--on", "24GiB,8.9", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


@pytest.fixture
def program(tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM)
    (folder / "beside.py").write_text("TEXT = 'what lies beside it'\n")
    return folder


def test_modules_of_the_current_folder_are_not_run(tmp_path, program):
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(PLANT)
    said = run(tmp_path, python(), str(program / "train.py"))
    assert "PLANTED" not in said
    assert f'PATH ["{program}"]' in said
    assert "what lies beside it" in said


def test_a_module_is_looked_for_in_the_current_folder(program):
    said = run(program, python(), "-m", "train")
    assert f'PATH ["{program}"]' in said
    assert "what lies beside it" in said


def test_a_python_without_memboard_uses_ours(tmp_path, program):
    """It has torch, and what a recording needs."""
    bare = tmp_path / "bare"
    subprocess.run(
        [python(), "-m", "venv", "--without-pip", "--symlinks", bare], check=True
    )
    (packages,) = bare.glob("lib/python*/site-packages")
    # What is in the folder itself: its files that name others are not read.
    (packages / "others.pth").write_text(f"{torch_of(python()).folder.parent}\n")
    said = run(program, str(bare / "bin" / "python"), "train.py")
    assert "what lies beside it" in said
