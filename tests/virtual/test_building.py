"""Names of devices, the build of the stubs, and the sentence where it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from memboard.collector.virtual import build
from memboard.collector.virtual.current_device import virtual_device
from memboard.collector.virtual.devices import DEVICES, GIB, parse_device
from memboard.collector.virtual.environment import VirtualGpuUnavailable, environment
from memboard.collector.virtual.torch_build import TorchBuild
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


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("a100", "a100-80gb|A100-80G|NVIDIA A100 80GB PCIe|nvidia-a100-80gb|a100-sxm4-80gb"),
        ("a100-40gb", "A100-PCIE-40GB|NVIDIA A100-SXM4-40GB|a100_40g"),
        ("h100", "h100-80gb|H100 SXM5|nvidia-h100-mega-80gb|NVIDIA H100 80GB HBM3"),
        ("h100-pcie", "NVIDIA H100 PCIe|H100-PCIE-80GB"),
        ("h100-nvl", "H100 NVL|h100-94gb"),
        ("h200", "nvidia-h200-141gb|H200-SXM"),
        ("rtx4090", "4090|rtx-4090|NVIDIA GeForce RTX 4090|RTX_4090"),
        ("rtx3090ti", "3090 Ti|rtx3090ti"),
        ("rtx6000-ada", "RTX6000-Ada|NVIDIA RTX 6000 Ada Generation"),
        ("rtx-pro-6000", "RTX PRO 6000|NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
        ("rtx4070ti", "4070 Ti|RTX4070Ti|NVIDIA GeForce RTX 4070 Ti"),
        ("rtx3070", "3070|geforce-rtx-3070"),
        ("a6000", "RTX A6000|rtx-a6000|rtxa6000|NVIDIA RTX A6000"),
        ("t4", "nvidia-tesla-t4|Tesla T4|t4-16gb"),
        ("v100", "Tesla V100-PCIE-16GB|v100-16gb"),
        ("v100-32gb", "V100-SXM2-32GB|Tesla V100-SXM3-32GB"),
    ],
)  # fmt: skip
def test_devices_have_the_names_of_drivers_and_clouds(key, names):
    for name in names.split("|"):
        assert parse_device(name) is DEVICES[key], name


def test_each_device_is_found_by_its_key_its_name_and_its_label():
    for device in DEVICES.values():
        for name in (device.key, device.name, device.label):
            assert parse_device(name) is device, name


@pytest.mark.parametrize(
    "name", ["a100-60gb", "quadro rtx 6000", "h100-pcie-40gb", "mi300x", "rtx"]
)
def test_a_device_that_is_not_there_is_no_other_one(name):
    with pytest.raises(ValueError, match="no virtual device"):
        parse_device(name)


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
        "from memboard.collector.virtual.devices import DEVICES\n"
        "from memboard.collector.virtual.environment import environment\n"
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
    assert not list((tmp_path / "virtual").glob("making*"))


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder of a cache with the stubs for this torch."""
    cache = tmp_path_factory.mktemp("cache")
    environment(DEVICES["l4"], python=python(), base={**os.environ, **at(cache)})
    return cache


def at(cache: Path) -> dict[str, str]:
    return {"MEMBOARD_CACHE_DIR": str(cache), "PATH": os.environ["PATH"]}


def preloaded(cache: Path) -> dict[str, bytes]:
    """What a process on a virtual device would run, by path."""
    variables = environment(DEVICES["l4"], python=python(), base=at(cache))
    paths = list(map(Path, variables["LD_PRELOAD"].split(":")))
    folder = Path(variables["LD_LIBRARY_PATH"])
    assert {path.parent for path in paths} == {folder}
    return {path.name: path.read_bytes() for path in folder.iterdir()}


PLANTED = b"not what was built"


def plant_another(folder: Path) -> None:
    (folder / "libevil.so.1").write_bytes(PLANTED)


def plant_instead(folder: Path) -> None:
    (folder / build.CORE).write_bytes(PLANTED)


def plant_a_link(folder: Path) -> None:
    (folder / build.CORE).unlink()
    (folder / build.CORE).symlink_to(folder.parents[1] / "elsewhere.so")


def lead_the_link_away(folder: Path) -> None:
    (folder / "libcuda.so").unlink()
    (folder / "libcuda.so").symlink_to(folder.parents[1] / "elsewhere.so")


def take_one_away(folder: Path) -> None:
    next(folder.glob("*.so.*")).unlink()


def take_the_hashes_away(folder: Path) -> None:
    (folder / "hashes.json").unlink()


