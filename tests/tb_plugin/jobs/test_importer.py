"""Files become tables in processes of their own, and a bad one harms nobody."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from memboard.collector.format.snapshots import rebuilt
from memboard.tb_plugin.worker import importer as importer_module
from memboard.tb_plugin.worker import process as process_module
from memboard.tb_plugin.worker.cache import ColumnCache, FileKey
from memboard.tb_plugin.worker.errors import (
    FileError,
    ImportFailedError,
    LimitError,
    ReaderError,
    RefusedError,
)
from memboard.tb_plugin.worker.importer import MAX_WORKERS, Importer
from memboard.tb_plugin.worker.limits import (
    GZIP,
    SNAPSHOT,
    TRACE,
    Limits,
    content_bytes,
)
from memboard.tb_plugin.worker.process import WorkerProcess
from tests.collector.recordings import wait_until
from tests.made_snapshots import everything, long_history
from tests.tb_plugin.jobs.commanded import BUSY, COMMANDED, HANG
from tests.tb_plugin.readers.traces.reading import document, event, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.worker.limits import Kind

ROOT = Path(__file__).parents[3]
SOON_S = 120.0


class Started(Importer):
    """Reads on threads of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(ColumnCache(folder))
        self.pool = ThreadPoolExecutor(32)
        self.progress: dict[str, float] = {}

    def start(self, path: Path, kind: Kind = SNAPSHOT) -> Future[Any]:
        def note(share: float) -> None:
            self.progress[path.name] = share

        return self.pool.submit(self.tables, path, kind, None, note)


@pytest.fixture
def importer(tmp_path) -> Iterator[Started]:
    made = Started(tmp_path / "cache")
    yield made
    made.close()
    made.pool.shutdown()


@pytest.fixture
def workers(monkeypatch) -> list[WorkerProcess]:
    """Those that were started."""
    made: list[WorkerProcess] = []
    begin = WorkerProcess.__init__

    def noted(worker: WorkerProcess, *args: Any) -> None:
        begin(worker, *args)
        made.append(worker)

    monkeypatch.setattr(WorkerProcess, "__init__", noted)
    return made


def dumped(path: Path, snapshot: Any) -> Path:
    path.write_bytes(pickle.dumps(snapshot, protocol=4))
    return path


def commanded(path: Path, command: str) -> Path:
    path.write_text(command)
    return path


def failed(
    importer: Importer,
    path: Path,
    kind: type[ImportFailedError],
    listed: FileKey | None = None,
    read_as: Kind = SNAPSHOT,
) -> ImportFailedError:
    with pytest.raises(ImportFailedError) as error:
        importer.tables(path, read_as, listed)
    assert type(error.value) is kind
    assert error.value.what
    return error.value


def test_a_file_becomes_tables_and_is_there_at_once_from_then_on(
    importer, tmp_path, workers
):
    path = dumped(tmp_path / "a.pickle", everything())
    assert rebuilt(importer.tables(path, SNAPSHOT)) == everything()
    fresh = Importer(ColumnCache(tmp_path / "cache"))
    assert rebuilt(fresh.tables(path, SNAPSHOT)) == everything()
    assert len(workers) == 1
    dumped(path, long_history(100))
    assert rebuilt(importer.tables(path, SNAPSHOT)) == long_history(100)


def test_a_listed_file_is_read_as_long_as_it_is_that_file(importer, tmp_path):
    path = dumped(tmp_path / "a.pickle", everything())
    listed = FileKey.of(path.stat())
    assert rebuilt(importer.tables(path, SNAPSHOT, listed)) == everything()
    dumped(path, long_history(100))
    assert "changed after" in failed(importer, path, FileError, listed).what
    dumped(tmp_path / "b", long_history(100)).replace(path)
    assert "took the place" in failed(importer, path, FileError, listed).what


