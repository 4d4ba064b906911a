"""NVML's readings, with a model of pynvml."""

from __future__ import annotations

import functools
import os
import sys
from types import SimpleNamespace

import pytest

from memboard.collector.core.source import Unavailable
from memboard.collector.sources.device import sensors as gpu
from memboard.collector.sources.device.accelerator import Device
from tests.collector.sources.conftest import opened as open_source


class NvmlError(Exception):
    pass


NAMES = ("NotSupported", "NoPermission", "NotFound", "GpuIsLost")
NotSupported, NoPermission, NotFound, GpuIsLost = (
    type(name, (NvmlError,), {}) for name in NAMES
)


class Nvml:
    """The part of pynvml that is used; devices by uuid."""

    NVMLError = NvmlError
    NVMLError_NotSupported = NotSupported
    NVMLError_NoPermission = NoPermission
    NVMLError_NotFound = NotFound
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *uuids):
        self.uuids = uuids
        self.users = 0
        self.processes = []
        self.missing = set()
        for name, answer in {
            "UtilizationRates": lambda _: SimpleNamespace(gpu=87, memory=40),
            "Temperature": lambda _handle, _sensor: 61,
            "PowerUsage": lambda _: 412_500,
            "MemoryInfo": lambda handle: SimpleNamespace(used=len(handle)),
            "ComputeRunningProcesses": lambda _: self.processes,
            "HandleByUUID": self.found,
        }.items():
            asked = functools.partial(self.ask, name, answer)
            setattr(self, f"nvmlDeviceGet{name}", asked)

    def nvmlInit(self):  # noqa: N802
        self.users += 1

    def nvmlShutdown(self):  # noqa: N802
        self.users -= 1

    def found(self, uuid):
        if uuid not in self.uuids:
            raise NotFound
        return uuid

    def ask(self, name, answer, *given):
        if name in self.missing:
            raise NotSupported
        return answer(*given)


def process(pid, used):
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


@pytest.fixture
def opened(fakes, monkeypatch):
    monkeypatch.setattr(gpu, "_sees_host_pids", lambda: True)

    def make(nvml, **changes):
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        backend = fakes.Backend(2)
        vars(backend).update(changes)
        device = Device(backend, 1)
        return open_source("gpu", device), backend

    return make


def test_every_sensor_of_the_right_gpu(opened):
    nvml = Nvml("GPU-uuid-0", "GPU-uuid-1")
    nvml.processes = [process(1, 5), process(os.getpid(), 77)]
    source, _ = opened(nvml)
    assert source.row() == {
        "gpu_utilization_pct": 87.0,
        "gpu_memory_utilization_pct": 40.0,
        "gpu_temperature_celsius": 61.0,
        "gpu_power_watts": 412.5,
        "gpu_memory_used_bytes": len("GPU-uuid-1"),
        "gpu_process_memory_bytes": 77,
    }
    source.close()
    source.close()
    assert nvml.users == 0


def test_nothing_is_asked_before_training_uses_the_device(opened):
    source, backend = opened(Nvml("GPU-uuid-1"), initialized=False)
    assert set(source.row().values()) == {None}
    backend.initialized = True
    assert source.row()["gpu_utilization_pct"] == 87.0


def test_a_slice_is_found_and_what_it_lacks_is_none(opened):
    nvml = Nvml("MIG-uuid-1")
    nvml.missing = {"UtilizationRates", "PowerUsage", "ComputeRunningProcesses"}
    source, _ = opened(nvml)
    values = source.row()
    assert values["gpu_utilization_pct"] is None
    assert values["gpu_power_watts"] is None
    assert values["gpu_process_memory_bytes"] is None
    assert values["gpu_temperature_celsius"] == 61.0
    assert values["gpu_memory_used_bytes"] == len("MIG-uuid-1")


@pytest.mark.parametrize(
    ("host_pids", "processes", "expected"),
    [
        (True, [(1, 5)], None),  # another's process
        (False, [(1, 5)], 5),  # alone on the device, so it is ours
        (False, [("own", 5), (1, 6)], None),  # a number that means nothing here
        (True, [("own", None)], None),  # the driver does not tell
        (True, [], None),
    ],
)
def test_own_memory_is_only_claimed_where_it_is_known(
    opened, monkeypatch, host_pids, processes, expected
):
    monkeypatch.setattr(gpu, "_sees_host_pids", lambda: host_pids)
    nvml = Nvml("GPU-uuid-1")
    nvml.processes = [
        process(os.getpid() if pid == "own" else pid, used) for pid, used in processes
    ]
    source, _ = opened(nvml)
    assert source.row()["gpu_process_memory_bytes"] == expected


def test_a_gpu_that_nvml_does_not_know_is_named(opened):
    source, _ = opened(Nvml("GPU-other"))
    with pytest.raises(Unavailable, match="NVML does not know the GPU uuid-1"):
        source.sample()


def test_a_fault_of_the_gpu_is_the_recorders_business(opened):
    nvml = Nvml("GPU-uuid-1")

    def lost(handle):
        raise GpuIsLost

    nvml.nvmlDeviceGetPowerUsage = lost
    source, _ = opened(nvml)
    with pytest.raises(GpuIsLost):
        source.sample()


def test_absence_has_its_reason(fakes, monkeypatch):
    missing = Device(absent=Unavailable("no accelerator"))
    with pytest.raises(Unavailable, match="no accelerator"):
        open_source("gpu", missing)
    backend = fakes.Backend()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(Unavailable, match="nvidia-ml-py is not installed") as raised:
        open_source("gpu", Device(backend, 0))
    assert raised.value.remedy == "pip install nvidia-ml-py"
    nvml = Nvml()

    def no_driver():
        raise NvmlError("Driver Not Loaded")

    nvml.nvmlInit = no_driver
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with pytest.raises(Unavailable, match="NVML does not answer: Driver Not Loaded"):
        open_source("gpu", Device(backend, 0))
    backend.type = "xpu"
    with pytest.raises(Unavailable, match="this device is xpu"):
        open_source("gpu", Device(backend, 0))


def test_the_model_uses_names_that_pynvml_has():
    pynvml = pytest.importorskip("pynvml")
    names = [name for name in dir(Nvml()) if name.startswith(("nvml", "NVML"))]
    assert len(names) > 10
    assert [name for name in names if not hasattr(pynvml, name)] == []
