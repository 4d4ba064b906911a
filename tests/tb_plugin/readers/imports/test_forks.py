"""Workers that are forked: as much apart as those started from nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

import pytest

from tb_plugin.jobs.worker import importer as importer_module
from tb_plugin.jobs.worker.column_cache import ColumnCache
from tb_plugin.jobs.worker.errors import CancelledError, FileError, ReaderError
from tb_plugin.jobs.worker.forks import ForkedProcess, ForkServer
from tb_plugin.jobs.worker.importer import Importer
from tb_plugin.jobs.worker.kinds import SNAPSHOT, TRACE
from tb_plugin.jobs.worker.limits import Limits
from tests.collector.recordings import wait_until
from tests.tb_plugin.readers.traces.reading import document, event, read

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other systems start every worker from nothing"
)

LARGE = document([event(f"n{i}", i, args={"a": i}) for i in range(60_000)])


@pytest.fixture
def importer(tmp_path):
    made = Importer(ColumnCache(tmp_path / "cache"))
    yield made
    made.close()


def write(path: Path, data: bytes = LARGE) -> Path:
    path.write_bytes(data)
    return path


def server_of(importer: Importer) -> subprocess.Popen[bytes]:
    server = importer._forks._process
    assert server is not None
    return server


def test_traces_are_read_by_forks_of_one_server(importer, tmp_path):
    for name in ("a", "b"):
        found = importer.start(write(tmp_path / name), kind=TRACE)
        assert len(found.result()["slices"]["start_ns"]) == 60_000
    server = server_of(importer)
    assert server.poll() is None
    importer.close()
    assert server.returncode is not None


def test_what_the_server_reads_before_it_forks_is_a_trace_of_every_kind_of_event():
    trace = read(TRACE.sample)
    assert not trace.problems
    assert sorted(trace.name_of(row) for row in range(len(trace.slices))) == list("abc")
    for table in (trace.operators, trace.launches, trace.device_work):
        assert len(table.row) == 1
    assert len(trace.flows) == len(trace.memory) == len(trace.collectives.row) == 1


def test_a_server_that_was_killed_is_replaced(importer, tmp_path):
    importer.start(write(tmp_path / "a"), kind=TRACE).result()
    first = server_of(importer)
    first.kill()
    first.wait()
    assert importer.start(write(tmp_path / "b"), kind=TRACE).result()
    assert server_of(importer) is not first


def test_what_was_read_counts_though_the_server_was_killed_meanwhile(
    importer, tmp_path, monkeypatch
):
    made = forked(monkeypatch)
    found = importer.start(write(tmp_path / "a"), kind=TRACE)
    process = wait_for(made)
    server = server_of(importer)
    server.kill()
    server.wait()
    os.kill(process.pid, signal.SIGCONT)
    assert len(found.result()["slices"]["start_ns"]) == 60_000


def test_without_a_server_workers_are_started_from_nothing(
    importer, tmp_path, monkeypatch
):
    def nothing(self: ForkServer) -> None:
        raise OSError("no more processes of this kind")

    monkeypatch.setattr(ForkServer, "_begin", nothing)
    assert importer.start(write(tmp_path / "a"), kind=TRACE).result()


def test_kinds_that_come_one_at_a_time_are_not_forked(tmp_path):
    forks = ForkServer((TRACE,))
    with write(tmp_path / "a").open("rb") as file, (tmp_path / "b").open("wb") as out:
        assert forks.start(file, out, SNAPSHOT, Limits(1 << 30, 60, 60.0)) is None
    forks.close()


def forked(monkeypatch) -> list[ForkedProcess]:
    """The forked processes, as they come; each stopped before it has read its file."""
    made: list[ForkedProcess] = []
    kept = ForkServer.start

    def start(self: ForkServer, file: IO[bytes], *args: Any) -> ForkedProcess | None:
        while (process := kept(self, file, *args)) is not None:
            os.kill(process.pid, signal.SIGSTOP)
            while (state := state_of(process.pid)) not in "TZ":
                time.sleep(0.001)
            if state == "T":
                made.append(process)
                break
            process.wait()  # it was faster than this thread
            process.stderr.close()
            file.seek(0)
        return process

    monkeypatch.setattr(ForkServer, "start", start)
    return made


def wait_for(made: list[ForkedProcess]) -> ForkedProcess:
    wait_until(lambda: made)
    return made[0]


def test_a_fork_that_is_killed_harms_its_file_alone(importer, tmp_path, monkeypatch):
    made = forked(monkeypatch)
    found = importer.start(write(tmp_path / "a"), kind=TRACE)
    os.kill(wait_for(made).pid, signal.SIGKILL)
    with pytest.raises(ReaderError, match="was killed"):
        found.result()
    monkeypatch.undo()
    assert importer.start(write(tmp_path / "b"), kind=TRACE).result()


def test_a_fork_that_hangs_is_stopped(importer, tmp_path, monkeypatch):
    forked(monkeypatch)
    monkeypatch.setattr(Limits, "of", lambda *_, **__: Limits(1 << 30, 60, 0.3))
    with pytest.raises(FileError, match="came to a halt"):
        importer.start(write(tmp_path / "a"), kind=TRACE).result()


def test_a_fork_can_be_called_off(importer, tmp_path, monkeypatch):
    made = forked(monkeypatch)
    found = importer.start(write(tmp_path / "a"), kind=TRACE)
    process = wait_for(made)
    found.cancel()
    with pytest.raises(CancelledError):
        found.result()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_server_and_forks_do_not_outlive_their_parent(tmp_path):
    path = write(tmp_path / "a")
    root = Path(__file__).parents[4]
    code = (
        f"import os, sys; sys.path.insert(0, {str(root)!r})\n"
        "from pathlib import Path\n"
        "from tb_plugin.jobs.worker.importer import Importer\n"
        "from tb_plugin.jobs.worker.kinds import TRACE\n"
        "importer = Importer()\n"
        f"importer.start(Path({str(path)!r}), kind=TRACE).result()\n"
        "print(importer._forks._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MEMBOARD_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    pid = int(done.stdout)
    wait_until(lambda: state_of(pid) == "Z")


def state_of(pid: int) -> str:
    """As in /proc: T is stopped, Z dead; so is one that is not there any more."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "Z"
    return text.rpartition(")")[2].split()[0]


def test_the_pool_is_bounded(importer, tmp_path, monkeypatch):
    running, most, lock = 0, 0, threading.Lock()
    kept = importer_module.WorkerProcess.follow

    def follow(worker: object, *asked: object) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            kept(worker, *asked)
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(importer_module.WorkerProcess, "follow", follow)
    data = document([event()])
    found = [
        importer.start(write(tmp_path / f"{i}", data), kind=TRACE) for i in range(16)
    ]
    assert all(one.result() for one in found)
    assert 1 <= most <= importer_module.MAX_WORKERS
