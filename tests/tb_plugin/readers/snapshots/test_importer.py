"""Files become tables in processes of their own, and a bad one harms nobody."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from collector.format.snapshots import rebuilt
from tb_plugin.jobs.worker import importer as importer_module
from tb_plugin.jobs.worker import worker_process
from tb_plugin.jobs.worker.column_cache import ColumnCache, FileKey
from tb_plugin.jobs.worker.errors import (
    CancelledError,
    FileError,
    ImportFailedError,
    LimitError,
    ReaderError,
    RefusedError,
)
from tb_plugin.jobs.worker.importer import Import, Importer
from tb_plugin.jobs.worker.kinds import SNAPSHOT
from tb_plugin.jobs.worker.limits import GZIP, Limits, content_bytes
from tests.collector.recordings import wait_until
from tests.made_snapshots import everything, long_history

SLOW = (
    "import sys, time; sys.stderr.write('{\"progress\":0.25}\\n');"
    " sys.stderr.flush(); time.sleep(600)"
)
"""A worker that hangs."""
CODE = worker_process._CODE
AFTER_A_WHILE = "import time; time.sleep(2);"
BUSY = (
    "import os, sys, itertools; os.fstat(0).st_size == 4 and"
    " (sys.stderr.write('{\"progress\":0.25}\\n'), sys.stderr.flush(),"
    " all(itertools.count(1)));"
)
"""A worker that takes all the time there is for some files."""


@pytest.fixture
def importer(tmp_path):
    made = Importer(ColumnCache(tmp_path / "cache"))
    yield made
    made.close()


def dumped(path: Path, snapshot: Any) -> Path:
    path.write_bytes(pickle.dumps(snapshot, protocol=4))
    return path


def failed(found: Import, kind: type[ImportFailedError]) -> ImportFailedError:
    with pytest.raises(ImportFailedError) as error:
        found.result()
    assert type(error.value) is kind
    assert found.done
    assert found.error is error.value
    assert error.value.what
    return error.value


def test_a_file_becomes_tables_and_is_there_at_once_from_then_on(importer, tmp_path):
    path = dumped(tmp_path / "a.pickle", everything())
    found = importer.start(path)
    assert rebuilt(found.result()) == everything()
    assert found.progress == 1.0
    again = importer.start(path)
    assert again.done
    assert again.result() is found.result()
    fresh = Importer(ColumnCache(tmp_path / "cache")).start(path)
    assert fresh.done
    assert rebuilt(fresh.result()) == everything()


def test_a_changed_file_is_read_again(importer, tmp_path):
    path = dumped(tmp_path / "a.pickle", everything())
    importer.start(path).result()
    dumped(path, long_history(100))
    assert rebuilt(importer.start(path).result()) == long_history(100)


def test_a_listed_file_is_read_as_long_as_it_is_that_file(importer, tmp_path):
    path = dumped(tmp_path / "a.pickle", everything())
    listed = FileKey.of(path.stat())
    assert rebuilt(importer.start(path, listed).result()) == everything()
    dumped(path, long_history(100))
    error = failed(importer.start(path, listed), FileError)
    assert "changed after it was listed" in error.what
    dumped(tmp_path / "b", long_history(100)).replace(path)
    error = failed(importer.start(path, listed), FileError)
    assert "took the place" in error.what


def test_a_link_is_not_followed_where_the_listing_saw_none(importer, tmp_path):
    secret = dumped(tmp_path / "secret", everything())
    path = dumped(tmp_path / "a.pickle", long_history(100))
    listed = FileKey.of(path.stat())
    path.unlink()
    path.symlink_to(secret)
    error = failed(importer.start(path, listed), FileError)
    assert "a link" in error.what
    assert rebuilt(importer.start(path).result()) == everything()  # named by a person


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
    error = failed(importer.start(path, key), FileError)
    assert ("took the place" if listed else "changed") in error.what


def test_asking_twice_is_one_import(importer, tmp_path, monkeypatch):
    path = dumped(tmp_path / "a.pickle", long_history(3000))
    have_asked = threading.Event()
    kept = importer_module.WorkerProcess.follow

    def follow(worker: Any, *asked: Any) -> None:
        assert have_asked.wait(60)
        kept(worker, *asked)

    monkeypatch.setattr(importer_module.WorkerProcess, "follow", follow)
    found = [importer.start(path) for _ in range(5)]
    have_asked.set()
    assert len(set(map(id, found))) == 1
    found[0].result()


def test_many_threads_may_ask(importer, tmp_path):
    paths = [dumped(tmp_path / f"{n}.pickle", long_history(50 + n)) for n in range(6)]
    lengths = {}

    def ask(number: int) -> None:
        tables = importer.start(paths[number]).result()
        lengths[number] = len(tables["events"]["size"])

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(lengths) == set(range(6))


def test_no_more_workers_than_allowed_run_at_once(importer, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_process, "_CODE", SLOW)
    monkeypatch.setattr(importer_module, "_SHORT_S", 600.0)
    found = [
        importer.start(dumped(tmp_path / f"{n}", long_history(10 + n)))
        for n in range(importer_module.MAX_WORKERS + 2)
    ]
    while sum(one.progress == 0.25 for one in found) < importer_module.MAX_WORKERS:
        assert not any(one.wait(0.01) for one in found)
    waiting = found[importer_module.MAX_WORKERS :]
    assert [one.progress for one in waiting] == [0.0, 0.0]
    for one in found:
        one.cancel()
    for one in found:
        failed(one, CancelledError)


def test_what_was_called_off_can_be_asked_for_again(importer, tmp_path, monkeypatch):
    path = dumped(tmp_path / "a", everything())
    with monkeypatch.context() as patch:
        patch.setattr(worker_process, "_CODE", SLOW)
        found = importer.start(path)
        found.cancel()
        failed(found, CancelledError)
    assert rebuilt(importer.start(path).result()) == everything()


def test_a_refused_file_is_named_with_reason_place_and_remedy(importer, tmp_path):
    path = tmp_path / "evil.pickle"
    path.write_bytes(pickle.dumps(os.system))
    found = importer.start(path)
    error = failed(found, RefusedError)
    assert "class or function" in error.what
    assert error.where.startswith(f"{path}, byte ")
    assert "Dump the snapshot again" in error.remedy
    assert importer.start(path) is found  # no second process for the same file
    dumped(path, everything())
    assert rebuilt(importer.start(path).result()) == everything()


@pytest.mark.parametrize("kind", ["missing", "a directory", "a pipe"])
def test_what_is_no_file_is_said_to_be_none(importer, tmp_path, kind):
    path = tmp_path / "a"
    if kind == "a directory":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    error = failed(importer.start(path), FileError)
    assert error.where == str(path)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("import os, signal; os.kill(0 or os.getpid(), 9)", ReaderError, "was killed"),
        ("import ctypes; ctypes.string_at(0)", ReaderError, "ended with -11"),
        ("import os; os._exit(0)", ReaderError, "it said nothing"),
        ("print('no column file'); import sys; sys.exit(3)", ReaderError, "with 3"),
        ("raise RuntimeError('a fault')", ReaderError, "RuntimeError: a fault"),
        (
            "import sys; print('x'); sys.stderr.write('{\"done\":true}\\n')",
            ReaderError,
            "no whole column file",
        ),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)",
            LimitError,
            "processor time",
        ),
    ],
)
def test_however_a_worker_dies_it_is_said(
    importer, tmp_path, monkeypatch, code, kind, words
):
    monkeypatch.setattr(worker_process, "_CODE", code)
    path = dumped(tmp_path / "a", everything())
    error = failed(importer.start(path), kind)
    assert words in error.what
    assert error.where == str(path)
    assert error.remedy
    left = list((tmp_path / "cache" / "columns").iterdir())
    assert left == []


def test_a_worker_that_hangs_is_stopped(importer, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_process, "_CODE", SLOW)
    limits = Limits(1 << 28, 5, 0.2)
    monkeypatch.setattr(Limits, "of", lambda *_, **__: limits)
    path = dumped(tmp_path / "a", everything())
    error = failed(importer.start(path), FileError)
    assert "came to a halt" in error.what
    assert "disk" in error.remedy


def test_a_machine_that_is_busy_is_no_reason_to_refuse_a_file(
    importer, tmp_path, monkeypatch
):
    """The worker is given a little time now and then, and is not heard of meanwhile."""
    ticks = itertools.count(0.0, 0.01)
    monkeypatch.setattr(worker_process, "cpu_seconds_of", lambda _: next(ticks))
    monkeypatch.setattr(worker_process, "_CODE", f"{AFTER_A_WHILE} {CODE}")
    limits = Limits(512 << 20, 60, 0.2)
    monkeypatch.setattr(Limits, "of", lambda *_, **__: limits)
    found = importer.start(dumped(tmp_path / "a", everything()))
    assert rebuilt(found.result()) == everything()


def test_small_files_do_not_wait_behind_what_takes_long(
    importer, tmp_path, monkeypatch
):
    """Files that take all the time they may, as many as one likes, all of them smaller."""
    monkeypatch.setattr(worker_process, "_CODE", f"{BUSY} {CODE}")
    monkeypatch.setattr(importer_module, "_SHORT_S", 0.5)
    large = []
    for number in range(6):
        path = tmp_path / f"large{number}"
        path.write_bytes(b"busy")
        large.append(importer.start(path))
    wait_until(lambda: large[0].progress == 0.25)
    small = [
        importer.start(dumped(tmp_path / f"small{n}", long_history(20 + n)))
        for n in range(3)
    ]
    assert [len(one.result()["events"]["addr"]) for one in small]
    assert not any(one.done for one in large)
    for one in large:
        one.cancel()
    for one in large:
        failed(one, CancelledError)


def test_what_is_known_to_be_large_never_takes_the_place_of_small_files(
    importer, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker_process, "_CODE", f"{BUSY} {CODE}")
    monkeypatch.setattr(importer_module, "_SHORT_S", 600.0)
    monkeypatch.setattr(importer_module, "_MOST_SMALL", 1 << 20)
    monkeypatch.setattr(
        importer_module,
        "_expected",
        lambda path, key, kind: 4 << 20 if key.size == 4 else key.size,
    )
    large = []
    for number in range(3):
        path = tmp_path / f"large{number}"
        path.write_bytes(b"busy")
        large.append(importer.start(path))
    wait_until(lambda: sum(one.progress == 0.25 for one in large) == 2)
    small = importer.start(dumped(tmp_path / "small", long_history(20)))
    assert small.result()
    assert [one.progress for one in large].count(0.25) == 2
    for one in large:
        one.cancel()
    for one in large:
        failed(one, CancelledError)


def test_what_was_set_aside_is_read_in_the_end(importer, tmp_path, monkeypatch):
    monkeypatch.setattr(importer_module, "_SHORT_S", 0.0)
    found = [
        importer.start(dumped(tmp_path / f"{n}", long_history(20 + n)))
        for n in range(6)
    ]
    for one in found:
        assert one.result()


@pytest.mark.parametrize("said", [0, 1 << 20, 64 << 20, (1 << 32) - 1])
def test_how_much_is_in_a_file_is_believed_within_bounds(said):
    head, end = GZIP, said.to_bytes(4, "little")
    size = 1 << 20
    expected = content_bytes(size, head, end, SNAPSHOT)
    assert 8 * size <= expected <= 200 * size
    if 8 * size < said < 200 * size:
        assert expected == said
    assert content_bytes(size, b"\x80\x04", end, SNAPSHOT) == size


def limited(monkeypatch, **changes: Any) -> None:
    limits = Limits(512 << 20, 60, 600.0)._replace(**changes)
    monkeypatch.setattr(Limits, "of", lambda *_, **__: limits)


@pytest.mark.parametrize("kib", [0, 64, 128, 256, 384, 512, 768, 1024])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits address space")
def test_memory_beyond_the_limit_ends_the_worker_alone(
    importer, tmp_path, monkeypatch, kib
):
    limited(monkeypatch, memory_bytes=kib << 10)
    error = failed(
        importer.start(dumped(tmp_path / "a", long_history(9000))), LimitError
    )
    assert "more memory" in error.what
    assert "max_entries" in error.remedy
    path = tmp_path / "a"
    limited(monkeypatch)
    assert failed(importer.start(path), LimitError) is error  # it would need as much
    assert importer.start(path, again=True).result()


def test_processor_time_beyond_the_limit_ends_the_worker(
    importer, tmp_path, monkeypatch
):
    code = worker_process._CODE.replace(
        "main(kind, limits)",
        "import tb_plugin.jobs.worker.worker as w;"
        " w.read_tables = lambda *_: any(iter(int, 1)); main(kind, limits)",
    )
    monkeypatch.setattr(worker_process, "_CODE", code)
    limited(monkeypatch, cpu_s=1)
    error = failed(importer.start(dumped(tmp_path / "a", everything())), LimitError)
    assert "processor time" in error.what


def test_a_full_disk_is_said(importer, tmp_path, monkeypatch):
    code = worker_process._CODE.replace(
        "main(kind, limits)",
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        " import tb_plugin.jobs.worker.limits as l; l._MOST_OUTPUT = 4096;"
        # What Python compiles now would be cut off, too, and be there for all others.
        " sys.dont_write_bytecode = True; main(kind, limits)",
    )
    monkeypatch.setattr(worker_process, "_CODE", code)
    error = failed(
        importer.start(dumped(tmp_path / "a", long_history(9000))), FileError
    )
    assert "MEMBOARD_CACHE_DIR" in error.remedy


def test_a_file_that_changes_while_it_is_read_is_not_believed(
    importer, tmp_path, monkeypatch
):
    path = dumped(tmp_path / "a", everything())
    kept = importer_module.WorkerProcess.follow

    def follow(worker: Any, *asked: Any) -> None:
        with path.open("ab") as file:
            file.write(b"more")
        kept(worker, *asked)

    monkeypatch.setattr(importer_module.WorkerProcess, "follow", follow)
    error = failed(importer.start(path), FileError)
    assert "changed" in error.what


def test_nothing_is_imported_from_where_the_process_was_started(tmp_path):
    (tmp_path / "numpy.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    dumped(tmp_path / "a.pickle", everything())
    root = Path(__file__).parents[4]
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "from pathlib import Path\n"
        "from tb_plugin.jobs.worker.importer import Importer\n"
        "print(len(Importer().start(Path('a.pickle')).result()['events']['size']))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "MEMBOARD_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("10", "")


def test_a_worker_does_not_outlive_its_parent(tmp_path):
    path = dumped(tmp_path / "a.pickle", everything())
    root = Path(__file__).parents[4]
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "from pathlib import Path\n"
        "from tb_plugin.jobs.worker import worker_process\n"
        f"worker_process._CODE = {SLOW!r}\n"
        "from tb_plugin.jobs.worker.importer import Importer\n"
        f"found = Importer().start(Path({str(path)!r}))\n"
        "while found.progress == 0: found.wait(0.01)\n"
        "print(found._worker._process.pid, flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MEMBOARD_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    while is_running(int(done.stdout)):
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Not so one that is dead, though nobody asked yet what became of it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
