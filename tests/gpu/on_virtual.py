"""Runs tests on the virtual GPU: every test of this folder, or those named.

    MEMBOARD_VIRTUAL_PYTHON=.venv-virtual/bin/python python tests/gpu/on_virtual.py [...]

Arguments are pytest's. The Python named must have a CUDA build of torch, pytest and what
the tests import; without the variable it is this one. `MEMBOARD_VIRTUAL_ON` is the device
(`h100`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from memboard.collector.virtual.devices import parse_device
    from memboard.collector.virtual.environment import (
        VirtualGpuUnavailable,
        environment,
    )

    python = os.environ.get("MEMBOARD_VIRTUAL_PYTHON") or sys.executable
    device = parse_device(os.environ.get("MEMBOARD_VIRTUAL_ON") or "h100")
    try:
        variables = environment(device, python=python)
    except VirtualGpuUnavailable as error:
        raise SystemExit(f"on_virtual: {error}") from None
    arguments = sys.argv[1:]
    if not any(Path(one.partition("::")[0]).exists() for one in arguments):
        arguments.append(str(HERE))
    os.chdir(ROOT)
    os.execve(python, [python, "-m", "pytest", *arguments], variables)


if __name__ == "__main__":
    main()
