"""Comparisons while a recording runs: notes that say what is known, and what is not."""

from __future__ import annotations

import json
import logging
import os
import time

import pytest

from memboard.collector.clock.comparing import ClockComparing
from memboard.collector.clock.process_clock import ProcessClock
from memboard.collector.config.sections import ScheduleConfig
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.steps.cycles import Cycles
from memboard.collector.steps.progress import Progress
from tests.programs import Program

SECOND = 10**9


class Notes:
    """What was noted, by kind."""

    def __init__(self) -> None:
        self.found: list[tuple[str, dict]] = []

    def __call__(self, kind, data):
        self.found.append((kind, data))

    def of(self, kind):
        return [data for found, data in self.found if found == kind]


def comparing_of(notes, clock=None, method="auto"):
    schedule = ScheduleConfig(active=1, repeat=0)
    cycles = Cycles(schedule, Progress(), WarnOnce())
    return ClockComparing(method, notes, cycles, WarnOnce(), clock or ProcessClock())


def test_a_lone_process_says_how_far_its_wall_clock_may_be_off():
    notes = Notes()
    compared = comparing_of(notes)
    compared.start()
    (said,) = notes.of("clock")
    assert said["method"] == "wall"
    assert said["reference_rank"] is None
    assert said["error_ns"] is None or said["error_ns"] > 0
    assert abs(said["offset_ns"]) < SECOND


def test_switched_off_it_says_nothing_but_jumps(caplog):
    wall = [10**18]
    clock = ProcessClock(lambda: wall[0] + time.monotonic_ns(), time.monotonic_ns)
    notes = Notes()
    compared = comparing_of(notes, clock=clock, method="off")
    compared.start()
    compared.look()
    assert notes.found == []
    wall[0] -= 3600 * SECOND
    with caplog.at_level(logging.WARNING, "memboard"):
        compared.look()
    (jump,) = notes.of("clock_jump")
    assert abs(jump["jumped_ns"] + 3600 * SECOND) < SECOND // 10
    assert abs(jump["jumped_ns"] - jump["wall_ahead_ns"]) < SECOND // 100
    assert "set by -3600" in caplog.text
    compared.look()
    assert len(notes.of("clock_jump")) == 1


RANK = """
import json, sys, time
import torch.distributed as dist
from memboard.collector.clock.process_clock import ProcessClock
from memboard.collector.config.schedule import Action
from tests.collector.clock.test_comparing import SECOND, Notes, comparing_of
rank, shift = int(sys.argv[1]), -5 * SECOND * int(sys.argv[1])
clock = ProcessClock(lambda: time.monotonic_ns() + shift, time.monotonic_ns)
dist.init_process_group("gloo", sys.argv[2], rank=rank, world_size=2)
notes = Notes()
compared = comparing_of(notes, clock, method="distributed")
compared.start()
for cycle in (1, 2):  # as each begins and ends
    for action in (Action.WARMUP, Action.ACTIVE_AND_SAVE):
        compared._cycles.cycle, compared._cycles.action = cycle, action
        compared.begin(0)
        compared.end(0)
compared.cut("exception")
dist.destroy_process_group()
print(json.dumps(notes.found))
"""
"""One of two ranks; rank 1's clock is 5 s behind."""


def test_through_torch_distributed_where_that_is_asked_for(tmp_path):
    pytest.importorskip("torch.distributed")
    meeting = (tmp_path / "meeting").as_uri()  # a port may be taken by somebody else
    environ = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [Program(RANK, rank, meeting, env=environ) for rank in range(2)]
    found = [json.loads(one.communicate()[0]) for one in ranks]
    assert [kind for kind, _ in found[0]] == ["clock"]  # its own wall clock alone
    compared = [data for _, data in found[1] if data.get("reference_rank") == 0]
    assert len(compared) == 4
    for said in compared:
        assert said["method"] == "distributed"
        assert abs(said["offset_ns"] - 5 * SECOND) <= said["error_ns"]


def test_a_collective_that_fails_leaves_training_alone(caplog):
    notes = Notes()
    compared = comparing_of(notes, method="distributed")
    compared.start()

    class Broken:
        is_possible = True

        def make(self, _number):
            raise RuntimeError("connection closed by peer")

    compared._trips = Broken()
    compared._cycles.cycle = 1
    with caplog.at_level(logging.WARNING, "memboard"):
        compared.begin(0)
    assert compared._trips is None
    assert "not any more" in caplog.text
