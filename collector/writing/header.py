"""The first record of a rank's file: who wrote it, on what, under which settings."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memboard.collector.format.records import Header
from memboard.collector.process.control_group import find_group
from memboard.collector.virtual.current_device import virtual_device

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memboard.collector.config import RecordConfig
    from memboard.collector.format.records import ClockAnchor, DeviceIdentity
    from memboard.collector.process.rank import Identity

_ALLOCATOR_VARIABLES: Final = (
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
)
_MAX_TEXT: Final = 10_000
_DRIVER_FILE: Final = "/proc/driver/nvidia/version"


def make_header(
    *,
    run_dir: Path,
    attempt: str,
    identity: Identity,
    started: ClockAnchor,
    device: DeviceIdentity,
    memory: tuple[int | None, int | None],
    mesh: Mapping[str, int],
    config: RecordConfig,
) -> Header:
    """Put the header together; `memory` is the host's limit and total, in bytes."""
    return Header(
        run_id=run_dir.name,
        attempt=attempt,
        job=identity.job,
        rank=identity.rank,
        local_rank=identity.local_rank,
        world_size=identity.world_size,
        local_world_size=identity.local_world_size,
        node_rank=identity.node_rank,
        host=identity.host,
        pid=os.getpid(),
        started=started,
        device_type=device.device_type,
        device_index=device.device_index,
        device_name=device.device_name,
        device_uuid=device.device_uuid,
        device_total_bytes=device.device_total_bytes or None,
        memory_limit_bytes=memory[0],
        memory_total_bytes=memory[1],
        mesh=dict(mesh),
        versions=versions(),
        allocator_settings=allocator_settings()[:_MAX_TEXT],
        config=config.to_plain(),
        virtual_gpu=virtual_device() or "",
    )


def host_memory() -> tuple[int | None, int | None]:
    """The control group's limit on the host's memory, and all of it, in bytes."""
    import psutil  # not where a header is read or copied

    try:
        group = find_group()
        limit = None if group is None else group.limit_bytes()
        return limit or None, int(psutil.virtual_memory().total) or None
    except (psutil.Error, OSError, ValueError):
        return None, None


def device_fields(device: DeviceIdentity) -> dict[str, Any]:
    """What a note says of a device that training began to use after the header."""
    return msgspec.structs.asdict(device)


def versions() -> dict[str, str]:
    """Versions of what matters here; what is not there is left out."""
    versions = {"python": platform.python_version()}
    try:
        versions["memboard"] = metadata.version("memboard")
    except metadata.PackageNotFoundError:  # run from a checkout
        versions["memboard"] = "unknown"
    torch = sys.modules.get("torch")
    if torch is not None:
        versions["torch"] = str(getattr(torch, "__version__", "unknown"))
        of = getattr(torch, "version", None)
        for backend in ("cuda", "hip", "xpu"):
            if text := getattr(of, backend, None):
                versions[backend] = str(text)
    if driver := _driver():
        versions["driver"] = driver
    return versions


def allocator_settings() -> str:
    """The variables that configure torch's allocator, as they are set."""
    variables = (
        (variable, os.environ.get(variable)) for variable in _ALLOCATOR_VARIABLES
    )
    return " ".join(f"{variable}={value}" for variable, value in variables if value)


def _driver() -> str | None:
    """NVIDIA's driver version from `NVRM version: ... Kernel Module  580.65.06 ...`."""
    try:
        with open(_DRIVER_FILE, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            fields = file.readline().split()
    except OSError:
        return None
    numbers = [word for word in fields if word[:1].isdigit() and "." in word]
    return numbers[0] if numbers else None