def test_a_link_is_not_followed_where_the_listing_saw_none(importer, tmp_path):
    secret = dumped(tmp_path / "secret", everything())
    path = dumped(tmp_path / "a.pickle", long_history(100))
    listed = FileKey.of(path.stat())
    path.unlink()
    path.symlink_to(secret)
    assert "a link" in failed(importer, path, FileError, listed).what
    # Named by a person.
    assert rebuilt(importer.tables(path, SNAPSHOT)) == everything()


@pytest.mark.parametrize("listed", [False, True])
def test_a_file_swapped_while_the_import_waits_is_not_read(
    importer, tmp_path, monkeypatch, listed
):
    """Between the look at the path and the opening: by a link, or another file."""
    secret = dumped(tmp_path / "secret", everything())
    path = dumped(tmp_path / "a.pickle", long_history(100))
    opened = importer_module._opened

    def swapped(path, key, follow):
        Path(path).unlink()
        Path(path).symlink_to(secret)
        return opened(path, key, follow)

    monkeypatch.setattr(importer_module, "_opened", swapped)
    key = FileKey.of(path.stat()) if listed else None
    error = failed(importer, path, FileError, key)
    assert ("took the place" if listed else "changed") in error.what


def test_asking_for_one_file_at_once_is_one_worker(importer, tmp_path, workers):
    path = dumped(tmp_path / "a.pickle", long_history(3000))
    for one in [importer.start(path) for _ in range(5)]:
        assert len(one.result()["events"]["size"]) == 3000
    assert len(workers) == 1


def test_many_are_read_by_a_few_workers_at_a_time(importer, tmp_path, workers):
    paths = [dumped(tmp_path / f"{n}.pickle", long_history(50 + n)) for n in range(16)]
    running, most, lock = 0, 0, threading.Lock()
    follow = WorkerProcess.follow

    def counted(worker: WorkerProcess, *asked: Any) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        try:
            follow(worker, *asked)
        finally:
            with lock:
                running -= 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerProcess, "follow", counted)
        found = [importer.start(path) for path in paths]
        lengths = [len(one.result()["events"]["size"]) for one in found]
    assert lengths == sorted(lengths)
    assert 1 <= most <= MAX_WORKERS


def test_a_worker_reads_one_small_file_after_another(importer, tmp_path, workers):
    for number in range(5):
        path = dumped(tmp_path / f"{number}.pickle", long_history(20 + number))
        assert rebuilt(importer.tables(path, SNAPSHOT)) == long_history(20 + number)
        trace = tmp_path / f"{number}.json"
        trace.write_bytes(document([event(f"{number}")]))
        assert f"{number}" in importer.tables(trace, TRACE)["strings"]["text"]
    assert len(workers) == 1


def test_a_large_file_has_a_worker_of_its_own(importer, tmp_path, monkeypatch, workers):
    monkeypatch.setattr(importer_module, "_MOST_SMALL", 30)
    for number, command in enumerate(("1", "2", "'" + 40 * "3" + "'", "4")):
        assert importer.tables(commanded(tmp_path / f"{number}", command), COMMANDED)
    first, own = workers
    assert psutil.pid_exists(first.pid)
    assert not psutil.pid_exists(own.pid)


def test_a_worker_that_idles_goes_and_is_replaced(importer, tmp_path, workers):
    importer.tables(commanded(tmp_path / "a", ""), COMMANDED)
    (idle,) = workers
    os.kill(idle.pid, signal.SIGKILL)
    assert importer.tables(commanded(tmp_path / "b", "0"), COMMANDED)
    wait_until(lambda: not psutil.pid_exists(idle.pid))
    assert importer.tables(commanded(tmp_path / "c", "1"), COMMANDED)
    assert len(workers) == 2
    importer.close()
    wait_until(lambda: not any(psutil.pid_exists(one.pid) for one in workers))


SPOILED = "import builtins; builtins.spoiled = getattr(builtins, 'spoiled', 0) + 1"


