"""Jobs: once each, without waiting, tried again in time, retained within bounds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from memboard.collector.format.errors import CorruptError, VersionError
from memboard.tb_plugin.cache import ENTRY_OVERHEAD_BYTES, Cache, CacheMemory
from memboard.tb_plugin.contract.errors import NotReadyError
from memboard.tb_plugin.jobs import job as module
from memboard.tb_plugin.jobs.job import Job, Jobs
from memboard.tb_plugin.worker.errors import FileError, LimitError
from tests.collector.recordings import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0
"""No test waits so long; a hang ends."""


class Thing(NamedTuple):
    """What is opened."""

    name: str
    version: int = 0
    rank: int | None = 1

    @property
    def path_text(self) -> str:
        return f"run/{self.name}"


class Opener(Jobs[Thing, bytes]):
    """Opens what the test has decided about."""

    def __init__(self, max_bytes: int = 10**9) -> None:
        super().__init__(len, Cache(CacheMemory(max_bytes)))
        self.gates: dict[str, threading.Event] = {}
        self.errors: dict[str, Exception] = {}
        self.sizes: dict[str, int] = {}
        self.opened: list[str] = []
        self.after: list[bytes] = []

    def open(self, name: str, version: int = 0, again: int | None = None) -> Any:
        thing = Thing(name, version)
        return self.begin(
            thing, name, thing, self._make, again=again, after=self.after.append
        )

    def _make(self, job: Job[Thing, bytes]) -> bytes:
        name = job.found.name
        job.note(0.3, "reading the file")
        assert self.gates.setdefault(name, _open()).wait(SECONDS)
        self.opened.append(name)
        if name in self.errors:
            raise self.errors[name]
        return bytes([job.found.version]) * self.sizes.get(name, 10)

    def done(self, name: str, version: int = 0, again: int | None = None) -> Any:
        job = self.open(name, version, again)
        assert job.wait(SECONDS)
        return job

    def ready(self, names: str) -> str:
        return "".join(one for one in names if self.known(Thing(one)) is not None)


def _open() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@pytest.fixture
def opener() -> Iterator[Opener]:
    made = Opener()
    yield made
    for gate in made.gates.values():
        gate.set()


def test_what_is_asked_for_twice_is_opened_once_and_keeps_nobody_waiting(opener):
    gate = opener.gates["slow"] = threading.Event()
    first, second = (opener.open("slow") for _ in range(2))
    assert first is second
    wait_until(lambda: first.doing == "reading the file")
    assert (first.state, first.progress) == ("opening", 0.3)
    assert opener.current("slow") is opener.latest("slow") is None
    assert [opener.done(name).state for name in "abcd"] == ["ready"] * 4
    assert first.state == "opening"
    gate.set()
    assert first.wait(SECONDS)
    assert (first.state, first.progress, first.doing) == ("ready", 1.0, "")
    assert opener.current("slow") is opener.latest("slow") is opener.open("slow")
    assert opener.opened.count("slow") == 1
    assert opener.num_ended == 5
    wait_until(lambda: len(opener.after) == 5)


def test_no_more_than_so_many_are_opened_at_a_time(opener, monkeypatch):
    monkeypatch.setattr(module, "MAX_UNDER_WAY", 3)
    for name in "abc":
        opener.gates[name] = threading.Event()
        opener.open(name)
    with pytest.raises(NotReadyError) as caught:
        opener.open("d")
    assert caught.value.remedy
    assert opener.open("a").state == "opening"


def test_what_failed_is_told_again_and_tried_again_later(opener, monkeypatch):
    opener.errors["a"] = FileError("It is torn.", "byte 7", "Copy it again.")
    failed = opener.done("a")
    assert (failed.state, failed.problem.what) == ("failed", "It is torn.")
    assert (failed.problem.where, failed.problem.path) == ("byte 7", "run/a")
    assert failed.problem.rank == 1
    assert opener.open("a") is failed
    monkeypatch.setattr(module, "RETRY_S", -1.0)
    gate = opener.gates["a"] = threading.Event()
    again = opener.open("a")
    assert again is not failed
    assert again.problem is None
    assert again.failure is failed.problem
    del opener.errors["a"]
    gate.set()
    assert again.wait(SECONDS)
    assert (again.state, again.failure) == ("ready", None)


def test_content_that_is_at_fault_is_tried_again_where_a_person_wants_it(
    opener, monkeypatch
):
    monkeypatch.setattr(module, "RETRY_S", -1.0)
    opener.errors["a"] = LimitError("Too much.", "", "Record less.")
    first = opener.done("a")
    assert opener.open("a") is first
    second = opener.done("a", again=1)
    assert second is not first
    # The page goes on asking in the same words.
    assert opener.open("a", again=1) is second
    del opener.errors["a"]
    third = opener.done("a", again=2)
    assert third.state == "ready"
    assert opener.open("a", again=3) is third
    assert len(opener.opened) == 3


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (ZeroDivisionError("ours"), "ZeroDivisionError", "traceback"),
        (CorruptError("it is torn"), "It is torn.", "another"),
        (VersionError("it is new"), "It is new.", "version that wrote it"),
        (OSError(5, "Input/output error"), "Input/output error", "still there"),
        (MemoryError(), "not enough memory", "Close"),
        (NotReadyError("Not there.", "", "Wait."), "Not there.", "Wait."),
    ],
)
def test_whatever_goes_wrong_is_a_problem_and_not_the_end(opener, error, what, remedy):
    opener.errors["a"] = error
    problem = opener.done("a").problem
    assert what in problem.what
    assert remedy in problem.remedy
    assert opener.done("b").state == "ready"


def test_the_older_content_is_there_while_the_newer_is_opened(opener):
    opener.done("a")
    gate = opener.gates["a"] = threading.Event()
    newer = opener.open("a", version=1)
    assert opener.current("a") is None
    assert opener.latest("a").result == bytes(10)
    gate.set()
    assert newer.wait(SECONDS)
    assert opener.current("a") is opener.latest("a") is newer


def test_those_used_last_stay_within_the_bound():
    opener = Opener(max_bytes=25 + 2 * ENTRY_OVERHEAD_BYTES)
    for name in "ab":
        opener.done(name)
    opener.current("a")  # used again
    opener.done("c")
    wait_until(lambda: opener.ready("abc") == "ac")
    assert opener.latest("b") is None
    opener.sizes["large"] = 1000
    opener.done("large")
    wait_until(lambda: opener.ready("abc") == "")
    assert opener.current("large") is not None
    opener.max_retained = 3
    opener.show(3)
    for name in "defg":
        opener.done(name)
    wait_until(lambda: opener.ready("defg") == "efg")


def test_of_many_results_only_those_that_were_used_are_measured_again():
    measured = []

    class Measured(Opener):
        def __init__(self):
            super().__init__()
            self._num_bytes = lambda result: measured.append(1) or len(result)

    opener = Measured()
    for number in range(80):
        opener.done(f"{number}")
    opener.open("last").wait(SECONDS)
    assert 80 <= len(measured) < 80 * 20
    assert opener.current("3").result == bytes(10)
