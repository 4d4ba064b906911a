"""The host's processors, memory, disks and network."""

from __future__ import annotations

import time
from typing import NamedTuple

import psutil
import pytest

from memboard.collector.core.source import Unavailable
from memboard.collector.sources.device.accelerator import Device
from memboard.collector.sources.host import machine
from memboard.collector.sources.host.machine import Rates
from tests.collector.sources.conftest import opened

MIB = 2**20
DEVICE = Device(absent=Unavailable("none"))


class Linux(NamedTuple):
    user: float
    nice: float
    system: float
    idle: float
    iowait: float
    irq: float
    softirq: float
    steal: float
    guest: float
    guest_nice: float


class Mac(NamedTuple):
    user: float
    nice: float
    system: float
    idle: float


class DiskCounters(NamedTuple):
    read_count: int
    write_count: int
    read_bytes: int
    write_bytes: int


class Nic(NamedTuple):
    bytes_sent: int
    bytes_recv: int


def shares(*readings):
    feed = iter(readings)
    sample = machine.Shares(lambda: next(feed))
    return [sample() for _ in readings]


def test_shares_of_linux_processor_time():
    first, second = shares(
        Linux(100, 10, 50, 500, 20, 1, 2, 3, 40, 4),
        Linux(130, 15, 60, 540, 25, 2, 4, 10, 60, 8),
    )
    assert tuple(first) == (None, None, None, None, None)
    # Spent: 30+5 user, 10+1+2 system, 40 idle, 5 waiting, 7 stolen = 100.
    assert second == pytest.approx((55, 35, 13, 5, 7))


def test_shares_without_a_waiting_time():
    _, second = shares(Mac(10, 0, 10, 10), Mac(20, 10, 20, 40))
    assert second[:3] == pytest.approx((50, 33.3333, 16.6667), rel=1e-4)
    assert second[3] is None


def test_no_time_and_time_going_back_are_no_share():
    same = Linux(*[5.0] * 10)
    back = Linux(5, 5, 5, 4, 5, 5, 5, 5, 5, 5)
    forth = Linux(6, 5, 5, 5, 5, 5, 5, 5, 5, 5)
    _, standing, backward, forward = shares(same, same, back, forth)
    assert tuple(standing) == (None,) * 5
    assert tuple(backward) == (None,) * 5
    assert forward[:2] == pytest.approx((50, 50))


def test_threads_that_run_or_wait_are_counted_without_our_own(tmp_path):
    loadavg = tmp_path / "loadavg"
    assert machine.runnable_pct(loadavg, 8) is None
    loadavg.write_text("12.50 9.00 4.00 17/1200 4711\n")
    assert machine.runnable_pct(loadavg, 8) == 200.0
    loadavg.write_text("0.00 0.00 0.00 1/100 4711\n")
    assert machine.runnable_pct(loadavg, 8) == 0.0
    loadavg.write_text("what\n")
    assert machine.runnable_pct(loadavg, 8) is None


def test_the_hosts_processors():
    source = opened("cpu", DEVICE)
    first = source.row()
    assert (first.pop("cpu_runnable_pct") or 0) >= 0
    assert set(first.values()) == {None}
    began, spent = time.monotonic(), time.process_time()
    while time.process_time() - spent < 0.4:
        pass
    values = source.row()
    ours = (time.process_time() - spent) / (time.monotonic() - began)
    assert 0 < values["cpu_total_pct"] <= 100.001
    assert values["cpu_user_pct"] + values["cpu_system_pct"] <= 100.001
    assert values["cpu_total_pct"] > 20 * ours / psutil.cpu_count()


def test_our_sampling_leaves_the_users_own_percentages_alone(monkeypatch):
    """psutil keeps the previous reading per module: we must not move it."""

    def forbidden(*args, **kwargs):
        raise AssertionError("this keeps state that the user's calls share")

    for name in ("cpu_percent", "cpu_times_percent"):
        monkeypatch.setattr(psutil, name, forbidden)
    source = opened("cpu", DEVICE)
    source.sample()
    assert len(source.sample()) == len(source.columns)


def test_the_hosts_memory(monkeypatch):
    host = psutil.virtual_memory()
    # Once for both: another program may take or give back gigabytes in between.
    monkeypatch.setattr(psutil, "virtual_memory", lambda: host)
    values = opened("memory", DEVICE).row()
    assert values["memory_total_bytes"] == host.total
    assert values["memory_available_bytes"] == host.available
    assert values["memory_used_bytes"] == host.used
    if values["memory_limit_bytes"] is not None:
        assert 0 <= values["memory_limit_used_bytes"] <= host.total


