"""Traces that stay, with and without a mirror; names, files and moments of training."""

from __future__ import annotations

import gzip
import signal
import textwrap
import time
from pathlib import Path

import pytest

from memboard.collector.process.rank import Identity
from memboard.collector.steps.progress import Progress
from memboard.collector.torch_profiler import saving
from memboard.collector.torch_profiler.files import free_name, place_of, write_trace
from memboard.collector.torch_profiler.retention import TraceRetention
from memboard.collector.torch_profiler.template_variables import (
    TemplateVariables,
    identity_values,
)
from tests.collector.recordings import wait_until
from tests.collector.torch_profiler.training import (
    artifacts,
    recording,
    step_names,
    traces,
    train,
)
from tests.programs import Program


class Mirror:
    """Copies when it is told to."""

    def __init__(self, takes=True):
        self.takes = takes
        self.put_files = []
        self.copied = set()

    def put(self, kind, path, *, delete_after=False, may_go=False, values=None):
        assert kind in ("traces", "memory")
        assert may_go
        self.put_files.append((path.name, delete_after, dict(values)))
        return self.takes

    def url_of(self, kind, path, values=None):
        return f"memory://{path.name}" if self.takes else None

    def has_copy(self, path):
        return path in self.copied


def made(folder, number):
    path = folder / f"t{number}.json"
    path.write_text("x" * 10)
    return path


def add(kept, path, *beside, step=0):
    values = {"batch": step}
    stays, url = kept.add(step, step, path, values)
    kept.send("traces", path, values, stays=stays)
    for one in beside:
        kept.add_beside("memory", path, one, values)
    return stays, url


def names(kept):
    return [path.name for saved in kept.saved for path in saved.paths]


def test_the_newest_stay_and_older_ones_go_with_what_lies_beside(tmp_path):
    kept = TraceRetention(2, lambda: None)
    for number in range(5):
        beside = tmp_path / f"t{number}.html"
        beside.touch()
        assert add(kept, made(tmp_path, number), beside) == (True, None)
    assert names(kept) == ["t3.json", "t3.html", "t4.json", "t4.html"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names(kept))
    assert kept.num_bytes == 20


def test_without_a_bound_all_stay(tmp_path):
    kept = TraceRetention(-1, lambda: None)
    for number in range(5):
        add(kept, made(tmp_path, number))
    assert len(kept.saved) == 5
    assert kept.num_bytes == 50


def test_none_stays_here_but_the_mirror_deletes_after_its_copy(tmp_path):
    mirror = Mirror()
    kept = TraceRetention(0, lambda: mirror)
    path = made(tmp_path, 0)
    assert add(kept, path, step=4) == (False, "memory://t0.json")
    assert mirror.put_files == [("t0.json", True, {"batch": 4})]
    assert path.exists()
    assert kept.saved == ()


def test_what_the_mirror_does_not_take_goes_at_once_where_none_is_to_stay(tmp_path):
    kept = TraceRetention(0, lambda: Mirror(takes=False))
    path = made(tmp_path, 0)
    assert add(kept, path) == (False, None)
    assert not path.exists()


def test_an_old_trace_waits_for_its_copy(tmp_path):
    mirror = Mirror()
    kept = TraceRetention(1, lambda: mirror)
    first, second = made(tmp_path, 0), made(tmp_path, 1)
    add(kept, first)
    add(kept, second)
    assert first.exists()
    assert names(kept) == ["t1.json"]
    assert kept.num_bytes == 20
    mirror.copied.add(first)
    kept.settle()
    assert not first.exists()
    assert second.exists()
    assert kept.num_bytes == 10
    assert [name for name, *_ in mirror.put_files] == ["t0.json", "t1.json"]


