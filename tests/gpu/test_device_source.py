"""Every number of the device sources against torch, the driver and NVML, by hand."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import memboard as mb
from memboard.collector.sources.device.accelerator import find_device, original
from tests.collector.sources.conftest import opened
from tests.collector.writing.test_scalars import by_memory_monitor, points

torch = pytest.importorskip("torch")

MIB = 2**20
STATS = ("allocated", "active", "reserved", "inactive_split", "requested")
POOLS = (("all", ""), ("small_pool", "_small_pool"), ("large_pool", "_large_pool"))


@pytest.fixture
def device():
    torch.zeros(1, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return find_device("auto", local_rank=0)


@pytest.fixture
def step_source(device):
    source = opened("device", device)
    yield source
    source.close()
    torch.cuda.reset_peak_memory_stats()


def raw_counters():
    """torch's own counters, behind whatever is wrapped around them."""
    return original(torch._C._cuda_memoryStats)(torch.cuda.current_device())


def work(megabytes):
    """Allocate, free and keep pieces of both pools on two streams."""
    big = torch.empty(megabytes * MIB, dtype=torch.uint8, device="cuda")
    small = [torch.empty(1000 + i, device="cuda") for i in range(20)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        big.record_stream(side)
    kept = torch.empty(3 * MIB + megabytes, dtype=torch.uint8, device="cuda")
    del big, small
    return kept


def test_every_number_is_torchs_own(step_source):
    kept = []
    for megabytes in (64, 8, 200, 1, 40):
        kept.append(work(megabytes))
        torch.cuda.synchronize()
        by_hand = raw_counters()
        values = step_source.row()
        for stat in STATS:
            for pool, infix in POOLS:
                leaf = by_hand[f"{stat}_bytes"][pool]
                assert values[f"{stat}{infix}_bytes"] == leaf["current"], stat
                assert values[f"{stat}{infix}_peak_bytes"] == leaf["peak"], stat
        assert values["num_alloc_retries"] == by_hand["num_alloc_retries"]
        assert values["num_ooms"] == by_hand["num_ooms"]
        assert values["allocated_bytes"] == torch.cuda.memory_allocated()
        assert values["reserved_bytes"] == torch.cuda.memory_reserved()


def test_peaks_are_the_steps_own(step_source):
    base = step_source.row()["allocated_bytes"]
    for megabytes in (64, 8, 200, 1):
        block = torch.empty(megabytes * MIB, dtype=torch.uint8, device="cuda")
        del block
        assert step_source.row()["allocated_peak_bytes"] == base + megabytes * MIB
    assert step_source.row()["allocated_peak_bytes"] == base


def test_the_users_own_reading_is_unaffected(step_source):
    base = torch.cuda.memory_allocated()
    block = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
    del block
    for _ in range(3):
        step_source.sample()
    assert torch.cuda.max_memory_allocated() == base + 100 * MIB
    assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == base + 100 * MIB
    if hasattr(torch.accelerator, "max_memory_allocated"):
        assert torch.accelerator.max_memory_allocated() == base + 100 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == base
    block = torch.empty(7 * MIB, dtype=torch.uint8, device="cuda")
    del block
    assert step_source.row()["allocated_peak_bytes"] == base + 7 * MIB
    step_source.sample()
    assert torch.cuda.max_memory_allocated() == base + 7 * MIB
    step_source.close()
    assert torch.cuda.max_memory_allocated() == base + 7 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert original(torch._C._cuda_memoryStats) is torch._C._cuda_memoryStats


def test_nested_spans_keep_their_peaks_across_steps(device, step_source):
    base = torch.cuda.memory_allocated()
    outer = device.ledger.open()
    block = torch.empty(50 * MIB, dtype=torch.uint8, device="cuda")
    del block
    inner = device.ledger.open()
    block = torch.empty(20 * MIB, dtype=torch.uint8, device="cuda")
    del block
    step_source.sample()
    assert device.ledger.close(inner).peaks[0] == base + 20 * MIB
    assert device.ledger.close(outer).peaks[0] == base + 50 * MIB


def test_an_out_of_memory_error_is_counted(step_source):
    before = step_source.row()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        torch.empty(2**50, dtype=torch.uint8, device="cuda")
    after = step_source.row()
    assert after["num_ooms"] == before["num_ooms"] + 1
    assert after["num_alloc_retries"] == raw_counters()["num_alloc_retries"]


def test_the_whole_device_is_what_the_driver_says(device):
    source = opened("device_free", device)
    held = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
    values = source.row()
    free, total = torch.cuda.mem_get_info()
    assert values["device_total_bytes"] == total
    assert abs(values["device_free_bytes"] - free) <= 256 * MIB  # others may run here
    assert values["device_used_bytes"] == total - values["device_free_bytes"]
    assert values["device_used_bytes"] >= held.numel()
    source.close()


def test_pinned_memory_is_torchs_own(device):
    if not hasattr(torch._C, "_cuda_hostMemoryStats"):
        pytest.skip("this torch does not count pinned memory")
    source = opened("pinned", device)
    held = torch.empty(8 * MIB, dtype=torch.uint8, pin_memory=True)
    values = source.row()
    by_hand = torch._C._cuda_hostMemoryStats()["allocated_bytes"]
    assert values["pinned_allocated_bytes"] == by_hand["current"] >= held.numel()
    assert values["pinned_reserved_bytes"] >= values["pinned_allocated_bytes"]
    assert values["pinned_allocated_peak_bytes"] >= values["pinned_allocated_bytes"]


def test_the_sensors_are_those_of_torchs_device(device):
    pynvml = pytest.importorskip("pynvml")
    source = opened("gpu", device)
    held = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
    values = source.row()
    handle = source.sample.__self__._handle
    assert pynvml.nvmlDeviceGetName(handle) == torch.cuda.get_device_name()
    assert values["gpu_memory_used_bytes"] >= held.numel()
    own = values["gpu_process_memory_bytes"]
    assert own is None or own >= held.numel()
    source.close()


@pytest.mark.needs_real_gpu("no sensors of load, heat and power")
def test_the_sensors_say_what_can_be(device):
    source = opened("gpu", device)
    values = source.row()
    assert 0 <= values["gpu_utilization_pct"] <= 100
    assert 0 < values["gpu_temperature_celsius"] < 120
    assert 0 < values["gpu_power_watts"] < 2000
    source.close()


def test_the_devices_identity_is_torchs(device):
    properties = torch.cuda.get_device_properties(0)
    identity = device.identity()
    assert identity.device_name == properties.name
    assert identity.device_total_bytes == properties.total_memory


def fresh(code):
    """Run code in a new interpreter; its output's last line."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


OPEN = """
import os, torch
from memboard.collector.sources.device.accelerator import find_device
from tests.collector.sources.conftest import opened
device = find_device("auto", local_rank=0)
sources = [opened(name, device) for name in ("device", "device_free", "gpu")]
def device_values():
    return {v for s in sources for v in s.sample()}
"""


def test_watching_does_not_initialise_cuda_and_forking_stays_possible():
    code = f"""{OPEN}
assert device.type == "cuda" and device_values() == {{None}}
child = os.fork()
if child == 0:
    try:
        torch.zeros(1, device="cuda")
        os._exit(0 if any(v for v in device_values()) else 3)
    except BaseException:
        os._exit(1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(torch.cuda.is_initialized(), status)
"""
    assert fresh(code) == "False 0"


def test_a_child_forked_after_cuda_was_used_samples_nothing():
    code = f"""{OPEN}
torch.zeros(1, device="cuda")
assert any(device_values())
child = os.fork()
if child == 0:
    os._exit(0 if device_values() == {{None}} else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert fresh(code) == "0"


def test_memory_monitors_keys_are_those_of_torchs_own_statistics(tmp_path):
    """At every step, peaks since the recording began and retries among them."""
    torch.cuda.reset_peak_memory_stats()
    expected: dict[str, list[tuple[int, float]]] = {}
    kept = []
    with mb.record(tmp_path / "run", scalars="composer") as rec:
        for step, mib in enumerate((32, 96, 8, 64)):
            kept.append(torch.ones(mib << 18, device="cuda"))
            with rec.phase("val"):
                torch.ones((mib * 3) << 18, device="cuda")
                rec.step()
            rec.step()
            report = by_memory_monitor(torch.cuda.memory_stats())
            for name, value in report.items():
                expected.setdefault(name, []).append((step, float(np.float32(value))))
            time.sleep(0.12)  # the width of a window that keeps one point
    found = points(tmp_path / "run")
    memory = {name: at for name, at in found.items() if name.startswith("memory/")}
    assert memory == expected
