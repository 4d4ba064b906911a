"""Dataloader workers: real child processes, and a made-up /proc for the rest."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time

import pytest

from memboard.collector.core.source import Unavailable
from memboard.collector.sources.device.accelerator import Device
from memboard.collector.sources.host import workers
from tests import programs
from tests.collector.sources.conftest import opened

DEVICE = Device(absent=Unavailable("none"))
MIB = 2**20

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="they are told on Linux"
)


class Holding:
    """A dataset whose worker holds memory: 40 MiB, and 40 more for each further one."""

    def __init__(self):
        self.held = b""

    def __getitem__(self, index):
        from torch.utils.data import get_worker_info

        if not self.held:
            self.held = b"x" * ((get_worker_info().id + 1) * 40 * MIB)
        return index

    def __len__(self):
        return 8


def loading(method):
    """An iterator of a DataLoader with two workers, both of which load."""
    from torch.utils.data import DataLoader

    loader = DataLoader(Holding(), num_workers=2, multiprocessing_context=method)
    batches = iter(loader)
    next(batches)
    next(batches)
    return batches


def with_workers(method):
    """What the source says without workers, with two, and without."""
    source = opened("workers", DEVICE)
    said = [source.sample()]
    batches = loading(method)
    said.append(source.sample())
    for _ in batches:
        pass
    del batches
    return [*said, source.sample()]


def busy(_number):
    time.sleep(0.01)


def beside_others(method):
    """The same beside a pool, subprocesses and forks that load nothing."""
    source = opened("workers", DEVICE)
    ends, waits = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(waits)
        os.read(ends, 1)
        os._exit(0)
    sleeping = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE
    )
    with multiprocessing.get_context(method).Pool(2) as pool:
        pool.map(busy, range(30))
        others = source.sample()
        batches = loading(method)
        both = source.sample()
        del batches
    os.close(waits)
    os.waitpid(child, 0)
    sleeping.communicate(b"\n")
    return [others, both]


def both_ways(method):
    """Workers' sizes, asked for in both ways."""
    batches = loading(method)
    families = workers.ProcFamily(), workers.PsutilFamily()
    found = [family.worker_sizes(os.getpid()) for family in families]
    del batches
    return found


def alone(function, method):
    """What a function says in a process of its own, without what other tests started."""
    module = function.__module__
    code = f"import json; from {module} import *\nif __name__ == '__main__':"
    code += f" print(json.dumps({function.__name__}({method!r})))"
    return json.loads(programs.run(code).stdout)


def test_workers_are_counted_and_weighed():
    """Neither the resource tracker nor the fork server is a worker."""
    before, (count, total, largest), after = alone(with_workers, "forkserver")
    assert count == 2
    assert 80 * MIB < largest < 600 * MIB
    assert total > largest
    assert before == after == [0, 0, 0]


def test_other_children_are_none():
    others, (count, *_) = alone(beside_others, "fork")
    assert others == [0, 0, 0]
    assert count == 2


def test_both_ways_to_look_agree():
    ours, psutils = alone(both_ways, "fork")
    assert len(ours) == len(psutils) == 2
    assert sum(ours) == pytest.approx(sum(psutils), rel=0.1)


def test_where_processes_show_no_names_it_is_not_known(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Unavailable, match="cannot be distinguished from other child"):
        opened("workers", DEVICE)


class Proc:
    """A folder that looks like /proc."""

    def __init__(self, folder):
        self.folder = folder
        self.children = {}

    def add(self, pid, parent=None, *, pages=10, name="pt_data_worker"):
        home = self.folder / str(pid)
        task = home / "task" / str(pid)
        task.mkdir(parents=True)
        (home / "statm").write_text(f"99 {pages} 1 1 0 1 0")
        (home / "comm").write_text(f"{name}\n")
        (task / "children").write_text("")
        if parent is not None:
            self.children.setdefault(parent, []).append(pid)
            listed = self.folder / str(parent) / "task" / str(parent) / "children"
            listed.write_text(" ".join(map(str, self.children[parent])) + " ")
        return home


@pytest.fixture
def proc(tmp_path):
    made = Proc(tmp_path)
    made.add(1, name="python")
    return made


def pages(proc):
    family = workers.ProcFamily(proc.folder)
    return sorted(size // os.sysconf("SC_PAGE_SIZE") for size in family.worker_sizes(1))


def test_workers_below_others_count_and_what_workers_start_does_not(proc):
    proc.add(2, 1, pages=7)
    proc.add(3, 1, name="python")
    proc.add(4, 3, pages=11)
    proc.add(5, 2, pages=500, name="ffmpeg")
    proc.add(6, 2, pages=500)  # forked by a worker, so its name is the same
    assert pages(proc) == [7, 11]


def test_children_of_every_thread_count(proc):
    proc.add(2, pages=3)
    thread = proc.folder / "1" / "task" / "77"
    thread.mkdir()
    (thread / "children").write_text("2 ")
    assert pages(proc) == [3]


def test_children_of_children_are_looked_at_to_a_bounded_depth(proc):
    for pid in range(2, 9):
        proc.add(pid, pid - 1, name="python")
        proc.add(pid + 100, pid, pages=pid)
    assert pages(proc) == [2, 3]


def test_a_runaway_is_bounded(proc, monkeypatch):
    monkeypatch.setattr(workers, "MAX_PROCESSES", 20)
    for pid in range(2, 60):
        proc.add(pid, 1)
    assert len(pages(proc)) == 20


def test_processes_that_end_meanwhile_are_left_out(proc):
    proc.add(2, 1, pages=0)  # ended, not collected: no pages any more
    gone = proc.add(3, 1)
    for file in ("statm", "comm"):
        (gone / file).unlink()
    torn = proc.add(4, 1)
    (torn / "statm").write_text("")
    proc.add(5, 1, pages=6)
    assert pages(proc) == [6]
