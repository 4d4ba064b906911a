"""Tries Pythons and numpys without torch: a fresh environment and a table row for each.

    python -m tests.supported FOLDER PYTHON[:NUMPY] ...

such as `/usr/bin/python3.12:1.26.4`. The wheel with its viewer is installed into FOLDER.
Each records a simulated run that dies of a lack of memory, reports it, and serves it.
Ends with 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.browser import tensorboard

ROOT = Path(__file__).parents[1]
NAMES = "import numpy, platform, tensorboard as t; print(platform.python_version(), numpy.__version__, t.__version__)"


def run(*command: object) -> str:
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = list(map(str, command))
    return subprocess.run(words, check=True, stdout=-1, text=True, env=alone).stdout


def row(folder: Path, wheel: Path, python: str, numpy: str) -> tuple[str, bool]:
    """One environment's row, and whether all went well."""
    run(python, "-m", "venv", "--clear", folder / "venv")
    programs = folder / "venv" / "bin"
    packages = (f"{wheel}[viewer]", f"numpy=={numpy}" if numpy else "numpy")
    run(programs / "python", "-m", "pip", "install", "--quiet", *packages)
    logdir = folder / "runs" / python.replace("/", "_")
    demo = ("--no-serve", "--simulate", "8", "--steps", "120", "--out", logdir)
    run(programs / "memboard", "demo", *demo)
    told = "Out of memory" in run(programs / "memboard", "report", logdir)
    arguments = ["--logdir", str(logdir)]
    program = [str(programs / "python"), "-m", "tensorboard.main"]
    with tensorboard(arguments, folder / "tensorboard.log", program) as server:
        shown = b"simulated" in server.get("data/plugin/memboard/runs")
    versions = run(programs / "python", "-c", NAMES).split()
    answers = ["yes" if one else "NO" for one in (told, shown)]
    return f"| {' | '.join([*versions, *answers])} |", told and shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON[:NUMPY]")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.folder = options.folder.resolve()
    build = ("-m", "build", "--wheel", "--outdir", options.folder / "dist", ROOT)
    run(sys.executable, *build)
    (wheel,) = (options.folder / "dist").glob("*.whl")
    print("| Python | numpy | TensorBoard | reported | page served |")
    print("|---|---|---|---|---|")
    code = 0
    for one in options.pythons:
        text, is_well = row(options.folder, wheel, *one.partition(":")[::2])
        print(text, flush=True)
        code |= not is_well
    return code


if __name__ == "__main__":
    sys.exit(main())