def spoil_the_hashes(folder: Path) -> None:
    (folder / "hashes.json").write_bytes(b"[1")


def put_a_link_in_its_place(folder: Path) -> None:
    folder.rename(folder.parents[1] / "elsewhere")
    folder.symlink_to(folder.parents[1] / "elsewhere")


def put_a_file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(PLANTED)


@pytest.mark.parametrize(
    "change",
    [
        plant_another,
        plant_instead,
        plant_a_link,
        lead_the_link_away,
        take_one_away,
        take_the_hashes_away,
        spoil_the_hashes,
        put_a_link_in_its_place,
        put_a_file_in_its_place,
    ],
)
def test_only_what_was_built_there_is_preloaded(tmp_path, built, change, caplog):
    before = preloaded(built)
    assert not caplog.records
    cache = tmp_path / "cache"
    shutil.copytree(built, cache, symlinks=True)
    (tmp_path / "cache" / "elsewhere.so").write_bytes(PLANTED)
    (folder,) = (cache / "virtual").glob("torch-*")
    change(folder)
    after = preloaded(cache)
    assert set(after) == set(before)
    assert PLANTED not in after.values()
    assert "built again" in caplog.text
    assert (cache / "elsewhere.so").read_bytes() == PLANTED
    caplog.clear()
    assert preloaded(cache) == after
    assert not caplog.records


def test_a_cache_that_others_write_to_is_refused_before_anything_is_preloaded(
    tmp_path, built
):
    cache = tmp_path / "shared"
    shutil.copytree(built, cache, symlinks=True)
    cache.chmod(0o1777)
    assert preloaded(cache)
    (cache / "virtual").chmod(0o1777)
    with pytest.raises(VirtualGpuUnavailable, match="other users") as refused:
        preloaded(cache)
    assert "set MEMBOARD_CACHE_DIR to a folder of your own" in str(refused.value)
    if os.geteuid() == 0:
        (cache / "virtual").chmod(0o700)
        os.chown(cache / "virtual", 65534, 65534)
        with pytest.raises(VirtualGpuUnavailable, match="another user"):
            preloaded(cache)


def test_only_old_files_of_ended_processes_go(tmp_path, built):
    cache = tmp_path / "cache"
    shutil.copytree(built, cache, symlinks=True)
    accounting = cache / "virtual" / "accounting"
    shutil.rmtree(accounting)
    accounting.mkdir(mode=0o700)
    mine = tmp_path / "mine"
    mine.touch()
    ended = subprocess.Popen(["true"])
    ended.wait()
    gone, living = accounting / f"{ended.pid}-0123456789ab", accounting / f"{os.getpid()}-0123456789ab"  # fmt: skip
    other, link = (
        accounting / "a-list-of-mine",
        accounting / f"{ended.pid}-ab0123456789",
    )
    for path in (gone, living, other):
        path.touch()
        os.utime(path, (0, 0))
    link.symlink_to(mine)
    os.utime(link, (0, 0), follow_symlinks=False)
    os.utime(mine, (0, 0))
    preloaded(cache)
    assert {*accounting.iterdir()} >= {living, other, link}
    assert not gone.exists()
    assert mine.exists()


def test_a_folder_of_accounting_that_is_a_link_is_refused(tmp_path, built):
    cache = tmp_path / "cache"
    shutil.copytree(built, cache, symlinks=True)
    shutil.rmtree(cache / "virtual" / "accounting")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "1-0123456789ab").touch()
    os.utime(theirs / "1-0123456789ab", (0, 0))
    (cache / "virtual" / "accounting").symlink_to(theirs)
    with pytest.raises(VirtualGpuUnavailable, match="is a link"):
        preloaded(cache)
    assert [path.name for path in theirs.iterdir()] == ["1-0123456789ab"]


@pytest.mark.parametrize("obstacle", ["a link", "a file of mine", "a pipe"])
def test_a_file_that_holds_no_accounting_stays_as_it_is(tmp_path, built, obstacle):
    mine, accounting = tmp_path / "mine", tmp_path / "accounting"
    mine.write_bytes(b"my results, of many days")
    if obstacle == "a link":
        accounting.symlink_to(mine)
    elif obstacle == "a pipe":
        os.mkfifo(accounting)
    else:
        accounting = mine
    variables = environment(
        DEVICES["l4"],
        python=python(),
        base={**os.environ, **at(built)},
        accounting=accounting,
    )
    done = subprocess.run(
        [python(), "-c", SMOKE],
        env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "cuda:0\n"
    assert "no accounting at" in done.stderr
    assert mine.read_bytes() == b"my results, of many days"


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
