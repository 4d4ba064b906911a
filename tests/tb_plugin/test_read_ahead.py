"""Reading ahead: the newest run, in bites, and never anybody's problem."""

from __future__ import annotations

import json
import pickle
import threading
from types import SimpleNamespace

import pytest
from tensorboard.plugins import base_plugin

from memboard.tb_plugin import plugin as plugin_module
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.traces import profiled as of_profile
from memboard.tb_plugin.index.history_list import listed
from memboard.tb_plugin.index.logdirs import Logdir, OpenedPaths
from memboard.tb_plugin.loader import Loader
from memboard.tb_plugin.plugin import MemBoardPlugin
from memboard.tb_plugin.server import read_ahead
from memboard.tb_plugin.server.read_ahead import ReadAhead
from memboard.tb_plugin.server.state import State
from tests.builders import START_NS, RunBuilder
from tests.made_snapshots import long_history
from tests.simulate import oom_case

SECONDS = 300.0
"""No test waits so long; a hang ends."""

NUM_RANKS = 70
"""Of runs this big the run picker first opens two files."""


@pytest.fixture
def state(tmp_path) -> State:
    """Two runs; `new` is the newer one."""
    RunBuilder(tmp_path / "old").simple(NUM_RANKS, 3)
    new = RunBuilder(tmp_path / "new")
    for rank in range(NUM_RANKS):
        builder = new.rank(rank, start_ns=START_NS + 10**12, world_size=NUM_RANKS)
        builder.steps(range(3), allocated_peak_bytes=[1, 2, rank])
        builder.close()
    return State((Logdir(str(tmp_path), "", str(tmp_path)),))


def run_named(state: State, name: str):
    (run,) = [run for run in state.store.runs() if run.found.name == name]
    return run


def read_ahead_of(state: State) -> None:
    reader = ReadAhead(lambda: state, wait=0.0)
    reader.start()
    assert reader.join(SECONDS)


def test_snapshots_that_nobody_opened_have_their_peak_and_their_error(tmp_path):
    (tmp_path / "calm").mkdir()
    snapshot = pickle.dumps(long_history(50), 4)
    (tmp_path / "calm" / "memory_snapshot.pickle").write_bytes(snapshot)
    (tmp_path / "died").mkdir()
    oom_case("fragmented", 7).write(tmp_path / "died")
    state = State((Logdir(str(tmp_path), "", str(tmp_path)),))
    read_ahead_of(state)
    summaries, standings = state.glance_at_all()
    names = {one.id: one.name for one in summaries}
    found = [(names[one.run], one.status) for one in standings]
    assert found == [("died", "out_of_memory"), ("calm", "fine")]
    assert all(one.peak_bytes for one in standings)


def test_the_newest_run_is_open_and_decoded_before_anyone_asks(state, monkeypatch):
    read_ahead_of(state)
    new, old = run_named(state, "new"), run_named(state, "old")
    assert new.is_whole
    assert not new.unfinished
    assert len(old.files) == 2

    def read(*_):
        raise AssertionError("a file was read again")

    monkeypatch.setattr(
        "memboard.tb_plugin.formats.recording.frames.parts.PartsReader.read", read
    )
    for file in new.files.values():
        peak = state.facts.of_file(file).readings["allocated_peak_bytes"].value
        assert peak == max(2, file.rank)
        state.read_first(file)


@pytest.mark.parametrize("most", [of_profile.MAX_AHEAD, 10])
def test_the_trace_that_is_shown_first_is_opened_unless_it_is_large(
    tmp_path, monkeypatch, most
):
    monkeypatch.setattr(of_profile, "MAX_AHEAD", most)
    folder = tmp_path / "logs" / "run"
    folder.mkdir(parents=True)
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1}
    trace = {"traceEvents": [{**event, "ts": 1, "dur": 2}]}
    for cycle in (1, 2):
        name = f"worker0.{cycle}.pt.trace.json"
        (folder / name).write_text(json.dumps(trace))
    state = State((Logdir(str(folder.parent), "", str(folder.parent)),))
    read_ahead_of(state)
    (run,), _ = state.glance_at_all()
    sources = {one.name: one for one in state.traces.listed(run.id).sources}
    opened = {
        name: state.traces.sources.known((run.id, one.id, *one.key))
        for name, one in sources.items()
    }
    assert opened["worker0.1.pt.trace.json"] is None, "nobody asked for it"
    newest = opened["worker0.2.pt.trace.json"]
    if most == 10:
        assert newest is None
        return
    assert newest is not None
    assert newest.wait(SECONDS)
    assert newest.state == "ready"


