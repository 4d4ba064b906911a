"""Comparisons while a recording runs: notes that say what is known, and what is not."""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from types import SimpleNamespace

import pytest

from collector.clock import comparing
from collector.clock.comparing import FOLDER, ClockComparing
from collector.clock.exchange import Card
from collector.clock.files import Answerer
from collector.clock.process_clock import ProcessClock
from collector.config.schedule import Action
from collector.config.sections import ClockConfig, ScheduleConfig
from collector.format.names import RANK_FILES_DIR
from collector.loop.cycles import Cycles
from collector.loop.progress import Progress
from collector.trouble import Troubles

SECOND = 10**9


class Notes:
    """What was noted, by kind."""

    def __init__(self) -> None:
        self.found: list[tuple[str, dict]] = []
        self.came = threading.Condition()

    def __call__(self, kind, data):
        with self.came:
            self.found.append((kind, data))
            self.came.notify_all()

    def of(self, kind):
        return [data for found, data in self.found if found == kind]

    def wait_for(self, kind, number=1, seconds=300):
        with self.came:
            assert self.came.wait_for(lambda: len(self.of(kind)) >= number, seconds)
        return self.of(kind)


def identity(rank=0, world_size=1, *, settled=True):
    return SimpleNamespace(rank=rank, world_size=world_size, settled=settled)


def comparing_of(tmp_path, notes, who=None, clock=None, **settings):
    cycles = Cycles(RecordedSchedule, Progress(), Troubles())
    return ClockComparing(
        ClockConfig(**settings),
        tmp_path,
        lambda: who or identity(),
        notes,
        cycles,
        Troubles(),
        clock or ProcessClock(),
    )


RecordedSchedule = ScheduleConfig(active=1, repeat=0)


def test_a_lone_process_says_how_far_its_wall_clock_may_be_off(tmp_path):
    notes = Notes()
    compared = comparing_of(tmp_path, notes)
    compared.start()
    compared.close()
    (said,) = notes.of("clock")
    assert said["method"] == "wall"
    assert said["reference_rank"] is None
    assert said["error_ns"] is None or said["error_ns"] > 0
    assert abs(said["offset_ns"]) < SECOND
    assert not (tmp_path / "plugins").exists()


def test_switched_off_it_says_nothing_but_jumps(tmp_path, caplog):
    wall = [10**18]
    clock = ProcessClock(lambda: wall[0] + time.monotonic_ns(), time.monotonic_ns)
    notes = Notes()
    compared = comparing_of(tmp_path, notes, clock=clock, enabled=False)
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
    compared.close()


def test_a_rank_compares_itself_with_rank_0_through_files(tmp_path):
    """Rank 0 runs 7 s ahead on a host of its own."""
    reference = ProcessClock(
        lambda: time.monotonic_ns() + 7 * SECOND, time.monotonic_ns
    )
    mine = ProcessClock(time.monotonic_ns, time.monotonic_ns)
    folder = tmp_path.joinpath(*RANK_FILES_DIR, FOLDER)
    stop = threading.Event()
    serving = threading.Thread(
        target=Answerer(
            folder, lambda: Card("elsewhere", reference.to_wall_ns), reference
        ).serve,
        args=(stop,),
    )
    serving.start()
    notes = Notes()
    compared = comparing_of(tmp_path, notes, identity(3, 4), mine, interval_seconds=0.1)
    compared.start()
    try:
        found = notes.wait_for("clock", 3)[1:]
    finally:
        compared.close()
        stop.set()
        serving.join()
    for said in found:
        assert said["method"] == "files"
        assert said["reference_rank"] == 0
        assert abs(said["offset_ns"] - 7 * SECOND) <= said["error_ns"]
        assert abs(said["monotonic_ns"] - time.monotonic_ns()) < 60 * SECOND


