"""The mirror: queue, retries, bounds, pruning, leftovers. No network."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import fsspec
import pytest

from memboard.collector.mirror.mirror import Mirror
from memboard.collector.mirror.store import Store
from tests.collector.mirror.conftest import files_in, who
from tests.collector.recordings import wait_until


def test_files_lie_there_as_they_lie_here(bench, there):
    mirror = bench.mirror(f"file://{there}/{{run_name}}")
    first, second = bench.segment(0), bench.file("memprofiler/report.log", b"r" * 10**6)
    gone = bench.file("a.json")
    assert mirror.put("events", first)
    assert mirror.put("dumps", second)
    assert mirror.put("traces", gone, delete_after=True)
    mirror.close()
    copied = files_in(there / "exp1")
    assert copied.pop("a.json") == b"content"
    assert copied == files_in(bench.run_dir)
    (folder,) = list(there.iterdir())
    assert folder.name == "exp1"


def test_the_same_goes_to_a_store_of_whole_objects(bench, memory):
    mirror = bench.mirror(f"{memory}/{{run_name}}/rank{{rank:03d}}")
    path = bench.file("a.json", b"12345")
    assert mirror.url_of("traces", path) == f"{memory}/exp1/rank003/a.json"
    assert mirror.put("traces", path)
    mirror.close()
    with fsspec.open(f"{memory}/exp1/rank003/a.json") as file:
        assert file.read() == b"12345"


def test_templates_and_values_give_the_key(bench, there):
    mirror = bench.mirror(
        f"file://{there}", traces="/{run_name}/ep{epoch}-ba{batch}-rank{rank}.json"
    )
    path = bench.file()
    assert mirror.put("traces", path, values={"epoch": 2, "batch": 17})
    mirror.close()
    assert (there / "exp1" / "ep2-ba17-rank3.json").read_bytes() == b"content"


def test_a_kind_that_is_null_stays_here(bench, there):
    mirror = bench.mirror(f"file://{there}", traces=None)
    path = bench.file()
    assert not mirror.put("traces", path, delete_after=True)
    assert mirror.url_of("traces", path) is None
    mirror.close()
    assert path.exists()
    assert files_in(there) == {}


def test_without_a_url_there_is_no_mirror(bench):
    from memboard.collector.config.sections import RemoteConfig

    nobody = {"identify": who, "stem": lambda: bench.stem, "warn_once": bench.warn_once}
    mirror = Mirror(RemoteConfig(), bench.run_dir, **nobody)
    mirror.start()
    assert not mirror.is_on
    assert not mirror.put("traces", bench.file(), delete_after=True)
    mirror.close()


def test_two_files_of_one_key_do_not_overwrite_each_other(bench, there, caplog):
    mirror = bench.mirror(f"file://{there}", traces="{batch}.json")
    assert mirror.put("traces", bench.file(content=b"1"), values={"batch": 1})
    other = bench.file(content=b"2")
    assert not mirror.put("traces", other, values={"batch": 1}, delete_after=True)
    mirror.close()
    assert (there / "1.json").read_bytes() == b"1"
    assert other.exists()
    assert "its key 1.json below remote.url is that of" in caplog.text


# Deleting after the upload.


def test_pruning_spares_the_newest_segment(bench, there):
    mirror = bench.mirror(f"file://{there}", prune=True)
    paths = [bench.segment(number) for number in range(3)]
    for path in paths:
        mirror.put("events", path)
    mirror.close()
    assert [path.exists() for path in paths] == [False, False, True]
    assert len(list(there.rglob("*.events"))) == 3


def test_a_segment_is_pruned_also_after_the_next_one(bench, there):
    """Threads copy side by side: the next one may have come and gone before."""
    mirror = bench.mirror(f"file://{there}", prune=True)
    first, second, newest = (bench.segment(number) for number in range(3))
    mirror.put("events", second)
    wait_until(lambda: not second.exists())
    mirror.put("events", first)
    mirror.put("events", newest)
    mirror.close()
    assert (first.exists(), newest.exists()) == (False, True)


@pytest.mark.parametrize("damage", ["shorter", "other"])
def test_nothing_is_deleted_that_did_not_arrive_whole(
    bench, there, monkeypatch, damage
):
    """What is verified is the copy, read back where the store tells no sum."""
    from fsspec.implementations.local import LocalFileSystem

    real = LocalFileSystem.put_file

    def put_file(self, source, target, **others):
        real(self, source, target, **others)
        content = b"short" if damage == "shorter" else b"X" * len(b"content")
        Path(target).write_bytes(content)

    monkeypatch.setattr(LocalFileSystem, "put_file", put_file)
    mirror = bench.mirror(f"file://{there}", close_seconds=0.6)
    path = bench.file("a.json")
    mirror.put("traces", path, delete_after=True)
    wait_until(lambda: bench.notes)
    mirror.close()
    assert path.exists()
    assert bench.waiting == ["a.json"]
    (note, *_) = bench.notes
    assert "NotVerifiedError" in note[1]


# A store that refuses.


class Refusing:
    """Makes `Store.put` raise for a while."""

    def __init__(self, monkeypatch, error, times=10**9):
        self.error, self.times, self.calls, self.taken = error, times, [], []
        self.lock = threading.Lock()
        real = Store.put

        def put(store, path, key):
            with self.lock:  # files are copied side by side
                self.calls.append(key)
                left, self.times = self.times, max(0, self.times - 1)
            if left:
                raise self.error
            real(store, path, key)
            self.taken.append(key)

        monkeypatch.setattr(Store, "put", put)


def test_what_is_refused_is_tried_again_and_arrives_once(
    bench, there, monkeypatch, caplog
):
    refusing = Refusing(monkeypatch, OSError(errno.EIO, "input/output error"), times=3)
    mirror = bench.mirror(f"file://{there}")
    for number in range(4):
        mirror.put("events", bench.segment(number))
    wait_until(lambda: mirror.num_waiting == 0)
    mirror.close()
    assert len(refusing.calls) == 7
    assert sorted(set(refusing.taken)) == sorted(refusing.taken)
    assert len(refusing.taken) == 4
    assert caplog.text.count("could not be copied") == 1
    assert [note[0] for note in bench.notes][-1] == "recorded"
    assert "failed" in [note[0] for note in bench.notes]


def test_a_store_that_is_away_is_not_hammered(bench, there, monkeypatch):
    # However slow this machine is, the pause is not over before the end.
    monkeypatch.setattr(
        "memboard.collector.mirror.uploads._FIRST_PAUSE_SECONDS", 3600.0
    )
    refusing = Refusing(monkeypatch, ConnectionError("connection refused"))
    monkeypatch.setattr("memboard.collector.mirror.uploads.RETRY_SECONDS", 3600.0)
    monkeypatch.setattr("memboard.collector.mirror.uploads.CONCURRENCY", 4)
    mirror = bench.mirror(f"file://{there}", close_seconds=0)
    for number in range(50):
        mirror.put("events", bench.segment(number))
    wait_until(lambda: refusing.calls)
    time.sleep(0.4)
    # One try each of the threads that were under way, and then the pause.
    assert 1 <= len(refusing.calls) <= 4
    mirror.close()


def test_what_is_left_at_the_end_is_named_and_goes_with_the_next_start(
    bench, there, monkeypatch, caplog
):
    refusing = Refusing(monkeypatch, ConnectionError("connection refused"))
    mirror = bench.mirror(f"file://{there}", close_seconds=0.3)
    first, trace = bench.segment(0), bench.file("trace.json")
    mirror.put("events", first)
    mirror.put("traces", trace, delete_after=True)
    wait_until(lambda: bench.notes)
    began = time.monotonic()
    mirror.close()
    assert time.monotonic() - began < 60
    for thread in mirror._uploads._threads:  # or it may still try as the store is back
        thread.join(300)
    assert "2 files were not copied" in caplog.text
    assert first.name in caplog.text
    assert "go with the next start" in caplog.text
    assert "Check the network and the endpoint" in caplog.text
    assert "connection refused" in caplog.text
    assert bench.waiting == ["trace.json"]  # a recording is found by its name

    refusing.times = 0
    bench.stem = bench.stem.replace("2026", "2027")  # another attempt
    os.utime(first, (1, 1))  # nobody writes to it any more
    again = bench.mirror(f"file://{there}")
    wait_until(lambda: len(refusing.taken) == 2)
    again.close()
    assert sorted(refusing.taken) == [f"plugins/memboard/{first.name}", "trace.json"]
    assert not trace.exists()
    assert first.exists()
    assert not list(bench.run_dir.rglob("*.waiting.json"))


def test_a_restart_uploads_nothing_twice(bench, there, monkeypatch):
    refusing = Refusing(monkeypatch, OSError(), times=0)
    mirror = bench.mirror(f"file://{there}")
    paths = [bench.segment(number) for number in range(3)]
    for path in paths:
        mirror.put("events", path)
        os.utime(path, (1, 1))
    mirror.close()
    assert len(refusing.taken) == 3
    bench.stem = bench.stem.replace("2026", "2027")
    again = bench.mirror(f"file://{there}")
    wait_until(lambda: len(again._uploads.chores) == 1)
    wait_until(lambda: again.num_waiting == 0)
    again.close()
    assert len(refusing.taken) == 3


def test_files_of_a_killed_process_go_once_nobody_can_write_to_them(
    bench, there, monkeypatch
):
    """Also one that it had begun, in which nothing is."""
    finished, begun = bench.segment(0), bench.segment(1)
    begun.write_bytes(b"")
    bench.stem = bench.stem.replace("2026", "2027")
    bench.mirror(f"file://{there}").close()
    assert {path.name for path in there.rglob("*.events")} == {finished.name}
    monkeypatch.setattr("memboard.collector.mirror.leftovers.QUIET_SECONDS", -1.0)
    bench.mirror(f"file://{there}").close()
    assert {path.name for path in there.rglob("*.events")} == {
        finished.name,
        begun.name,
    }


def test_a_local_file_that_is_gone_is_told_and_holds_nobody_up(bench, there, caplog):
    mirror = bench.mirror(f"file://{there}")
    gone, path = bench.file("gone"), bench.file("here")
    gone.unlink()
    mirror.put("traces", gone)
    mirror.put("traces", path)
    mirror.close()
    assert files_in(there).keys() >= {"here"}
    assert "gone is not mirrored: it cannot be read" in caplog.text
    assert bench.waiting == []


def test_a_full_queue_leaves_files_here_and_says_so(bench, there, monkeypatch, caplog):
    Refusing(monkeypatch, ConnectionError("away"))
    monkeypatch.setattr("memboard.collector.mirror.mirror.QUEUE_FILES", 2)
    monkeypatch.setattr("memboard.collector.mirror.uploads.RETRY_SECONDS", 60.0)
    mirror = bench.mirror(f"file://{there}", close_seconds=0)
    answers = [mirror.put("traces", bench.file()) for _ in range(8)]
    mirror.close()
    assert answers[:2] == [True, True]
    assert False in answers
    assert "more than 2 files wait" in caplog.text
    assert len(bench.waiting) == answers.count(True)


def test_putting_waits_for_nothing(bench, there, monkeypatch):
    """The store hangs; the training thread goes on, and the end is bounded."""
    free = threading.Event()
    monkeypatch.setattr(Store, "put", lambda *_args, **_others: free.wait(600) and None)
    mirror = bench.mirror(f"file://{there}", close_seconds=0.2)
    began = time.monotonic()
    for _ in range(100):
        assert mirror.put("traces", bench.file())
    assert not free.is_set()
    mirror.close()
    assert time.monotonic() - began < 120
    assert mirror.num_waiting == 100
    free.set()


def test_a_forked_child_has_no_mirror(bench, there):
    mirror = bench.mirror(f"file://{there}")
    pid = os.fork()
    if pid == 0:
        mirror.forget()
        os._exit(int(mirror.put("traces", bench.run_dir / "x")))
    assert os.waitpid(pid, 0)[1] == 0
    assert mirror.put("traces", bench.file("a.json"))
    mirror.close()
    assert (there / "a.json").exists()