def test_room_is_counted_beside_those_that_stay(tmp_path):
    kept = TraceRetention(2, lambda: None)
    for number in range(3):
        add(kept, made(tmp_path, number))
    assert kept.num_bytes == 20
    assert kept.num_bytes_beside == 10
    assert TraceRetention(0, lambda: None).num_bytes_beside == 0
    assert TraceRetention(1, lambda: None).num_bytes_beside == 0


def test_a_name_stays_taken_when_its_file_is_gone(tmp_path):
    kept = TraceRetention(0, lambda: None)
    path = made(tmp_path, 0)
    assert kept.is_taken(path)
    add(kept, path)
    assert not path.exists()
    assert kept.is_taken(path)


def test_a_file_that_somebody_deleted_is_no_trouble(tmp_path):
    kept = TraceRetention(1, lambda: None)
    first = made(tmp_path, 0)
    add(kept, first)
    first.unlink()
    add(kept, made(tmp_path, 1))
    assert names(kept) == ["t1.json"]


# Names.


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("rank{rank}.{batch}.pt.trace.json", "rank3.7.pt.trace.json"),
        ("/a/{rank:05d}.json", "a/00003.json"),
        ("../../{run_name}.json", "x y.json"),
        ("a\\b/{total_wct:.1f}.json", "a/b/1.5.json"),
    ],
)
def test_places_never_leave_the_folder(tmp_path, template, name):
    values = {"rank": 3, "batch": 7, "run_name": "x y", "total_wct": 1.5}
    assert place_of(tmp_path, template, values) == tmp_path / name


def test_a_number_stands_before_the_endings():
    taken = {Path("/a/r0.4.pt.trace.json.gz"), Path("/a/r0.4-2.pt.trace.json.gz")}
    found = free_name(Path("/a/r0.4.pt.trace.json.gz"), taken.__contains__)
    assert found == Path("/a/r0.4-3.pt.trace.json.gz")
    found = free_name(Path("/a/x.html"), {Path("/a/x.html")}.__contains__)
    assert found == Path("/a/x-2.html")


# Files.


class Profile:
    """Writes what it is told to."""

    def __init__(self, text):
        self.text = text
        self.asked = []

    def export_chrome_trace(self, path):
        self.asked.append(Path(path).name)
        Path(path).write_text(self.text)


@pytest.mark.parametrize("compress", [False, True])
def test_a_trace_has_its_name_only_when_it_is_whole(tmp_path, compress):
    profile = Profile('{"traceEvents": []}\n')
    path = tmp_path / "a" / "t.json"
    write_trace(profile, path, compress=compress)
    (asked,) = profile.asked
    assert asked.startswith("t.json.")
    assert asked.endswith(".part")
    assert [p.name for p in path.parent.iterdir()] == ["t.json"]
    read = gzip.open if compress else open
    with read(path, "rt") as file:
        assert file.read() == profile.text


@pytest.mark.parametrize("part", ["", '{"traceEvents": [{"ph"'])
def test_a_file_that_is_there_stays_where_another_fails(tmp_path, part):
    path = tmp_path / "t.json"
    path.write_text("before")
    with pytest.raises(OSError, match="break off"):
        write_trace(Profile(part), path, compress=False)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


# Moments.


def test_counts_start_anew_with_each_epoch():
    progress = Progress()
    progress.epoch = 0
    moments = TemplateVariables(progress)

    def step():
        moments.begin()
        progress.report(tokens=100, samples=8)
        moments.end()
        progress.advance(None)

    for _ in range(3):
        step()
    values = moments.values(3)
    assert (values["epoch"], values["batch"], values["batch_in_epoch"]) == (0, 3, 3)
    moments.begin()  # as a step does that begins before its epoch is announced
    progress.epoch = 1
    progress.report(tokens=100, samples=8)
    moments.end()
    progress.advance(None)
    values = moments.values(4)
    assert (values["epoch"], values["batch"], values["batch_in_epoch"]) == (1, 4, 1)
    assert (values["sample"], values["sample_in_epoch"]) == (32, 8)
    assert (values["token"], values["token_in_epoch"]) == (400, 100)
    assert 0 <= values["epoch_wct"] <= values["total_wct"]
    assert values["batch_wct"] <= values["total_wct"]