@pytest.mark.parametrize(
    "spoilt",
    [
        f"{SPOILED}\nassert spoiled == 1",
        f"{SPOILED}\nif spoiled > 1: import ctypes; ctypes.string_at(0)",
        f"{SPOILED}\nif spoiled > 1: raise MemoryError",
    ],
)
def test_what_is_said_of_a_file_does_not_rest_on_the_one_before(
    importer, tmp_path, workers, spoilt
):
    """Whatever the file before left in a worker, a fresh one has the last word."""
    importer.tables(commanded(tmp_path / "a", SPOILED), COMMANDED)
    tables = importer.tables(commanded(tmp_path / "b", spoilt), COMMANDED)
    assert bytes(tables["bytes"]["value"].tolist()).decode() == spoilt
    assert len(workers) == 2


def test_each_file_has_the_time_and_memory_of_its_own(importer, tmp_path, monkeypatch):
    """Not less after others: a worker is limited anew for each."""
    limited(monkeypatch, cpu_s=2, memory_bytes=96 << 20)
    took = "import time; end = time.process_time() + 0.9\nwhile time.process_time() < end: 1"
    for number in range(4):
        command = f"{took}\nlist(bytes(6 << 20)); {number}"
        path = commanded(tmp_path / f"{number}", command)
        assert importer.tables(path, COMMANDED)


def test_a_refused_file_is_named_with_reason_place_and_remedy(importer, tmp_path):
    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps(os.system))
    error = failed(importer, path, RefusedError)
    assert "class or function" in error.what
    assert error.where.startswith(f"{path}, byte ")
    assert "Dump the snapshot again" in error.remedy
    dumped(path, everything())
    assert rebuilt(importer.tables(path, SNAPSHOT)) == everything()


def test_a_full_disk_is_said(importer, tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ColumnCache, "put", full)
    error = failed(importer, dumped(tmp_path / "a", everything()), FileError)
    assert "No space left" in error.what
    assert "MEMBOARD_CACHE_DIR" in error.remedy


@pytest.mark.parametrize("kind", ["missing", "a directory", "a pipe"])
def test_what_is_no_file_is_said_to_be_none(importer, tmp_path, kind):
    path = tmp_path / "a"
    if kind == "a directory":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    assert failed(importer, path, FileError).where == str(path)


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))"
KILL = "import os, signal; os.kill(os.getpid(), signal.%s)"


@pytest.mark.parametrize(
    ("command", "kind", "words", "remedy"),
    [
        (KILL % "SIGKILL", ReaderError, "was killed", "Free memory"),
        ("import ctypes; ctypes.string_at(0)", ReaderError, "ended with -11", "report"),
        ("import os; os._exit(0)", ReaderError, "without a message", "report"),
        ("raise RuntimeError('a fault')", ReaderError, "RuntimeError: a fault", ""),
        ("import sys; sys.exit(3)", ReaderError, "SystemExit: 3", "report"),
        (KILL % "SIGXCPU", LimitError, "processor time", "max_entries"),
        ("raise MemoryError", LimitError, "more memory", "max_entries"),
        (FULL, FileError, "File too large", "MEMBOARD_CACHE_DIR"),
    ],
)
@pytest.mark.parametrize("forks", [True, False])
def test_however_a_worker_dies_it_is_said(
    importer, tmp_path, monkeypatch, command, kind, words, remedy, forks
):
    monkeypatch.setattr(process_module, "_FORKS", forks)
    path = commanded(tmp_path / "a", command)
    error = failed(importer, path, kind, read_as=COMMANDED)
    assert words in error.what
    assert error.where == str(path)
    assert remedy in error.remedy
    assert list((tmp_path / "cache" / "columns").iterdir()) == []


def test_a_worker_that_writes_no_columns_is_not_believed(
    importer, tmp_path, monkeypatch
):
    follow = WorkerProcess.follow

    def torn(worker: WorkerProcess, *asked: Any) -> None:
        follow(worker, *asked)
        (part,) = (tmp_path / "cache" / "columns").iterdir()
        part.write_bytes(b"x")

    monkeypatch.setattr(WorkerProcess, "follow", torn)
    error = failed(importer, dumped(tmp_path / "a", everything()), ReaderError)
    assert "no whole column file" in error.what