MEMINFO = """MemTotal:       24684092 kB
SwapCached:            0 kB
SwapTotal:       2097148 kB
SwapFree:        1048574 kB
"""


def test_a_host_without_swap_says_so(monkeypatch, tmp_path):
    file = tmp_path / "meminfo"
    monkeypatch.setattr(machine, "_MEMINFO", file)
    file.write_text("SwapTotal:  0 kB\nSwapFree:   0 kB\n")
    with pytest.raises(Unavailable, match="this host has no swap"):
        opened("swap", DEVICE)
    file.write_text(MEMINFO)
    source = opened("swap", DEVICE)
    assert tuple(source.sample()) == (2097148 * 1024, 1048574 * 1024)
    file.unlink()  # where there is no such file, psutil tells
    values = source.row()
    assert values["swap_total_bytes"] == psutil.swap_memory().total


def rated(*readings):
    """Rates over (seconds, counters) readings."""
    times, counters = iter([r[0] for r in readings]), iter([r[1] for r in readings])
    rates = Rates(lambda: next(counters), clock=lambda: next(times))
    return [list(rates()) for _ in readings]


def test_rates_begin_with_none_and_survive_a_reset():
    assert rated((0.0, (100, 0)), (2.0, (300, 0)), (3.0, (50, 8)), (3.5, (60, 8))) == [
        [None, None],
        [100.0, 0.0],
        [None, 8.0],
        [20.0, 0.0],
    ]
    # No time is no rate.
    assert rated((1.0, (5,)), (1.0, (9,)), (2.0, (10,)))[1:] == [[None], [1.0]]


def test_the_disks_counters_become_rates(monkeypatch):
    readings = [DiskCounters(10, 20, 1000, 2000), DiskCounters(16, 24, 5000, 2500)] * 2
    feed = iter(readings[:1] + readings[:2])
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk, nowrap: next(feed))
    source = opened("disk", DEVICE)
    source.sample()
    time.sleep(0.02)
    read, write, operations = source.sample()
    assert read / write == pytest.approx(8)
    assert read / operations == pytest.approx(400)


def test_a_system_without_disk_counters_says_so(monkeypatch):
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk, nowrap: None)
    with pytest.raises(Unavailable, match="no disk counters"):
        opened("disk", DEVICE)


def test_bytes_over_the_loopback_are_not_the_network(tmp_path):
    assert machine.counted(["lo", "eth0", "wlan0"], tmp_path) == ["eth0", "wlan0"]
    assert machine.counted(["lo0"], tmp_path) == []
    for name in ("eth0", "ib0"):
        (tmp_path / name / "device").mkdir(parents=True)
    (tmp_path / "bond0").mkdir()
    names = ["lo", "eth0", "ib0", "bond0", "docker0", "veth12"]
    assert machine.counted(names, tmp_path) == ["eth0", "ib0"]


def test_the_networks_counters_become_rates(monkeypatch):
    readings = [
        {"lo": Nic(10**9, 10**9), "a0": Nic(0, 0), "b0": Nic(50, 60)},
        {"lo": Nic(10**9, 10**9), "a0": Nic(0, 0), "b0": Nic(50, 60)},
        {"lo": Nic(10**12, 10**12), "a0": Nic(300, 600), "b0": Nic(150, 60)},
        {"a0": Nic(400, 700)},  # an interface has left: its bytes go from the sum
    ]
    feed = iter(readings)
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic, nowrap: next(feed))
    source = opened("network", DEVICE)
    assert list(source.sample()) == [None, None]
    time.sleep(0.02)
    sent, received = source.sample()
    assert sent / received == pytest.approx(400 / 600)
    time.sleep(0.02)
    assert source.sample()[0] is None


def test_a_host_with_only_the_loopback_says_so(monkeypatch):
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic, nowrap: {"lo": 1})
    with pytest.raises(Unavailable, match="no network interface"):
        opened("network", DEVICE)


@pytest.mark.parametrize("name", ["disk", "network"])
def test_real_counters_are_rates_that_are_not_negative(name):
    try:
        source = opened(name, DEVICE)
    except Unavailable as absent:
        pytest.skip(absent.reason)
    assert set(source.row().values()) == {None}
    time.sleep(0.02)
    values = source.row().values()
    assert len(values) == len(source.columns)
    assert all(value is not None and value >= 0 for value in values)
