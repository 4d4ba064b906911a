"""The environment of a process in which torch runs on virtual GPUs."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from typing import TYPE_CHECKING
from uuid import uuid4

from memboard.collector.process.private_folder import own_files
from memboard.collector.virtual.build import (
    CORE,
    accounting_folder,
    cache_folder,
    stubs_for,
)
from memboard.collector.virtual.current_device import ACCOUNTING, SPEC
from memboard.collector.virtual.torch_build import torch_of
from memboard.collector.virtual.unavailable import VirtualGpuUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memboard.collector.virtual.devices import Device
    from memboard.collector.virtual.torch_build import TorchBuild

__all__ = ["VirtualGpuUnavailable", "environment"]

MAX_DEVICES = 64

_ACCOUNTING_NAME = re.compile("([0-9]+)-[0-9a-f]{12}")
"""The number of the process that made it, and a random one."""


def environment(
    device: Device,
    *,
    devices: int = 1,
    python: str = sys.executable,
    base: Mapping[str, str] = os.environ,
    accounting: Path | None = None,
    context_bytes: int | None = None,
) -> dict[str, str]:
    """The variables of a child process whose torch finds `devices` of `device`.

    Stubs are built where the torch of `python` has none yet (seconds, once).
    Processes that are given the same `accounting` share their devices; without,
    a new file is kept in the cache, which the child's own children share.
    `context_bytes` is counted for each process on each device it uses: the
    lower estimate of the device unless given.

    Raises:
        VirtualGpuUnavailable: one sentence that says what helps.
        ValueError: `devices` is not between 1 and 64.
    """
    if not 1 <= devices <= MAX_DEVICES:
        raise ValueError(f"{devices} virtual devices: give 1 to {MAX_DEVICES}")
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise VirtualGpuUnavailable(
            "the virtual GPU runs on Linux x86-64 alone: use a container or a machine "
            f"of that kind (this is {platform.system()} {platform.machine()})"
        )
    torch = torch_of(python)
    stubs = stubs_for(torch, base)
    context = device.context_bytes[0] if context_bytes is None else context_bytes
    variables = {
        variable: base[variable]
        for variable in base
        if variable != "CUDA_VISIBLE_DEVICES"
    }
    variables[SPEC] = _words(device, devices, torch, context)
    variables[ACCOUNTING] = str(accounting or _new_accounting(accounting_folder(base)))
    preloaded = [stubs / CORE, *sorted(stubs.glob("*.so.*"))]
    variables["LD_PRELOAD"] = _joined(map(str, preloaded), base.get("LD_PRELOAD"))
    variables["LD_LIBRARY_PATH"] = _joined([str(stubs)], base.get("LD_LIBRARY_PATH"))
    variables["TRITON_LIBCUDA_PATH"] = str(stubs)
    # Timings of kernels that did not run must not reach a real GPU's caches.
    variables.setdefault(
        "TORCHINDUCTOR_CACHE_DIR", str(cache_folder(base) / "inductor")
    )
    variables.setdefault("TRITON_CACHE_DIR", str(cache_folder(base) / "triton"))
    return variables


def _words(device: Device, devices: int, torch: TorchBuild, context: int) -> str:
    architecture = device.architecture
    values = {
        "label": f"virtual {device.label}",
        "name": device.name,
        "memory": device.memory_bytes,
        "context": context,
        "devices": devices,
        "major": device.capability[0],
        "minor": device.capability[1],
        "sms": device.multiprocessors,
        "threads_per_sm": architecture.threads_per_sm,
        "blocks_per_sm": architecture.blocks_per_sm,
        "shared_per_sm": architecture.shared_per_sm,
        "shared_per_block": architecture.shared_per_block,
        "l2": device.l2_bytes,
        "bus": device.bus_bits,
        "cuda": torch.cuda,
        "cudnn": torch.cudnn,
        "nccl": torch.nccl,
    }
    return ";".join(f"{key}={value}" for key, value in values.items())


def _new_accounting(folder: Path) -> Path:
    """A file of its own; those of the day before go whose processes have ended."""
    yesterday = time.time() - 86400
    for old, status in own_files(folder):
        made_by = _ACCOUNTING_NAME.fullmatch(old.name)
        if made_by and status.st_mtime < yesterday and not _is_alive(int(made_by[1])):
            old.unlink(missing_ok=True)
    return folder / f"{os.getpid()}-{uuid4().hex[:12]}"


def _is_alive(pid: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def _joined(ours: Mapping[str, str] | list[str] | map[str], theirs: str | None) -> str:
    return ":".join([*ours, *([theirs] if theirs else [])])