def test_what_training_counts_itself_goes_first():
    progress = Progress()
    moments = TemplateVariables(progress)
    progress.moment = lambda: {
        "batch": 7,
        "epoch": True,
        "total_wct": 1.23456,
        "sample": "many",
        "rank": 5,  # not of a moment
    }
    values = moments.values(3)
    assert (values["batch"], values["total_wct"]) == (7, 1.235)
    assert (values["epoch"], values["sample"]) == (1, 0)
    assert "rank" not in values


def test_training_that_fails_to_say_its_moment_is_counted():
    progress = Progress()
    progress.moment = lambda: {}["batch"]
    assert TemplateVariables(progress).values(3)["batch"] == 3


def test_numbers_that_begin_with_one_are_as_many_steps():
    progress = Progress()
    moments = TemplateVariables(progress)
    for number in (1, 2):
        moments.begin()
        progress.advance(number)
        moments.end()
    assert moments.values(2)["batch_in_epoch"] == 2


def test_a_process_that_knows_little_counts_as_one():
    identity = Identity(
        rank=5,
        local_rank=1,
        world_size=8,
        local_world_size=None,
        node_rank=None,
        host="h",
        job="",
        settled=True,
    )
    assert identity_values(identity, "exp") == {
        "run_name": "exp",
        "rank": 5,
        "local_rank": 1,
        "world_size": 8,
        "local_world_size": 1,
        "node_rank": 0,
    }


# Disks.


def test_traces_stop_at_their_budget(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(saving, "MAX_BYTES", 2**16)
    train(tmp_path, 9)
    assert artifacts(tmp_path) == {}
    first = traces(tmp_path)[0]
    assert "OverBudgetError" in first.meta["problem"]
    assert "the 65,536 bytes that traces may take" in caplog.text
    assert "num_traces_to_keep" in caplog.text


def test_a_disk_that_is_nearly_full_is_left_to_the_recording(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(saving, "_LEAST_FREE_BYTES", 2**62)
    train(tmp_path, 4)
    assert artifacts(tmp_path) == {}
    (capture,) = traces(tmp_path)
    assert capture.meta["problem"].startswith("not saved: NoRoomError")
    assert "Free space there" in caplog.text


def run(script, *args, **popen):
    code = textwrap.dedent(script)
    return Program(code, *args, **popen)


def test_a_file_that_may_grow_no_further_leaves_nothing_and_training_goes_on(tmp_path):
    """As a full disk does, a limit on the size of files refuses torch's writing."""
    process = run(
        """
        import resource, sys
        from tests.collector.torch_profiler.training import train
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
        train(sys.argv[1], 5)
        """,
        tmp_path,
    )
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "was not saved and nothing of it is left" in errors
    assert artifacts(tmp_path) == {}
    assert recording(tmp_path).steps() == list(range(5))


def test_a_killed_process_leaves_whole_traces_only(tmp_path):
    process = run(
        """
        import sys
        from tests.collector.torch_profiler.training import train
        train(sys.argv[1], 10**6, schedule={"wait": 0, "active": 20}, filename="{batch}.json.gz")
        """,
        tmp_path,
    )
    wait_until(lambda: list(tmp_path.rglob("*.json.gz*")), 300)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    found = [p for p in tmp_path.rglob("*") if p.name.endswith(".json.gz")]
    for path in found:
        assert len(step_names(path)) == 20
    assert found or list(tmp_path.rglob("*.part*"))


def test_the_end_of_the_program_saves_what_waits(tmp_path):
    process = run(
        """
        import sys
        from tests.collector.torch_profiler.training import record, steps
        steps(record(sys.argv[1]), 5)
        """,
        tmp_path,
    )
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert list(artifacts(tmp_path)) == ["rank0.4.pt.trace.json"]
