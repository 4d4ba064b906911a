"""Builds the stubs for one torch, once: compiled C and a jump for every symbol."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import stat
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memboard.collector.process.child_python import own_module
from memboard.collector.process.private_folder import (
    NotPrivateError,
    cache_home,
    is_own,
    private_folder,
)
from memboard.collector.virtual.answers import TABLES
from memboard.collector.virtual.assembly import assembly_of, version_script
from memboard.collector.virtual.unavailable import VirtualGpuUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.collector.virtual.symbols import StubSymbols
    from memboard.collector.virtual.torch_build import TorchBuild

_logger = logging.getLogger(__name__)

HERE = Path(__file__).parent
CORE = "libmemboard_vgpu.so"
_HASHES = "hashes.json"
"""Beside the stubs: the SHA-256 of each, by its name."""
_LINK, _LINKED = "libcuda.so", "libcuda.so.1"
_MAKING = "making"
_WHOLE = ("libcudart", "libcuda", "libnvidia-ml")
"""Libraries that other programs than torch link or open: their stubs have all functions."""
_FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-shared"]
_LINKING = ["-Wl,-rpath,$ORIGIN", "-Wl,-z,noexecstack", "-Wl,--hash-style=gnu"]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where stubs are kept: `virtual` in `$MEMBOARD_CACHE_DIR` or `~/.cache/memboard`."""
    return cache_home(environ) / "virtual"


def stubs_folder(torch: TorchBuild, environ: Mapping[str, str]) -> Path:
    """Where the stubs for this torch stand once they are built.

    Its name changes with torch's libraries and with every file that decides the stubs.
    """
    digest = hashlib.sha256()
    for path in torch.libraries:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    for source in [*sorted((HERE / "native").rglob("*.*")), *sorted(HERE.glob("*.py"))]:
        digest.update(f"{source.relative_to(HERE)}\n".encode())
        digest.update(source.read_bytes())
    folder_name = f"torch-{torch.version}-{digest.hexdigest()[:12]}"
    return cache_folder(environ) / folder_name


def stubs_for(torch: TorchBuild, environ: Mapping[str, str]) -> Path:
    """The folder with the stubs for this torch; builds them where they are missing.

    They run in every process that preloads them: the folder is this user's alone, and they
    are those that were built, or they are built again.

    Raises:
        VirtualGpuUnavailable: nothing to compile with, or it failed.
    """
    folder = stubs_folder(torch, environ)
    cache = folder.parent
    if " " in str(folder) or ":" in str(folder):
        raise VirtualGpuUnavailable(
            f"the loader cannot preload from {folder}: set MEMBOARD_CACHE_DIR to a folder "
            "without spaces and colons"
        )
    with _kept_in(cache):
        private_folder(cache)
        with _alone(cache / "building"):
            if not _is_whole(folder):
                _clear(folder)
                _build(torch, folder)
    return folder


def accounting_folder(environ: Mapping[str, str]) -> Path:
    """The folder of accounting files that nobody has named; made where it is missing.

    Raises:
        VirtualGpuUnavailable: it cannot be made, or is not this user's alone.
    """
    cache = cache_folder(environ)
    with _kept_in(cache):
        return private_folder(cache / "accounting")


