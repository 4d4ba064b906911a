"""Programs that really run out of a virtual GPU's memory, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memboard.collector.virtual.current_device import virtual_device
from memboard.collector.virtual.devices import parse_device
from memboard.collector.virtual.environment import environment
from tests.errors_found import errors_in
from tests.programs import Program

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_S = 300
ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def python() -> str:
    """The Python with a CUDA build of torch; skips where none is named."""
    named = os.environ.get("MEMBOARD_VIRTUAL_PYTHON")
    if named:
        return named
    if virtual_device() is None or find_spec("torch") is None:
        pytest.skip("MEMBOARD_VIRTUAL_PYTHON names no Python with torch's CUDA build")
    return sys.executable


@dataclass(frozen=True)
class Ran:
    """A program that has ended."""

    run: Path
    code: int
    steps: int
    """It got through."""
    error: str

    @property
    def ran_out(self) -> bool:
        return self.code != 0 and "OutOfMemoryError" in self.error

    def verdict(self) -> dict[str, Any]:
        """The one out-of-memory error, as `memboard report --json` tells it."""
        (found,) = errors_in(self._findings())
        return found

    def findings(self) -> dict[str, dict[str, Any]]:
        """All findings by key."""
        return {one["key"]: one for one in self._findings()["findings"]}

    def _findings(self) -> dict[str, Any]:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "memboard.tb_plugin.cli",
                "report",
                "--json",
                str(self.run),
            ],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            timeout=PATIENCE_S,
        )
        ((run,),) = [json.loads(done.stdout)["runs"]]
        findings: dict[str, Any] = run["findings"]
        return findings


class Machine:
    """Virtual devices that programs of one test share."""

    def __init__(self, folder: Path, device: str, **options: Any) -> None:
        self._folder = folder
        self.variables = environment(
            parse_device(device),
            python=python(),
            accounting=folder / "accounting",
            **options,
        )
        for name in ALLOCATOR:
            self.variables.pop(name, None)
        self.variables["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        )

    def start(self, program: str, *arguments: str, **more: str) -> Program:
        path, variables = PROGRAMS / f"{program}.py", {**self.variables, **more}
        return Program(None, path, *arguments, env=variables, python=python())

    def run(self, program: str, *arguments: str, **more: str) -> Ran:
        """Run to the end; `more` are environment variables."""
        number = len(list(self._folder.glob("run*")))
        run = self._folder / f"run{number}"
        run.mkdir()
        process = self.start(program, str(run), *arguments, **more)
        out, error = process.communicate(timeout=PATIENCE_S)
        steps = sum(line.startswith("step ") for line in out.splitlines())
        return Ran(run, process.returncode, steps, error)
