"""The process's own figures against what the system says by another way."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from memboard.collector.core.source import Unavailable
from memboard.collector.sources.device.accelerator import Device
from memboard.collector.sources.host import process, rss
from tests.collector.recordings import wait_until
from tests.collector.sources.conftest import opened

pytestmark = pytest.mark.usefixtures("no_garbage")

MIB = 2**20
DEVICE = Device(absent=Unavailable("none"))

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def touched(num_bytes):
    """Anonymous memory with every page written, so that it is resident."""
    memory = mmap.mmap(-1, num_bytes)
    for page in range(0, num_bytes, mmap.PAGESIZE):
        memory[page] = 1
    return memory


def in_child(check):
    """Exit status of a forked child: 0 where `check()` is true."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def rss_sources():
    sources = [rss.PsutilSource]
    if sys.platform == "linux":
        sources.append(rss.StatmSource)
    return sources


@pytest.mark.parametrize("make", rss_sources())
def test_resident_memory_grows_and_shrinks_with_what_is_touched(make):
    source = make()
    (before,) = source.sample()
    assert abs(before - psutil.Process().memory_info().rss) < 4 * MIB
    memory = touched(64 * MIB)
    (grown,) = source.sample()
    memory.close()
    (after,) = source.sample()
    assert abs(grown - before - 64 * MIB) < 4 * MIB
    assert abs(grown - after - 64 * MIB) < 4 * MIB
    source.close()
    source.close()


@forks
@pytest.mark.parametrize("make", rss_sources())
@pytest.mark.filterwarnings("ignore:This process .*is multi-threaded")
def test_a_forked_child_reports_itself_not_its_parent(make):
    source = make()
    source.sample()

    def the_child_grows():
        (before,) = source.sample()
        memory = touched(64 * MIB)
        grown = source.sample()[0] - before
        memory.close()
        return abs(grown - 64 * MIB) < 4 * MIB

    assert in_child(the_child_grows) == 0
    source.close()


@linux
@forks
@pytest.mark.filterwarnings("ignore:This process .*is multi-threaded")
def test_a_closed_source_is_not_opened_again_by_a_fork():
    source = rss.StatmSource()
    source.close()

    def still_closed():
        try:
            source.sample()
        except OSError:
            return True
        return False

    assert in_child(still_closed) == 0


def statm_descriptors():
    """Those alone: threads of other tests may open and close their own meanwhile."""
    names = []
    for descriptor in tuple(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            names.append(descriptor.readlink().name)
    return names.count("statm")


@linux
def test_the_source_keeps_one_descriptor_and_gives_it_back():
    before = statm_descriptors()
    source = opened("rss", DEVICE)
    for _ in range(10):
        source.sample()
    assert statm_descriptors() == before + 1
    source.close()
    assert statm_descriptors() == before


def test_the_process_as_the_system_sees_it():
    spent = time.process_time()
    source = opened("process", DEVICE)
    busy = time.monotonic()
    while time.process_time() - spent < 0.3:
        pass
    busy = time.monotonic() - busy
    values = source.row()
    spent = time.process_time() - spent
    info = psutil.Process().memory_info()
    assert abs(values["process_rss_bytes"] - info.rss) < 4 * MIB
    assert values["process_vms_bytes"] == pytest.approx(info.vms, rel=0.05)
    assert values["process_num_threads"] >= 1
    assert 0 < values["process_cpu_pct"] < 100 * (spent + 0.05) / busy  # in ticks
    if sys.platform == "linux":
        assert 0 < values["process_shared_bytes"] <= values["process_rss_bytes"]
    # Threads of other tests may open and close files in between.
    wait_until(lambda: source.row()["process_num_fds"] == psutil.Process().num_fds())


ROLLUP = Path("/proc/self/smaps_rollup")


def in_files():
    """Bytes of what is ours alone and of our share that lie in mapped files.

    Another process that maps such a file too, or ends, moves both.
    """
    lines = ROLLUP.read_text().splitlines()[1:] if ROLLUP.exists() else ()
    kib = {line.partition(":")[0]: int(line.split()[1]) for line in lines}
    names = {"process_uss_bytes": "Private_Clean", "process_pss_bytes": "Pss_File"}
    return {ours: 1024 * kib.get(theirs, 0) for ours, theirs in names.items()}


def without_files(source):
    """A row less what lies in files, which nobody has moved meanwhile."""
    files, values = None, {}
    while files != in_files():
        files = in_files()
        values = source.row()
    return {name: values[name] - held for name, held in files.items()}


def test_unique_memory_grows_with_private_pages():
    source = opened("process_full", DEVICE)
    before = without_files(source)
    memory = touched(64 * MIB)
    grown = without_files(source)
    memory.close()
    for name, held in grown.items():
        assert abs(held - before[name] - 64 * MIB) < 4 * MIB


def test_the_page_table_totals_are_added_up():
    text = (
        "00400000-7fff 000000 ---p 00000000 00:00 0    [rollup]\n"
        "Rss:              900 kB\nPss:              700 kB\nPss_Dirty:  9 kB\n"
        "Shared_Clean:     300 kB\nPrivate_Clean:     20 kB\n"
        "Private_Dirty:    500 kB\nPrivate_Hugetlb:    4 kB\n"
    )
    assert process.uss_and_pss(text) == (524 * 1024, 700 * 1024)


def test_page_tables_out_of_reach_are_an_absence(monkeypatch):
    def closed(self):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "memory_full_info", closed)
    with pytest.raises(Unavailable, match="does not let the process read"):
        process._from_psutil()
