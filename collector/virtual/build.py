"""Builds the stubs for one torch, once: compiled C and a jump for every symbol."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from collector.virtual.answers import TABLES
from collector.virtual.assembly import assembly_of, version_script
from collector.virtual.unavailable import VirtualGpuUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.virtual.symbols import Wanted
    from collector.virtual.torch_build import TorchBuild

HERE = Path(__file__).parent
CORE = "libmemboard_vgpu.so"
_WHOLE = ("libcudart", "libcuda", "libnvidia-ml")
"""Libraries that other programs than torch link or open: their stubs have all functions."""
_FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-shared"]
_LINKING = ["-Wl,-rpath,$ORIGIN", "-Wl,-z,noexecstack", "-Wl,--hash-style=gnu"]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where stubs are kept: `virtual` in `$MEMBOARD_CACHE_DIR` or `~/.cache/memboard`."""
    own = environ.get("MEMBOARD_CACHE_DIR")
    if own:
        return Path(own).absolute() / "virtual"
    root = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "memboard" / "virtual"


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
    name = f"torch-{torch.version}-{digest.hexdigest()[:12]}"
    return cache_folder(environ) / name


def stubs_for(torch: TorchBuild, environ: Mapping[str, str]) -> Path:
    """The folder with the stubs for this torch; builds them where they are missing.

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
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache / "building"):
            if not folder.is_dir():
                _build(torch, folder)
    except OSError as error:
        raise VirtualGpuUnavailable(
            f"stubs cannot be kept in {cache} ({error}): set MEMBOARD_CACHE_DIR to a folder "
            "that can be written"
        ) from error
    return folder


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(torch: TorchBuild, folder: Path) -> None:
    """All in a folder beside, which takes its name when it is whole."""
    try:
        import elftools  # noqa: F401

        from collector.virtual import symbols
    except ImportError:
        raise VirtualGpuUnavailable(
            "the virtual GPU reads torch's libraries with pyelftools, which is missing: "
            "pip install 'memboard[virtual]'"
        ) from None
    compiler = find_compiler()
    making = Path(tempfile.mkdtemp(prefix="making-", dir=folder.parent))
    try:
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
        (making / "libcuda.so").symlink_to("libcuda.so.1")  # what Triton links
        making.chmod(0o755)
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _stub(compiler: list[str], stub: Wanted, written: set[str], folder: Path) -> None:
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


def find_compiler() -> list[str]:
    """The command of a C compiler: the system's, or the one in `ziglang`.

    Raises:
        VirtualGpuUnavailable: there is none.
    """
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    from importlib.util import find_spec

    if find_spec("ziglang") is None:
        raise VirtualGpuUnavailable(
            "the virtual GPU is compiled on the spot and there is no C compiler: "
            "pip install 'memboard[virtual]' brings one"
        )
    return [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu.2.28"]


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