def test_on_rank_0s_host_the_offset_is_exact_and_asked_for_once(tmp_path):
    zero, one = Notes(), Notes()
    ahead = ProcessClock(lambda: time.monotonic_ns() + 250_000, time.monotonic_ns)
    serving = comparing_of(tmp_path, zero, identity(0, 2), ahead)
    asking = comparing_of(
        tmp_path, one, identity(1, 2), ProcessClock(time.monotonic_ns, time.monotonic_ns),
        interval_seconds=0.1,
    )  # fmt: skip
    serving.start()
    asking.start()
    try:
        said = one.wait_for("clock", 2)[1]
        asking._thread.join(60)
        assert not asking._thread.is_alive()
    finally:
        asking.close()
        serving.close()
    if not said["host_id"]:
        pytest.skip("this system does not say which host it is")
    assert said["method"] == "same_host"
    assert abs(said["offset_ns"] - 250_000) < 200_000
    assert said["error_ns"] == 1000


def test_where_rank_0_does_not_answer_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("collector.clock.files._FIRST_ANSWER_SECONDS", 0.1)
    notes = Notes()
    compared = comparing_of(tmp_path, notes, identity(1, 2))
    compared.start()
    (said,) = notes.wait_for("source")
    compared.close()
    assert (said["name"], said["status"]) == ("clock", "absent")
    assert "rank 0" in said["reason"]


def test_a_directory_that_cannot_be_written_costs_only_the_comparison(tmp_path):
    (tmp_path / "plugins").write_text("a file")
    notes = Notes()
    compared = comparing_of(tmp_path, notes, identity(0, 2))
    compared.start()
    (said,) = notes.wait_for("source")
    compared.close()
    assert said["status"] == "absent"


def test_cycles_are_moments_to_compare_at(tmp_path):
    notes = Notes()
    compared = comparing_of(tmp_path, notes, identity(1, 2))
    called = []
    compared._compare_now = lambda: called.append(compared._cycles.cycle)
    for cycle, action in (
        (1, Action.WARMUP),
        (1, Action.ACTIVE_AND_SAVE),
        (2, Action.WARMUP),
    ):
        compared._cycles.cycle, compared._cycles.action = cycle, action
        compared.begin(0)
        compared.end(0)
    compared.cut("exception")
    assert called == [1, 1, 2]


def gloo_rank(rank, folder, meeting, out):
    """One of two ranks; rank 1's clock is 5 s behind and both say to be alone."""
    import torch.distributed as dist

    shift = -5 * SECOND * rank
    clock = ProcessClock(lambda: time.monotonic_ns() + shift, time.monotonic_ns)
    comparing.host_id = lambda: f"host {rank}"
    dist.init_process_group("gloo", meeting, rank=rank, world_size=2)
    notes = Notes()
    compared = comparing_of(
        folder, notes, identity(rank, 2), clock, method="distributed"
    )
    compared.start()
    for cycle in (1, 2):
        compared._cycles.cycle, compared._cycles.action = cycle, Action.ACTIVE_AND_SAVE
        compared.begin(0)
        compared.end(0)
    compared.close()
    out.put((rank, notes.found))
    dist.destroy_process_group()


def test_through_torch_distributed_where_that_is_asked_for(tmp_path):
    pytest.importorskip("torch.distributed")
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    folder = tmp_path / "run"
    meeting = (tmp_path / "meeting").as_uri()  # a port may be taken by somebody else
    ranks = [
        context.Process(target=gloo_rank, args=(rank, folder, meeting, out))
        for rank in range(2)
    ]
    for one in ranks:
        one.start()
    found = dict(out.get(timeout=300) for _ in ranks)
    for one in ranks:
        one.join(60)
    assert [kind for kind, _ in found[0]] == ["clock"]  # its own wall clock alone
    compared = [data for kind, data in found[1] if data.get("reference_rank") == 0]
    assert len(compared) == 4
    for said in compared:
        assert said["method"] == "distributed"
        assert abs(said["offset_ns"] - 5 * SECOND) <= said["error_ns"]
    assert not (folder / "plugins").exists()


def test_a_collective_that_fails_leaves_training_alone(tmp_path, caplog):
    notes = Notes()
    compared = comparing_of(tmp_path, notes, identity(1, 2), method="distributed")
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
    assert "through files" in caplog.text
    compared.close()
