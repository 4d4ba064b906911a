"""NVML's sensors of this rank's GPU: load, temperature, power, memory.

NVML numbers all GPUs of the host, torch the visible ones, in another order perhaps:
the device is matched by the uuid that torch reports, once training uses it. What a GPU
does not report (a MIG slice has no load of its own) stays None.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.source import Unavailable
from memboard.collector.format.columns import GPU
from memboard.collector.sources.source import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from memboard.collector.config import RecordConfig
    from memboard.collector.sources.device.accelerator import Device

_HOST_PIDS: Final = "pid:[4026531836]"
"""Linux's name for the host's own process numbers: a constant of the kernel."""

_MILLIWATTS: Final = 1000.0


def _open(_config: RecordConfig, device: Device) -> Reader:
    if device.absent is not None:
        raise device.absent
    if device.type != "cuda":
        raise Unavailable(
            f"NVML knows NVIDIA GPUs only, and this device is {device.type}"
        )
    try:
        import pynvml
    except ImportError:
        raise Unavailable(
            "the package nvidia-ml-py is not installed",
            "pip install nvidia-ml-py",
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Unavailable(
            f"NVML does not answer: {error}", "Check the NVIDIA driver."
        ) from None
    sensors = _Sensors(pynvml, device)
    return Reader(sensors.sample, sensors.close)


SENSORS: Final = Source(
    name="gpu",
    cost="1 ms per sample",
    columns=lambda _: GPU,
    open=_open,
    setting="gpu",
)


class _Sensors:
    """Samples nothing (None) until training uses the device."""

    def __init__(self, nvml: ModuleType, device: Device) -> None:
        # `nvml` is pynvml, initialised
        self._nvml = nvml
        self._device = device
        self._uuid: str | None = None
        self._handle: Any = None

    def sample(self) -> Sequence[int | float | None]:
        """One reading of every sensor."""
        uuid = self._device.identity().device_uuid
        if uuid is None or not self._device.in_use():
            return (None,) * len(GPU)
        if uuid != self._uuid:
            self._handle, self._uuid = self._find(uuid), uuid
        nvml, handle = self._nvml, self._handle
        load = self._ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        temperature = self._ask(
            nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU
        )
        power = self._ask(nvml.nvmlDeviceGetPowerUsage, handle)
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        return (
            None if load is None else float(load.gpu),
            None if load is None else float(load.memory),
            None if temperature is None else float(temperature),
            None if power is None else power / _MILLIWATTS,
            None if memory is None else int(memory.used),
            self._own_bytes(),
        )

    def close(self) -> None:
        """Shut NVML down; it counts its users, so others' handles live on."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None  # type: ignore[assignment]

    def _find(self, uuid: str) -> Any:
        bare = uuid.removeprefix("GPU-").removeprefix("MIG-")
        handle = self._ask(self._nvml.nvmlDeviceGetHandleByUUID, f"GPU-{bare}")
        if handle is None:
            handle = self._ask(self._nvml.nvmlDeviceGetHandleByUUID, f"MIG-{bare}")
        if handle is None:
            raise Unavailable(
                f"NVML does not know the GPU {uuid} that torch uses",
                "Check that the driver's libnvidia-ml fits the driver.",
            )
        return handle

    def _ask(self, question: Callable[..., Any], *args: Any) -> Any:
        """The answer, or None where there is none: no such sensor, GPU or right."""
        nvml = self._nvml
        try:
            return question(*args)
        except (
            nvml.NVMLError_NotSupported,
            nvml.NVMLError_NoPermission,
            nvml.NVMLError_NotFound,
        ):
            return None

    def _own_bytes(self) -> int | None:
        """What this process holds; None where it cannot be told from others."""
        processes = self._ask(
            self._nvml.nvmlDeviceGetComputeRunningProcesses, self._handle
        )
        for process in processes or ():
            mine = process.pid == os.getpid() if _sees_host_pids() else None
            if mine or (mine is None and len(processes) == 1):
                used = process.usedGpuMemory
                return None if used is None else int(used)
        return None


def _sees_host_pids() -> bool:
    """Whether NVML's process numbers mean anything here: not so in a container."""
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == _HOST_PIDS
    except OSError:
        return True