class Pauses:
    """What the reader waits on between bites: each pause lasts until a test has looked."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Semaphore(0), threading.Semaphore(0)

    def wait(self, _seconds: float) -> bool:
        self.begun.release()
        assert self.ended.acquire(timeout=SECONDS)
        return False


def test_a_request_gets_the_lock_between_bites(state, monkeypatch):
    monkeypatch.setattr(read_ahead, "_BITE_SECONDS", 0.0)
    run = run_named(state, "new")
    seen = []
    reader = ReadAhead(lambda: state, wait=0.0)
    reader._stop = pauses = Pauses()
    reader.start()
    while not reader.join(0.0):
        if pauses.begun.acquire(timeout=0.05):
            assert run.lock.acquire(timeout=SECONDS)
            seen.append(len(run.files))
            run.lock.release()
            pauses.ended.release()
    assert len({n for n in seen if 2 < n < NUM_RANKS}) >= 3
    assert run.is_whole


@pytest.mark.parametrize(
    ("bounds", "most"),
    [
        ({"_MOST_FILES": NUM_RANKS - 1}, 2),
        ({"_BITE_SECONDS": 0.0, "_MOST_SECONDS": 0.0}, NUM_RANKS - 1),
    ],
    ids=["too many files", "no time"],
)
def test_files_and_time_are_bounded(state, monkeypatch, bounds, most):
    for name, value in bounds.items():
        monkeypatch.setattr(read_ahead, name, value)
    read_ahead_of(state)
    assert len(run_named(state, "new").files) <= most


def test_whatever_goes_wrong_is_logged_once_and_ends_there(caplog):
    def broken():
        raise MemoryError("planted")

    reader = ReadAhead(broken, wait=0.0)
    reader.start()
    assert reader.join(SECONDS)
    assert caplog.text.count("MemoryError: planted") == 1


def test_the_end_of_the_interpreter_does_not_wait_for_it(state):
    reader = ReadAhead(lambda: state, wait=SECONDS)
    reader.start()
    reader.stop()
    assert reader.join(SECONDS / 2)
    assert reader._thread.daemon


@pytest.mark.parametrize(("flag", "started"), [("true", 1), ("false", 0)])
def test_the_flag_decides(monkeypatch, flag, started):
    calls = []
    monkeypatch.setattr(
        plugin_module.MemBoardPlugin, "read_ahead", lambda _: calls.append(1)
    )
    flags = SimpleNamespace(memboard_read_ahead=flag)
    Loader().load(base_plugin.TBContext(logdir="/nonexistent", flags=flags))
    assert len(calls) == started


@pytest.fixture
def named(tmp_path) -> OpenedPaths:
    """Two files that were named; in one directory, so of one run."""
    paths = [tmp_path / "job" / f"memory_snapshot_rank{rank}.pickle" for rank in (1, 0)]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_bytes(pickle.dumps(long_history(200)))
    return OpenedPaths(tuple(map(str, paths)))


def test_the_file_that_was_named_first_is_opened_before_anyone_asks(named):
    state = State((), named.runs())
    reader = ReadAhead(lambda: state, named.files[0], wait=0.0)
    reader.start()
    assert reader.join(SECONDS)
    (run,) = state.store.runs()
    with run.lock:
        found = {one.reference.path: one for one in listed(run, Budget(SECONDS))}
    first, second = (state.histories.known(found[p].key) for p in named.files)
    assert first is not None
    assert first.wait(SECONDS)
    assert first.state == "ready"
    assert second is None, "it was asked for by nobody"


def test_a_named_file_that_went_is_nobodys_problem(named, tmp_path, caplog):
    state = State((), named.runs())
    reader = ReadAhead(lambda: state, str(tmp_path / "gone.pickle"), wait=0.0)
    reader.start()
    assert reader.join(SECONDS)
    assert caplog.text == ""


def test_the_plugin_says_which_file_was_named_first(named, tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(ReadAhead, "start", lambda self: begun.append(self._named))
    MemBoardPlugin(None, named).read_ahead()
    flags = SimpleNamespace(memboard_read_ahead="true")
    Loader().load(base_plugin.TBContext(logdir=str(tmp_path), flags=flags))
    assert begun == [named.files[0], ""]
