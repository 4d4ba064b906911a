"""Tries releases of torch on the virtual GPU: an environment and a table row for each.

    python -m tests.virtual.versions FOLDER [2.6.0 2.9.1 ...] [--find-links WHEELS]

Each torch is installed alone into FOLDER (2 GB, deleted again), with the plain packages it
needs beside it, once for all. Runs `smoke` twice, with and without expandable segments, and
compares what was recorded with torch's own counters. Ends with 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memboard.collector.virtual.devices import Device, parse_device
from memboard.collector.virtual.environment import environment
from memboard.collector.virtual.unavailable import VirtualGpuUnavailable
from tests.recordings import read_run

ROOT = Path(__file__).parents[2]
VERSIONS = ("2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0")  # fmt: skip
PLAIN = ("typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "filelock", "setuptools")  # fmt: skip
"""What torch needs to be imported."""
OURS = (
    "numpy",
    "msgspec",
    "psutil",
    "pyelftools",
    "pyyaml",
    "google-crc32c",
    "tensorboard",
)
"""What recording needs."""
ANOTHER_DEVICE = "h100"
"""`expandable` runs on this one, so that two capabilities are seen."""
LIMIT_S = 600


@dataclass
class Row:
    """What one torch did."""

    version: str
    build: str = ""
    cuda: str = ""
    stubs_seconds: float = 0.0
    asked: int = 0
    peak_mib: list[float] = field(default_factory=list)
    reserved_mib: list[float] = field(default_factory=list)
    well: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    HEAD = (
        "| torch | CUDA | properties read back | well | peak allocated / reserved |"
        " expandable | recorded as counted |\n|---|---|---|---|---|---|---|"
    )

    def __str__(self) -> str:
        if not self.build:
            return f"| {self.version} | | | {'; '.join(self.wrong)} | | | |"
        both = [
            f"{peak:.1f} / {reserved:.0f} MiB"
            for peak, reserved in zip(self.peak_mib, self.reserved_mib, strict=True)
        ]
        return (
            f"| {self.build} | {self.cuda} | {self.asked} | {', '.join(self.well)} | "
            f"{' | '.join(both)} | {'; '.join(self.wrong) or 'yes'} |"
        )


def install(version: str, folder: Path, find_links: str | None) -> Path:
    """The Python of a new virtual environment with this torch; pip's words where it fails."""
    offered = ["--find-links", find_links] if find_links else []
    plain = folder / "plain"
    if not plain.is_dir():
        _pip(["install", "--target", str(plain), *PLAIN, *OURS])
    place = folder / f"torch-{version}"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(place)], check=True
    )
    python = place / "bin" / "python"
    _pip(
        [
            "--python",
            str(python),
            "install",
            "--no-deps",
            *offered,
            f"torch==={version}",
        ]
    )
    (packages,) = place.glob("lib/python*/site-packages")
    # Behind its own, so that the torch of neither is another's.
    (packages / "plain.pth").write_text(f"{plain}\n")
    return python


def _pip(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line]
        raise RuntimeError(" ".join(lines) or done.stderr)


def smoke(python: Path, kind: str, device: Device, run: Path) -> dict[str, Any]:
    """What `smoke` says of itself under this Python."""
    variables = environment(device, python=str(python))
    variables["PYTHONPATH"] = str(ROOT)
    if kind == "expandable":
        variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    done = subprocess.run(
        [str(python), "-m", "tests.virtual.smoke", kind, str(run)],
        env=variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    try:
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        words = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise RuntimeError(f"{kind} ended with {done.returncode}: {words}") from None
    return told


def recorded_otherwise(run: Path, steps: dict[str, Any], device: Device) -> list[str]:
    """Where the recording is not what torch counted."""
    recording = read_run(run)[0]
    counted = {
        "allocated_bytes": steps["allocated"],
        "allocated_peak_bytes": steps["stats"]["allocated_bytes.all.peak"],
        "reserved_peak_bytes": steps["stats"]["reserved_bytes.all.peak"],
        "active_peak_bytes": steps["stats"]["active_bytes.all.peak"],
        "device_name": device.name,
        "device_total_bytes": device.memory_bytes,
    }
    columns, header = recording.steps, recording.header
    found = {
        "allocated_bytes": columns["allocated_bytes"].tolist(),
        **{
            name: int(columns[name].max())
            for name in counted
            if name.endswith("_peak_bytes")
        },
        "device_name": header.device_name,
        "device_total_bytes": header.device_total_bytes,
    }
    wrong = [f"{k}: {found[k]}, not {counted[k]}" for k in counted if found[k] != counted[k]]  # fmt: skip
    wrong += [f"source {k}: {v}" for k, v in recording.sources().items() if v == "failed"]  # fmt: skip
    if not any(capture.kind == "history" for capture in recording.captures):
        wrong.append("no history was captured")
    return wrong


def tried(version: str, python: Path, folder: Path, device: Device) -> Row:
    """Both smokes under one Python, whose torch is `version`."""
    row = Row(version)
    start = time.monotonic()
    try:
        environment(device, python=str(python))
    except VirtualGpuUnavailable as error:
        row.wrong.append(str(error))
        return row
    row.stubs_seconds = time.monotonic() - start
    for kind, on in (("train", device), ("expandable", parse_device(ANOTHER_DEVICE))):
        run = folder / f"run-{version}-{kind}"
        shutil.rmtree(run, ignore_errors=True)
        try:
            told = smoke(python, kind, on, run)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            row.wrong.append(str(error))
            continue
        row.build, row.cuda = told["torch"], told["cuda"]
        if tuple(told["capability"]) != on.capability:
            row.wrong.append(f"capability {told['capability']}, not {on.capability}")
        row.well += [name for name in told["parts"] if name not in ("properties", "steps", "expandable")]  # fmt: skip
        row.wrong += [f"{name}: {words}" for name, words in told["wrong"].items()]
        row.asked = told["parts"].get("properties", {}).get("asked", row.asked)
        steps = told["parts"].get("steps")
        if steps:
            row.peak_mib.append(steps["stats"]["allocated_bytes.all.peak"] / 2**20)
            row.reserved_mib.append(steps["stats"]["reserved_bytes.all.peak"] / 2**20)
            row.wrong += recorded_otherwise(run, steps, on)
        shutil.rmtree(run, ignore_errors=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="for virtual environments")
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--find-links", help="a folder with torch's wheels")
    parser.add_argument(
        "--device", type=parse_device, default=parse_device("24GiB,8.9")
    )
    parser.add_argument("--keep", action="store_true", help="virtual environments stay")
    options = parser.parse_args()
    options.folder = options.folder.absolute()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    print(Row.HEAD, flush=True)
    wrong = False
    for version in options.versions:
        try:
            python = install(version, options.folder, options.find_links)
            row = tried(version, python, options.folder, options.device)
        except (RuntimeError, OSError) as error:
            row = Row(version, wrong=[str(error)])
        if not options.keep:
            shutil.rmtree(options.folder / f"torch-{version}", ignore_errors=True)
        print(row, flush=True)
        print(f"{version}: stubs in {row.stubs_seconds:.1f} s", file=sys.stderr)
        wrong |= bool(row.wrong)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
