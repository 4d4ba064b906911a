"""The user's reading of torch's peaks stays exact, and torch is put back as it was."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from collector.sources.device import peak_wrapping
from collector.sources.device.accelerator import CudaBackend, Device
from collector.sources.device.used import DeviceSource


def spike(allocator, size):
    allocator.move(size)
    allocator.move(-size)


def test_the_users_whole_statistics_stay_what_they_would_be(fakes):
    """Beside a twin that nobody records: equal dicts at every moment, to the last key."""
    backend, twin = fakes.Backend(), fakes.Backend()
    source = DeviceSource(Device(backend, 0), resets=True)
    for number in range(40):
        for one in (backend, twin):
            one.devices[0].pools.setdefault(
                (0, number // 9),
                {"all": {"current": 0, "peak": 0, "allocated": 0, "freed": 0}},
            )
            spike(one.devices[0], (number * 7919 % 40) * 2**17 + 1)
            one.devices[0].move(100 + number)
            if number % 13 == 12:
                one.c._cuda_resetPeakMemoryStats(0)
            if number == 30:
                del one.devices[0].pools[0, 0]
        source.sample()
        assert backend.c._cuda_memoryStats(0) == twin.c._cuda_memoryStats(0)
    source.close()
    assert backend.c._cuda_memoryStats(0) == twin.c._cuda_memoryStats(0)
    backend.c._cuda_resetPeakMemoryStats(0)


def test_closing_restores_at_once_where_nothing_is_owed(fakes):
    backend = fakes.Backend()
    source = DeviceSource(Device(backend, 0), resets=True)
    assert backend.wrapped()
    backend.devices[0].move(10)
    source.sample()
    source.close()
    assert not backend.wrapped()


def test_a_peak_before_the_close_is_still_read_after_it(fakes):
    backend = fakes.Backend()
    source = DeviceSource(Device(backend, 0), resets=True)
    spike(backend.devices[0], 900)
    source.sample()
    source.close()
    seen = backend.c._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"]
    assert seen == 900
    backend.c._cuda_resetPeakMemoryStats(0)
    assert not backend.wrapped()
    assert backend.c._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"] == 0


def test_wrapping_ends_once_torchs_own_counters_have_caught_up(fakes):
    backend = fakes.Backend()
    source = DeviceSource(Device(backend, 0), resets=True)
    spike(backend.devices[0], 900)
    source.sample()
    source.close()
    assert backend.wrapped()
    spike(backend.devices[0], 901)
    assert backend.c._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"] == 901
    assert not backend.wrapped()


def test_a_second_recorder_takes_over_what_the_first_owes(fakes):
    backend = fakes.Backend()
    first = DeviceSource(Device(backend, 0), resets=True)
    spike(backend.devices[0], 900)
    first.sample()
    first.close()
    second = DeviceSource(Device(backend, 0), resets=True)
    spike(backend.devices[0], 300)
    assert second.sample()[1] == 300
    second.close()
    assert backend.c._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"] == 900
    backend.c._cuda_resetPeakMemoryStats(0)
    assert not backend.wrapped()


@pytest.mark.parametrize("first_to_close", [0, 1])
def test_recorders_that_overlap_share_the_ledger(fakes, first_to_close):
    backend = fakes.Backend()
    sources = [DeviceSource(Device(backend, 0), resets=True) for _ in range(2)]
    spike(backend.devices[0], 900)
    assert sources[0].sample()[1] == 900
    spike(backend.devices[0], 100)
    assert sources[1].sample()[1] == 900
    assert sources[0].sample()[1] == 100
    sources[first_to_close].close()
    spike(backend.devices[0], 50)
    other = sources[1 - first_to_close]
    assert other.sample()[1] in (100, 50)
    assert backend.wrapped()
    other.close()
    other.close()
    backend.c._cuda_resetPeakMemoryStats(0)
    assert not backend.wrapped()


def test_devices_do_not_mix(fakes):
    backend = fakes.Backend(3)
    one = DeviceSource(Device(backend, 0), resets=True)
    two = DeviceSource(Device(backend, 2), resets=True)
    for index, size in enumerate((100, 200, 300)):
        spike(backend.devices[index], size)
    assert (one.sample()[1], two.sample()[1]) == (100, 300)
    one.close()
    peaks = [
        backend.c._cuda_memoryStats(index)["allocated_bytes"]["all"]["peak"]
        for index in range(3)
    ]
    assert peaks == [100, 200, 300]
    backend.c._cuda_resetPeakMemoryStats(1)
    assert backend.c._cuda_memoryStats(0)["allocated_bytes"]["all"]["peak"] == 100
    two.close()
    backend.c._cuda_resetPeakMemoryStats(0)
    backend.c._cuda_resetPeakMemoryStats(2)
    assert not backend.wrapped()


def test_somebody_elses_wrapper_on_top_is_left_alone(fakes):
    backend = fakes.Backend()
    source = DeviceSource(Device(backend, 0), resets=True)
    ours = backend.c._cuda_memoryStats

    def theirs(index):
        return ours(index)

    backend.c._cuda_memoryStats = theirs
    source.close()
    assert backend.c._cuda_memoryStats is theirs
    backend.devices[0].move(5)
    assert theirs(0)["allocated_bytes"]["all"]["peak"] == 5
    again = DeviceSource(Device(backend, 0), resets=True)
    assert backend.c._cuda_memoryStats is theirs
    spike(backend.devices[0], 40)
    again.sample()
    assert theirs(0)["allocated_bytes"]["all"]["peak"] == 45
    backend.c._cuda_memoryStats = ours
    again.close()
    backend.c._cuda_resetPeakMemoryStats(0)
    assert not backend.wrapped()


def test_an_error_of_torchs_own_reaches_the_user_unchanged(fakes):
    backend = fakes.Backend()

    def refuse(index):
        raise RuntimeError("invalid device argument")

    backend.c._cuda_resetPeakMemoryStats = refuse
    source = DeviceSource(Device(backend, 0), resets=True)
    with pytest.raises(RuntimeError, match=r"^invalid device argument$"):
        backend.c._cuda_resetPeakMemoryStats(0)
    with pytest.raises(TypeError):
        backend.c._cuda_memoryStats()
    source.close()
    assert backend.c._cuda_resetPeakMemoryStats is refuse


def test_torchs_python_functions_pass_through_the_wrapped_names(fakes, monkeypatch):
    """The real torch.cuda over a model of torch._C."""
    import torch

    model = fakes.Backend()
    for name, function in model.originals.items():
        monkeypatch.setattr(torch._C, name, function, raising=False)
    for name in ("_accelerator_getDeviceStats", "_accelerator_resetPeakStats"):
        ours = (
            "_cuda_memoryStats"
            if "Stats" in name[-11:] and "get" in name
            else ("_cuda_resetPeakMemoryStats")
        )
        monkeypatch.setattr(torch._C, name, model.originals[ours], raising=False)
    monkeypatch.setattr(
        torch._C, "_accelerator_isAllocatorInitialized", lambda: True, raising=False
    )
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.memory, "is_initialized", lambda: True)
    before = {
        point: getattr(point.owner, point.name)
        for point in CudaBackend(torch).entry_points()
    }
    assert len(before) == 4
    source = DeviceSource(Device(CudaBackend(torch), 0), resets=True)
    spike(model.devices[0], 900)
    assert source.sample()[1] == 900
    spike(model.devices[0], 400)
    assert source.sample()[1] == 400
    assert torch.cuda.max_memory_allocated(0) == 900
    assert torch.cuda.max_memory_reserved(0) == 1800
    assert (
        torch.cuda.memory_stats_as_nested_dict(0)["active_bytes"]["all"]["peak"] == 900
    )
    assert "900 B" in torch.cuda.memory_summary(0)
    # In an older torch this module has no memory functions.
    general = hasattr(torch.accelerator, "max_memory_allocated")
    if general:
        assert torch.accelerator.max_memory_allocated(0) == 900
        assert torch.accelerator.max_memory_reserved(0) == 1800
        assert torch.accelerator.memory_stats(0)["active_bytes.all.peak"] == 900
    with pytest.warns(FutureWarning):
        assert torch.cuda.max_memory_cached(0) == 1800
    assert torch.cuda.memory_stats(0)["requested_bytes.small_pool.peak"] == 899
    torch.cuda.reset_peak_memory_stats(0)
    spike(model.devices[0], 20)
    assert source.sample()[1] == 20
    assert torch.cuda.max_memory_allocated(0) == 20
    assert source.sample()[1] == 0
    (torch.accelerator if general else torch.cuda).reset_peak_memory_stats(0)
    assert torch.cuda.max_memory_allocated(0) == 0
    for deprecated in ("reset_max_memory_allocated", "reset_max_memory_cached"):
        spike(model.devices[0], 70)
        assert torch.cuda.max_memory_allocated(0) == 70
        with pytest.warns(FutureWarning):
            getattr(torch.cuda, deprecated)(0)
        assert torch.cuda.max_memory_allocated(0) == 0
        assert source.sample()[1] == 70
    source.close()
    assert before == {point: getattr(point.owner, point.name) for point in before}


def test_a_driver_that_stops_answering_costs_the_source_and_not_the_user(fakes):
    backend = fakes.Backend()
    source = DeviceSource(Device(backend, 0), resets=True)
    spike(backend.devices[0], 900)
    source.sample()

    def broken(index):
        raise RuntimeError("CUDA error: unspecified launch failure")

    backend.stats = broken
    backend.c._cuda_resetPeakMemoryStats(0)  # the user's own call still works
    with pytest.raises(RuntimeError, match="launch failure"):
        source.sample()
    with pytest.raises(RuntimeError, match="launch failure"):
        source.close()
    assert not backend.wrapped()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .*is multi-threaded")
def test_a_child_forked_while_a_thread_holds_the_locks_does_not_hang(fakes):
    backend = fakes.Backend()
    source = DeviceSource(Device(backend, 0), resets=True)
    ledger = source._device.ledger
    with ledger._lock.now, peak_wrapping._lock.now:
        seen = []

        def fork():
            child = os.fork()
            if child == 0:
                signal.alarm(250)  # a child that hangs must not outlive the test
                # Another thread of the parent holds both locks; it is not here.
                source.sample()
                source.close()
                os._exit(0)
            seen.append(os.waitpid(child, 0)[1])

        thread = threading.Thread(target=fork, daemon=True)
        thread.start()
        thread.join(300)
    assert seen == [0]
    source.close()
