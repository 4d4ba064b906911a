"""The recorded device: its choice, the moments it is asked, and its rows."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from memboard.collector.core.source import Unavailable
from memboard.collector.sources.device import accelerator
from memboard.collector.sources.device.accelerator import (
    Backend,
    CudaBackend,
    Device,
    find_device,
)
from memboard.collector.sources.device.allocator import DeviceSource
from tests.collector.sources.conftest import opened


@pytest.fixture
def visible(monkeypatch, fakes):
    """Make `find_device` see a model with that many devices."""

    def make(num_devices, **changes):
        backend = fakes.Backend(num_devices)
        vars(backend).update(changes)
        monkeypatch.setattr(accelerator, "_backend", lambda: backend)
        return backend

    return make


@pytest.mark.parametrize(
    ("num_devices", "local_rank", "current", "initialized", "expected"),
    [
        (8, 3, 0, False, 3),  # torchrun, before set_device
        (8, 3, 3, True, 3),  # torchrun, after set_device
        (8, 0, 5, True, 5),  # set_device without a launcher
        (1, 3, 0, False, 0),  # one visible device per process
        (2, 7, 0, False, 0),  # a rank that no device is left for
    ],
)
def test_the_device_of_this_rank(
    visible, num_devices, local_rank, current, initialized, expected
):
    backend = visible(num_devices, current_index=current, initialized=initialized)
    device = find_device("auto", local_rank=local_rank)
    assert (device.type, device.index, device.absent) == ("cuda", expected, None)
    assert backend.calls == []


def test_a_named_device_is_taken_and_never_left(visible):
    backend = visible(4)
    device = find_device(2, local_rank=0)
    backend.devices[1].move(100)
    assert not device.settle()
    assert device.index == 2


@pytest.mark.parametrize(
    ("choice", "count", "reason", "remedy"),
    [
        ("off", 4, "switched off in the configuration", ""),
        (4, 4, "the configuration names device 4, torch sees 4", "an index below 4"),
        ("auto", 0, "torch supports cuda but sees no such device", "driver"),
    ],
)
def test_no_device_says_why(visible, choice, count, reason, remedy):
    visible(count)
    device = find_device(choice, local_rank=0)
    assert (device.type, device.index) == ("cpu", None)
    assert device.absent.reason == reason
    assert remedy in device.absent.remedy
    assert device.identity().device_type == "cpu"
    with pytest.raises(Unavailable):
        opened("device", device)
    with pytest.raises(Unavailable):
        opened("device_free", device)


def test_a_driver_that_raises_is_an_absence(visible):
    def broken():
        raise RuntimeError("driver/library version mismatch")

    visible(1, count=broken)
    device = find_device("auto", local_rank=0)
    assert "driver/library version mismatch" in device.absent.reason


def test_without_torch_the_device_is_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    device = find_device("auto", local_rank=0)
    assert device.absent.reason == "torch is not installed"


def test_it_moves_to_where_the_process_allocates(visible):
    """`model.to("cuda:1")` without `set_device`: the record follows."""
    backend = visible(4)
    device = find_device("auto", local_rank=0)
    source = DeviceSource(device, resets=True)
    assert source.sample()[0] == 0
    backend.devices[1].move(1000)
    for _ in range(4):  # asked at every power of two
        source.sample()
    assert device.index == 1
    assert source.sample()[0] == 1000
    assert device.identity().device_uuid == "uuid-1"
    source.close()
    for index in range(4):
        backend.user_reset(index)


def test_asking_where_the_process_allocates_gets_rare(visible):
    backend = visible(8)
    source = DeviceSource(find_device("auto", local_rank=0), resets=True)
    backend.calls.clear()
    for _ in range(1000):
        source.sample()
    assert backend.calls.count("stats") <= 1000 + 10 * 8
    source.close()


def test_identity_is_complete_once_the_device_is_used(visible):
    backend = visible(1, initialized=False)
    device = find_device("auto", local_rank=0)
    assert device.identity().device_uuid is None
    assert device.identity().device_index == 0
    backend.initialized = True
    identity = device.identity()
    assert (identity.device_name, identity.device_uuid) == ("Model 1", "uuid-0")
    assert identity.device_total_bytes == 100
    backend.identity = None  # asked once, kept from then on
    assert device.identity() is identity


def fake_torch(c, **modules):
    torch = ModuleType("torch")
    torch.__version__ = "2.99"
    torch._C = c
    vars(torch).update(modules)
    return torch


class Recorded:
    """Answers any call with what it was told, and remembers the arguments."""

    def __init__(self, answer=None):
        self.answer, self.arguments = answer, []

    def __call__(self, *arguments):
        self.arguments.append(arguments)
        return self.answer


@pytest.mark.parametrize("gone", ["_cuda_memoryStats", "_cuda_resetPeakMemoryStats"])
def test_cuda_functions_that_torch_renamed_are_done_without(monkeypatch, gone):
    torch = accelerator_torch(
        _cuda_memoryStats=Recorded(), _cuda_resetPeakMemoryStats=Recorded()
    )
    delattr(torch._C, gone)
    torch.accelerator.current_accelerator = lambda: SimpleNamespace(type="cuda")
    torch.cuda = SimpleNamespace(is_initialized=Recorded(True))
    monkeypatch.setitem(sys.modules, "torch", torch)
    device = find_device("auto", local_rank=0)
    assert device.absent is None
    assert (device.type, device.index) == ("cuda", 0)
    assert device.backend.stats(0) == {"reserved_bytes": {}}
    # Without the generic ones too there is nothing to read, and it is said.
    del torch._C._accelerator_resetPeakStats
    device = find_device("auto", local_rank=0)
    assert device.absent.reason == "torch 2.99 has no memory statistics for cuda"


def test_asking_for_free_memory_never_creates_a_context(monkeypatch):
    c = SimpleNamespace(
        _cuda_memoryStats=Recorded(),
        _cuda_resetPeakMemoryStats=Recorded(),
        _cuda_hasPrimaryContext=lambda index: index == 1,
    )
    cuda = SimpleNamespace(is_initialized=Recorded(True), mem_get_info=Recorded((3, 7)))
    backend = CudaBackend(fake_torch(c, cuda=cuda))
    source = opened("device_free", Device(backend, 0))
    assert tuple(source.sample()) == (None, None, None)
    assert cuda.mem_get_info.arguments == []
    source = opened("device_free", Device(backend, 1))
    assert tuple(source.sample()) == (3, 7, 4)


def accelerator_torch(**changes):
    c = SimpleNamespace(
        _accelerator_isAllocatorInitialized=Recorded(True),
        _accelerator_getDeviceStats=Recorded({"reserved_bytes": {}}),
        _accelerator_resetPeakStats=Recorded(),
        _xpu_memoryStats=Recorded(),
        _xpu_resetPeakMemoryStats=Recorded(),
    )
    vars(c).update(changes)
    return fake_torch(
        c,
        accelerator=SimpleNamespace(
            device_count=Recorded(1),
            current_device_index=Recorded(0),
            get_memory_info=Recorded((1, 2)),
        ),
        xpu=SimpleNamespace(is_initialized=Recorded(True)),
    )


def test_another_accelerator_is_asked_through_torch_accelerator():
    torch = accelerator_torch()
    backend = Backend(torch, "xpu")
    assert (backend.in_use(), backend.count(), backend.current()) == (True, 1, 0)
    assert backend.stats(0) == {"reserved_bytes": {}}
    assert backend.memory_info(0) == (1, 2)
    assert backend.identity(0).device_name is None
    names = {point.name: point.resets for point in backend.entry_points()}
    assert names == {
        "_accelerator_getDeviceStats": False,
        "_accelerator_resetPeakStats": True,
        "_xpu_memoryStats": False,
        "_xpu_resetPeakMemoryStats": True,
    }
    torch.xpu.is_initialized.answer = False
    assert not backend.in_use()


def test_an_accelerator_without_statistics_says_so():
    def no_device_allocator():
        raise RuntimeError("Allocator for mps is not a DeviceAllocator.")

    torch = accelerator_torch(_accelerator_isAllocatorInitialized=no_device_allocator)
    with pytest.raises(Unavailable, match="no memory statistics for mps"):
        Backend(torch, "mps")
    torch = accelerator_torch()
    del torch._C._accelerator_getDeviceStats
    with pytest.raises(Unavailable, match=r"torch 2\.99 has no memory statistics"):
        Backend(torch, "xpu")


HOST_2_8 = {
    "allocated_bytes": {"current": 64, "peak": 128, "allocated": 192, "freed": 128},
    "reserved_bytes": {"current": 256, "peak": 256, "allocated": 256, "freed": 0},
}
HOST_2_13 = {
    "active_bytes": {"current": 64, "peak": 128, "allocated": 192, "freed": 128},
    "allocated_bytes": {"current": 256, "peak": 256, "allocated": 256, "freed": 0},
}


@pytest.mark.parametrize("stats", [HOST_2_8, HOST_2_13])
def test_pinned_memory_means_the_same_in_every_torch(visible, monkeypatch, stats):
    import torch

    backend = visible(1, initialized=False)
    monkeypatch.setattr(torch._C, "_cuda_hostMemoryStats", lambda: stats, raising=False)
    source = opened("pinned", find_device("auto", local_rank=0))
    assert tuple(source.sample()) == (None, None, None)
    backend.initialized = True
    assert tuple(source.sample()) == (64, 128, 256)


def test_pinned_memory_is_absent_with_its_reason(visible, monkeypatch):
    import torch

    monkeypatch.delattr(torch._C, "_cuda_hostMemoryStats", raising=False)
    visible(1)
    with pytest.raises(Unavailable, match="does not count pinned memory") as raised:
        opened("pinned", find_device("auto", local_rank=0))
    assert raised.value.remedy == "Use torch 2.8 or newer."
    visible(1, type="xpu")
    with pytest.raises(Unavailable, match="for CUDA only, not xpu"):
        opened("pinned", find_device("auto", local_rank=0))
