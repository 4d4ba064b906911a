"""Dataloader workers: real child processes, and a made-up /proc for the rest."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from collector.config import load
from collector.sources import workers
from collector.sources.accelerator import Device
from collector.sources.contract import Unavailable

DEVICE = Device(absent=Unavailable("none"))
MIB = 2**20
ROOT = Path(__file__).parents[3]


def hold(num_mib, ready, leave):
    memory = bytearray(b"x") * (num_mib * MIB)
    ready.set()
    leave.wait(600)
    del memory


def with_workers(method):
    """What the source says without workers, with two, and without."""
    source = workers.open_source(load(), DEVICE)
    said = [source.sample()]
    context = multiprocessing.get_context(method)
    leave = context.Event()
    started = []
    for num_mib in (40, 80):
        ready = context.Event()
        child = context.Process(target=hold, args=(num_mib, ready, leave), daemon=True)
        child.start()
        started.append(child)
        assert ready.wait(300)
    said.append(source.sample())
    leave.set()
    for child in started:
        child.join(300)
    return [*said, source.sample()]


def both_ways(method):
    """A worker's size, asked for in both ways."""
    context = multiprocessing.get_context(method)
    ready, leave = context.Event(), context.Event()
    child = context.Process(target=hold, args=(30, ready, leave), daemon=True)
    child.start()
    assert ready.wait(300)
    families = workers.ProcFamily(), workers.PsutilFamily()
    found = [family.worker_sizes(os.getpid()) for family in families]
    leave.set()
    child.join(300)
    return found


def alone(function, method):
    """What a function says in a process of its own, without what other tests started."""
    module = function.__module__
    code = f"import json; from {module} import *; print(json.dumps("
    code += f"{function.__name__}({method!r})))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_are_counted_and_weighed(method):
    """Neither the resource tracker nor the fork server is a worker."""
    before, (count, total, largest), after = alone(with_workers, method)
    assert count == 2
    assert 80 * MIB < largest < 250 * MIB
    assert total >= largest + 40 * MIB
    assert before == after == [0, 0, 0]


def test_both_ways_to_look_agree():
    if sys.platform != "linux":
        pytest.skip("one of them reads /proc")
    ours, psutils = alone(both_ways, "spawn")
    assert len(ours) == len(psutils) == 1
    assert sum(ours) == pytest.approx(sum(psutils), rel=0.1)


class Proc:
    """A folder that looks like /proc."""

    def __init__(self, folder):
        self.folder = folder
        self.children = {}

    def add(self, pid, parent=None, *, pages=10, command="python train.py", start=1):
        home = self.folder / str(pid)
        task = home / "task" / str(pid)
        task.mkdir(parents=True)
        (home / "statm").write_text(f"99 {pages} 1 1 0 1 0")
        (home / "cmdline").write_text(command.replace(" ", "\0"))
        fields = " ".join(["S", *["0"] * 18, str(start), "0"])
        (home / "stat").write_text(f"{pid} (a name) with ) in it) {fields}")
        (task / "children").write_text("")
        if parent is not None:
            self.children.setdefault(parent, []).append(pid)
            listed = self.folder / str(parent) / "task" / str(parent) / "children"
            listed.write_text(" ".join(map(str, self.children[parent])) + " ")
        return home


@pytest.fixture
def proc(tmp_path):
    made = Proc(tmp_path)
    made.add(1)
    return made


def pages(proc, family=None):
    family = family or workers.ProcFamily(proc.folder)
    return sorted(size // os.sysconf("SC_PAGE_SIZE") for size in family.worker_sizes(1))


def test_services_and_what_is_below_them_do_not_count(proc):
    proc.add(2, 1, pages=7)
    proc.add(3, 1, command="python -c from multiprocessing.resource_tracker import m")
    proc.add(4, 1, command="python torch/_inductor/compile_worker/__main__.py")
    proc.add(5, 4, pages=500, command="python torch/_inductor/compile_worker/m.py")
    server = "python -c from multiprocessing.forkserver import main"
    proc.add(6, 1, command=server)
    proc.add(7, 6, pages=11, command=server)  # forked, so its command line is the same
    assert pages(proc) == [7, 11]


def test_children_of_every_thread_count(proc):
    proc.add(2, pages=3)
    thread = proc.folder / "1" / "task" / "77"
    thread.mkdir()
    (thread / "children").write_text("2 ")
    assert pages(proc) == [3]


def test_children_of_children_count_to_a_bounded_depth(proc):
    for pid in range(2, 9):
        proc.add(pid, pid - 1, pages=pid)
    assert pages(proc) == [2, 3, 4]


def test_a_runaway_is_bounded(proc, monkeypatch):
    monkeypatch.setattr(workers, "MAX_PROCESSES", 20)
    for pid in range(2, 60):
        proc.add(pid, 1)
    assert len(pages(proc)) == 20


def test_processes_that_end_meanwhile_are_left_out(proc):
    proc.add(2, 1, pages=0)  # ended, not collected: no pages any more
    gone = proc.add(3, 1)
    for file in ("statm", "stat", "cmdline"):
        (gone / file).unlink()
    torn = proc.add(4, 1)
    (torn / "stat").write_text("")
    proc.add(5, 1, pages=6)
    assert pages(proc) == [6]


def test_a_number_used_again_is_another_process(proc):
    home = proc.add(2, 1, command="python torch/_inductor/compile_worker/m.py")
    family = workers.ProcFamily(proc.folder)
    assert pages(proc, family) == []
    (home / "cmdline").write_text("python\0train.py")
    assert pages(proc, family) == [], "the command line is read once per process"
    (home / "stat").write_text((home / "stat").read_text().replace(" 1 0", " 2 0"))
    assert pages(proc, family) == [10]
