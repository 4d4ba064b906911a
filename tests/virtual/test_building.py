"""Names of devices, the build of the stubs, and the sentence where it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from collector.virtual import build
from collector.virtual.devices import DEVICES, GIB, parse_device
from collector.virtual.environment import VirtualGpuUnavailable, environment
from collector.virtual.present import virtual_device
from collector.virtual.torch_build import TorchBuild
from tests.virtual.running import python

SMOKE = "import torch; print(torch.ones(3, device='cuda').device)"


def test_devices_have_names_and_descriptions():
    assert parse_device(" H100 ").memory_bytes == pytest.approx(79.2 * GIB, rel=0.01)
    assert parse_device("A100_40GB") is DEVICES["a100-40gb"]
    described = parse_device("24GiB,8.9")
    assert (described.memory_bytes, described.capability) == (24 * GIB, (8, 9))
    assert described.architecture == DEVICES["l4"].architecture
    assert parse_device("80GB").memory_bytes == 80 * 10**9
    for device in DEVICES.values():
        low, high = device.context_bytes
        assert 0 < low < high < GIB
        assert device.context_source


@pytest.mark.parametrize("wrong", ["", "h1000", "24", "24GiB,8", "24GiB,x.y", "1MiB", "8GiB,3.5"])  # fmt: skip
def test_other_devices_are_refused_in_a_sentence(wrong):
    with pytest.raises(ValueError) as refused:
        parse_device(wrong)
    words = str(refused.value)
    assert "\n" not in words
    assert "h100" in words or "at least" in words


def test_the_process_knows_what_it_runs_on(monkeypatch):
    monkeypatch.delenv("MEMBOARD_VIRTUAL_GPU", raising=False)
    assert virtual_device() is None
    monkeypatch.setenv("MEMBOARD_VIRTUAL_GPU", "label=virtual L4 24GB;name=NVIDIA L4")
    assert virtual_device() == "virtual L4 24GB"


def a_python_with(folder, version: str | None) -> str:
    """An executable that finds this torch, or none."""
    origin = "None"
    if version:
        (folder / "torch").mkdir()
        (folder / "torch" / "version.py").write_text(version)
        origin = f'"{folder / "torch" / "__init__.py"}"'
    program = folder / "python"
    program.write_text(f"#!/bin/sh\necho '{origin.replace('None', 'null')}'\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (None, "there is no torch"),
        ("__version__ = '2.13.0+cpu'\ncuda: str | None = None\n", "'torch===2.13.0'"),
    ],
)
def test_torch_that_will_not_do(tmp_path, version, words):
    with pytest.raises(VirtualGpuUnavailable, match="pip install --no-deps") as refused:
        environment(DEVICES["l4"], python=a_python_with(tmp_path, version))
    assert words in str(refused.value)


def test_machines_that_will_not_do(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    with pytest.raises(VirtualGpuUnavailable, match="Linux x86-64"):
        environment(DEVICES["l4"])


def test_no_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(VirtualGpuUnavailable, match=r"memboard\[virtual\]"):
        build.find_compiler()


def test_stubs_are_those_of_every_file_they_are_made_from(tmp_path, monkeypatch):
    own = tmp_path / "virtual"
    shutil.copytree(build.HERE, own, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(build, "HERE", own)
    torch = TorchBuild("2.13.0", tmp_path / "torch", cuda=13000)
    folders = {build.stubs_folder(torch, {})}
    sources = [path for path in own.rglob("*") if path.is_file()]
    for path in sources:
        with path.open("a") as file:
            file.write("\n")
        folders.add(build.stubs_folder(torch, {}))
    header = own / "native" / "vgpu.h"
    header.rename(header.with_name("other.h"))
    folders.add(build.stubs_folder(torch, {}))
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "lib" / "libtorch.so").touch()
    folders.add(build.stubs_folder(torch, {}))
    assert len(folders) == len(sources) + 3
    assert len(sources) > 30


@pytest.mark.slow
def test_processes_that_build_at_once_build_one(tmp_path):
    """Each waits for the first, and what it finds is whole."""
    program = (
        "import sys\n"
        "from collector.virtual.devices import DEVICES\n"
        "from collector.virtual.environment import environment\n"
        "print(environment(DEVICES['l4'])['LD_LIBRARY_PATH'])\n"
    )
    root = str(Path(__file__).parents[2])
    variables = {**os.environ, "MEMBOARD_CACHE_DIR": str(tmp_path), "PYTHONPATH": root}
    variables.pop("LD_LIBRARY_PATH", None)
    building = [
        subprocess.Popen(
            [python(), "-c", program], env=variables, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    folders = {process.communicate()[0] for process in building}
    assert len(folders) == 1
    made = [path.name for path in (tmp_path / "virtual").glob("*torch-*")]
    assert made == [Path(folders.pop().strip()).name]
    assert not list((tmp_path / "virtual").glob("making-*"))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed")
def test_a_compiler_from_pypi_will_do(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMBOARD_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    variables = environment(DEVICES["l4"], python=python())
    done = subprocess.run(
        [python(), "-c", SMOKE],
        env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "cuda:0\n"