@contextmanager
def _kept_in(cache: Path) -> Iterator[None]:
    """Says in a sentence why nothing can be kept there."""
    try:
        yield
    except NotPrivateError as error:
        raise VirtualGpuUnavailable(
            f"nothing is preloaded from a folder that is not yours alone ({error}): "
            "set MEMBOARD_CACHE_DIR to a folder of your own"
        ) from error
    except OSError as error:
        raise VirtualGpuUnavailable(
            f"nothing can be kept in {cache} ({error}): set MEMBOARD_CACHE_DIR to a folder "
            "that can be written"
        ) from error


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_whole(folder: Path) -> bool:
    """Whether a folder holds the stubs that were built there, and nothing else."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return False
        hashes = json.loads((folder / _HASHES).read_bytes())
        return bool(hashes == _hashes_of(folder))
    except (OSError, ValueError):
        return False


def _hashes_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of every library in a folder, by its name.

    Raises:
        ValueError: there is something else in it, or a file of another user's.
    """
    hashes = {}
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        if path.name == _LINK and stat.S_ISLNK(status.st_mode):
            if os.readlink(path) != _LINKED:  # noqa: PTH115  # its text
                raise ValueError(f"{path} leads elsewhere")
        elif not stat.S_ISREG(status.st_mode) or not is_own(status):
            raise ValueError(f"{path} is no file of ours")
        elif path.name != _HASHES:
            hashes[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def _clear(folder: Path) -> None:
    """Remove what is in the place of the stubs, and what a killed build has left."""
    shutil.rmtree(folder.parent / _MAKING, ignore_errors=True)
    if folder.is_symlink() or folder.exists():
        _logger.warning("%s is not as it was built: it is built again", folder)
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink()


def _build(torch: TorchBuild, folder: Path) -> None:
    """All in a folder beside, which takes its name when it is whole."""
    try:
        import elftools  # noqa: F401

        from memboard.collector.virtual import symbols
    except ImportError:
        raise VirtualGpuUnavailable(
            "the virtual GPU reads torch's libraries with pyelftools, which is missing: "
            "pip install 'memboard[virtual]'"
        ) from None
    compiler = find_compiler()
    making = folder.parent / _MAKING
    try:
        making.mkdir(0o700)
        native = HERE / "native"
        sources = sorted(map(str, native.rglob("*.c")))
        _compile([*compiler, *_FLAGS, f"-I{native}", *_LINKING, *sources, "-o", CORE, "-lpthread", "-ldl"], making)  # fmt: skip
        written = symbols.exported(making / CORE, "vgpu_")
        stubs = symbols.wanted(torch.libraries, written)
        for stub in stubs.values():
            if stub.family in _WHOLE:
                stub.add((TABLES / f"{stub.family}.txt").read_text().split())
        for stub in stubs.values():
            _stub(compiler, stub, set(written), making)
        (making / _LINK).symlink_to(_LINKED)  # what Triton links
        (making / _HASHES).write_text(json.dumps(_hashes_of(making), indent=1))
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _stub(
    compiler: list[str], stub: StubSymbols, written: set[str], folder: Path
) -> None:
    assembly = folder / f"{stub.soname}.S"
    assembly.write_text(assembly_of(stub, written))
    versions = version_script(stub)
    script = folder / f"{stub.soname}.map"
    script.write_text(versions)
    _compile(
        [
            *compiler, "-shared", "-nostdlib", *_LINKING,
            f"-Wl,-soname,{stub.soname}",
            *([f"-Wl,--version-script={script.name}"] if versions else []),
            "-o", stub.soname, assembly.name, CORE,
        ],
        folder,
    )  # fmt: skip
    assembly.unlink()
    script.unlink()


def find_compiler() -> list[str]:
    """The command of a C compiler: the system's, or the one in `ziglang`.

    Raises:
        VirtualGpuUnavailable: there is none.
    """
    for compiler in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if compiler and shutil.which(compiler.split()[0]):
            return compiler.split()
    from importlib.util import find_spec

    if find_spec("ziglang") is None:
        raise VirtualGpuUnavailable(
            "the virtual GPU is compiled on the spot and there is no C compiler: "
            "pip install 'memboard[virtual]' brings one"
        )
    return own_module("ziglang", "cc", "-target", "x86_64-linux-gnu.2.28")


def _compile(command: list[str], folder: Path) -> None:
    without = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run(  # noqa: S603  # our own sources
        command, cwd=folder, env=without, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        wrong = next((line for line in lines if "error" in line), "no words")
        raise VirtualGpuUnavailable(
            f"{command[0]} could not compile the virtual GPU ({wrong}): set CC to "
            "another C compiler"
        )