def limited(monkeypatch, **changes: Any) -> None:
    limits = Limits(512 << 20, 60, 600.0)._replace(**changes)
    monkeypatch.setattr(Limits, "of", lambda *_, **__: limits)


def test_a_worker_that_hangs_is_stopped(importer, tmp_path, monkeypatch):
    limited(monkeypatch, silent_s=0.2)
    path = commanded(tmp_path / "a", HANG)
    error = failed(importer, path, FileError, read_as=COMMANDED)
    assert "stalled" in error.what
    assert "disk" in error.remedy


def test_a_machine_that_is_busy_is_no_reason_to_refuse_a_file(
    importer, tmp_path, monkeypatch
):
    """The worker is given a little time now and then, and is not heard of meanwhile."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(process_module, "cpu_seconds_of", lambda _: next(ticks) / 1000)
    limited(monkeypatch, silent_s=0.2)
    path = commanded(tmp_path / "a", "import time; time.sleep(1)")
    assert importer.tables(path, COMMANDED)


@pytest.mark.parametrize("is_known", [True, False])
def test_small_files_do_not_wait_behind_what_takes_long(
    importer, tmp_path, monkeypatch, is_known
):
    """Whether what takes long is known to be large, or only looks small."""
    monkeypatch.setattr(importer_module, "_SHORT_S", 600.0 if is_known else 0.5)
    monkeypatch.setattr(
        importer_module,
        "_expected",
        lambda path, key, kind: key.size << 30 * (is_known and kind is COMMANDED),
    )
    names = [f"long{number}" for number in range(4)]
    long = [
        importer.start(commanded(tmp_path / name, BUSY), COMMANDED) for name in names
    ]
    wait_until(lambda: sum(name in importer.progress for name in names) >= 2)
    small = [
        importer.start(dumped(tmp_path / f"small{n}", long_history(20 + n)))
        for n in range(3)
    ]
    assert all(one.result(SOON_S) for one in small)
    assert not any(one.done() for one in long)
    importer.close()
    for one in long:
        with pytest.raises(ReaderError):
            one.result(SOON_S)


def test_what_was_set_aside_is_read_in_the_end(importer, tmp_path, monkeypatch):
    monkeypatch.setattr(importer_module, "_SHORT_S", 0.0)
    slow = "import time; time.sleep(0.3)"
    found = [
        importer.start(commanded(tmp_path / f"{n}", slow), COMMANDED) for n in range(5)
    ]
    assert all(one.result(SOON_S) for one in found)


@pytest.mark.parametrize("said", [0, 1 << 20, 64 << 20, (1 << 32) - 1])
def test_how_much_is_in_a_file_is_believed_within_bounds(said):
    head, end = GZIP, said.to_bytes(4, "little")
    size = 1 << 20
    expected = content_bytes(size, head, end, SNAPSHOT)
    assert 8 * size <= expected <= 200 * size
    if 8 * size < said < 200 * size:
        assert expected == said
    assert content_bytes(size, b"\x80\x04", end, SNAPSHOT) == size


@pytest.mark.parametrize("kib", [0, 128, 384, 768])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits address space")
def test_memory_beyond_the_limit_ends_the_worker_alone(
    importer, tmp_path, monkeypatch, kib
):
    limited(monkeypatch, memory_bytes=kib << 10)
    path = dumped(tmp_path / "a", long_history(9000))
    error = failed(importer, path, LimitError)
    assert "more memory" in error.what
    assert "max_entries" in error.remedy
    limited(monkeypatch)
    assert importer.tables(path, SNAPSHOT)


def test_processor_time_beyond_the_limit_ends_the_worker(
    importer, tmp_path, monkeypatch
):
    limited(monkeypatch, cpu_s=1)
    path = commanded(tmp_path / "a", BUSY)
    error = failed(importer, path, LimitError, read_as=COMMANDED)
    assert "processor time" in error.what


def test_a_file_that_changes_while_it_is_read_is_not_believed(
    importer, tmp_path, monkeypatch
):
    path = dumped(tmp_path / "a", everything())
    follow = WorkerProcess.follow

    def written(worker: Any, *asked: Any) -> None:
        with path.open("ab") as file:
            file.write(b"more")
        follow(worker, *asked)

    monkeypatch.setattr(WorkerProcess, "follow", written)
    assert "changed" in failed(importer, path, FileError).what


# -- the fork server ------------------------------------------------------------------


def server() -> psutil.Process:
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]  # its id
    return psutil.Process(pid)


def test_a_fork_server_that_was_killed_is_replaced(importer, tmp_path):
    importer.tables(commanded(tmp_path / "a", ""), COMMANDED)
    first = server()
    first.kill()
    wait_until(lambda: first.status() == psutil.STATUS_ZOMBIE)
    # By the worker that is there.
    assert importer.tables(commanded(tmp_path / "b", "0"), COMMANDED)
    assert server() == first
    failed(importer, commanded(tmp_path / "c", "1 / 0"), ReaderError, read_as=COMMANDED)
    assert importer.tables(commanded(tmp_path / "d", "1"), COMMANDED)
    assert server() != first


def test_what_was_read_counts_though_the_server_was_killed_meanwhile(
    importer, tmp_path, workers
):
    waiting = f"import os, time\nwhile os.path.exists({str(tmp_path / 'a')!r}): time.sleep(0.01)"
    (tmp_path / "a").touch()
    found = importer.start(commanded(tmp_path / "b", waiting), COMMANDED)
    wait_until(lambda: "b" in importer.progress)
    server().kill()
    (tmp_path / "a").unlink()
    assert len(found.result(SOON_S)["bytes"]["value"]) == len(waiting)


def test_what_the_server_reads_before_it_forks_is_a_trace_of_every_kind_of_event():
    trace = read(TRACE.sample)
    assert not trace.problems
    assert sorted(trace.name_of(row) for row in range(len(trace.slices))) == list("abc")
    for table in (trace.operators, trace.launches, trace.device_work):
        assert len(table.row) == 1
    assert len(trace.flows) == len(trace.memory) == len(trace.collectives.row) == 1


def test_without_a_server_workers_are_started_from_nothing(
    importer, tmp_path, monkeypatch
):
    def refuse(files: list[int]) -> tuple[int, int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(forkserver, "connect_to_new_process", refuse)
    path = tmp_path / "a.json"
    path.write_bytes(document([event("a")]))
    assert importer.tables(path, TRACE)["strings"]


# What runs in processes of their own begins like this.
BEGIN = f"""
import sys; sys.path[0] = {str(ROOT)!r}; import os
from pathlib import Path
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import SNAPSHOT
"""


def run(tmp_path: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        cwd=tmp_path,
        env={**os.environ, "MEMBOARD_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 has a safe path")
def test_nothing_is_imported_from_where_the_process_was_started(tmp_path):
    for name in ("numpy", "json", "socket", "selectors", "multiprocessing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken over')")
    dumped(tmp_path / "a.pickle", everything())
    code = "print(len(Importer().tables('a.pickle', SNAPSHOT)['events']['size']))"
    done = run(tmp_path, code)
    assert (done.stdout.strip(), done.stderr) == ("10", "")


def test_neither_a_worker_nor_the_server_outlives_its_parent(tmp_path):
    path = commanded(tmp_path / "a", "import time\nwhile 1: time.sleep(.1); report(.5)")
    done = run(
        tmp_path,
        "from tests.tb_plugin.jobs.commanded import COMMANDED\n"
        "from multiprocessing import forkserver\n"
        "def note(share):\n"
        "    (worker,) = importer._workers\n"
        "    print(worker.pid, forkserver._forkserver._forkserver_pid, flush=True)\n"
        f"    os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
        "importer = Importer()\n"
        f"importer.tables({str(path)!r}, COMMANDED, None, note)",
    )
    pids = [int(text) for text in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    wait_until(lambda: not any(map(is_running, pids)))


def is_running(pid: int) -> bool:
    """Not so one that is dead, though nobody asked yet what became of it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
