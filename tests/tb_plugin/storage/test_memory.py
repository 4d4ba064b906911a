"""A logdir at any file system of fsspec's: here the one in memory, for all of them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import uuid
from typing import Any

import fsspec
import numpy as np
import pytest

from memboard.tb_plugin import storage
from memboard.tb_plugin.storage.urls import parse_url
from memboard.tb_plugin.worker.cache import FileKey
from memboard.tb_plugin.worker.errors import FileError
from memboard.tb_plugin.worker.importer import Importer
from memboard.tb_plugin.worker.limits import SNAPSHOT
from tests.collector.recordings import wait_until
from tests.tb_plugin.client import Page
from tests.tb_plugin.storage.stores import StorePage, fill, names, whats

MEMORY = fsspec.filesystem("memory")
_UNLIKE = {"id", "run", "first_ms", "last_ms", "time_ms", "logdirs", "$response"}
_UNLIKE |= {
    "base_ns",
    "started_ms",
    "ended_ms",
    "drop_limit_bytes",
    "history",
    "source",
    "trace",
}


@pytest.fixture
def address():
    """A folder that no other test uses."""
    name = uuid.uuid4().hex
    yield f"memory://{name}"
    if MEMORY.exists(f"/{name}"):
        MEMORY.rm(f"/{name}", recursive=True)


def put(address: str, name: str, data: bytes) -> None:
    MEMORY.pipe_file(f"/{address.removeprefix('memory://')}/{name}", data)


def upload(logdir, address: str) -> None:
    """In the order they were written in, which pages show.

    The store's clock tells all of them apart, the disk's may not: what it gives one time
    comes in the order that a local page shows it in.
    """
    files = [path for path in logdir.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: (path.stat().st_mtime_ns, path)):
        put(address, path.relative_to(logdir).as_posix(), path.read_bytes())


def plain(value: Any) -> Any:
    """An answer without what differs between two places."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in _UNLIKE}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return "nan" if isinstance(value, float) and np.isnan(value) else value


def ready(page: Page, route: str, run: str, **query: Any) -> dict[str, Any]:
    """An answer once nothing of it is being opened any more."""
    found: dict[str, Any] = {}

    def is_so() -> bool:
        nonlocal found
        found = page.of_run(route, run, **query)
        states = [source["state"] for source in found.get("sources", [])]
        states.append(found.get("state", "ready"))
        return not {"opening", "closed"} & set(states)

    wait_until(is_so)
    return found


def test_every_page_shows_what_a_local_logdir_shows(tmp_path, address):
    local = Page(fill(tmp_path / "logs"))
    upload(tmp_path / "logs", address)
    away = StorePage(address)
    away.settled()
    here, there = local.get("/runs"), away.get("/runs")
    assert names(there) == ["exp", "profiler", "snaps", "traces"]
    assert plain(there) == plain(here)
    for route, run in (
        ("/overview", "exp"),
        ("/timeline", "exp"),
        ("/heatmap", "exp"),
        ("/overview", "snaps"),
        ("/functions", "profiler"),
        ("/modules", "profiler"),
        ("/histories", "snaps"),
        ("/traces", "traces"),
    ):
        assert plain(away.of_run(route, run)) == plain(local.of_run(route, run)), route
    of_rank = {"rank": "1"}
    histories = [p.of_run("/histories", "snaps")["histories"] for p in (away, local)]
    for known in zip(*histories, strict=True):
        ids = [one["reference"]["id"] for one in known]
        shown = [
            ready(page, "/history", "snaps", history=one)
            for page, one in zip((away, local), ids, strict=True)
        ]
        assert plain(shown[0]) == plain(shown[1])
        assert shown[0]["state"] == "ready"
    traces = [ready(page, "/trace", "traces") for page in (away, local)]
    assert plain(traces[0]) == plain(traces[1])
    assert [source["rank"] for source in traces[0]["sources"]] == [3]
    assert plain(away.of_run("/timeline", "exp", **of_rank)) == plain(
        local.of_run("/timeline", "exp", **of_rank)
    )


def test_a_traces_arguments_and_its_file_are_read_where_it_lies(tmp_path, address):
    fill(tmp_path / "logs")
    upload(tmp_path / "logs", address)
    page = StorePage(address)
    page.settled()
    found = ready(page, "/trace", "traces")
    source = found["sources"][0]["id"]
    slices = [
        page.of_run("/trace_slice", "traces", source=source, row=str(row))
        for row in (0, 99)
    ]
    assert [one["args"] for one in slices] == [
        [{"name": "number", "value": "0"}],
        [{"name": "number", "value": "99"}],
    ]
    data = (tmp_path / "logs" / "traces" / "worker.1.pt.trace.json").read_bytes()
    run = page.run_id("traces")
    whole = page.raw("/trace_file", run=run, source=source)
    assert whole.data == data
    part = page.raw(
        "/trace_file", run=run, source=source, headers={"Range": "bytes=100-199"}
    )
    assert (part.status_code, part.data) == (206, data[100:200])


def test_runs_that_come_and_go_are_seen(tmp_path, address):
    page = StorePage(address)
    assert page.plugin.is_active()  # the page says what it waits for
    page.until(lambda found: "nothing at this address" in whats(found))
    fill(tmp_path / "logs")
    upload(tmp_path / "logs" / "exp", f"{address}/exp")
    found = page.until(lambda found: names(found) == ["exp"])
    assert "nothing at this address" not in whats(found)
    upload(tmp_path / "logs" / "snaps", f"{address}/snaps")
    page.until(lambda found: names(found) == ["exp", "snaps"])
    MEMORY.rm(f"/{address.removeprefix('memory://')}/exp", recursive=True)
    page.until(lambda found: names(found) == ["snaps"])


def test_a_file_that_grows_is_followed(tmp_path, address):
    from tests.builders import RunBuilder

    rank = RunBuilder(tmp_path / "exp").rank(0)
    rank.steps(range(10))
    name = f"exp/plugins/memboard/{rank.path.name}"
    put(address, name, rank.path.read_bytes())
    page = StorePage(address)
    page.until(lambda found: found["runs"] and found["runs"][0]["last_step"] == 9)
    rank.steps(range(10, 20))
    put(address, name, rank.path.read_bytes())
    page.until(lambda found: found["runs"][0]["last_step"] == 19)
    assert page.of_run("/overview", "exp")["problems"] == []


def test_nothing_but_the_logdir_is_read(tmp_path, address):
    fill(tmp_path / "logs")
    upload(tmp_path / "logs", f"{address}/inside")
    put(address, "secret_memory_snapshot.pickle", b"secret")
    page = StorePage(f"{address}/inside")
    page.settled()
    with pytest.raises(storage.StorageError, match="not one of the logdirs"):
        storage.at(f"{address}/secret_memory_snapshot.pickle")
    remote = page.remote
    for path in (
        f"{address}/inside/../secret_memory_snapshot.pickle",
        f"{address}/inside/exp/../../secret_memory_snapshot.pickle",
        f"{address}/inside/nothing/of/it.pickle",
    ):
        with pytest.raises(OSError):
            remote.lstat(path)
        with pytest.raises(OSError):
            remote.ranges(path)
    assert remote.realpath(f"{address}/inside/../x") == ""
    assert remote.realpath(f"{address}/inside/a/../b") == f"{address}/inside/b"
    for query in (
        {"run": "memory://secret"},
        {"run": page.run_id("snaps"), "history": f"{address}/secret.pickle"},
        {"run": page.run_id("snaps"), "history": "../../secret"},
    ):
        assert page.raw("/history", **query).status_code in (400, 404)


def test_a_copy_for_the_reader_has_no_name_and_is_what_was_listed(tmp_path, address):
    data = bytes(range(256)) * 1000
    put(address, "x.bin", data)
    remote = storage.mount(parse_url(address))
    remote.is_patient = True
    path = f"{address}/x.bin"
    status = remote.lstat(path)
    before = set(tmp_path.parent.iterdir())
    with remote.descriptor(path, status, follow=False) as file:
        assert file.read() == data
        assert file.fileno() > 0
    assert set(tmp_path.parent.iterdir()) == before
    put(address, "x.bin", data + b"more")
    with pytest.raises(OSError, match="changed while it was read"):
        remote.descriptor(path, status, follow=False)


def test_a_file_that_changed_after_it_was_listed_is_not_imported(address):
    put(address, "memory_snapshot.pickle", b"old")
    remote = storage.mount(parse_url(address))
    remote.is_patient = True
    path = f"{address}/memory_snapshot.pickle"
    listed = FileKey.of(remote.lstat(path))
    put(address, "memory_snapshot.pickle", b"newer")
    importer = Importer()
    with pytest.raises(FileError, match="changed"):
        importer.tables(path, SNAPSHOT, listed)
    importer.close()


def test_a_file_is_read_and_sought_in_as_one_of_the_disk(address):
    data = bytes(range(251)) * 30_000  # several blocks
    put(address, "x.bin", data)
    remote = storage.mount(parse_url(address))
    remote.is_patient = True
    file, status = remote.open(f"{address}/x.bin")
    assert status.st_size == len(data)
    with file:
        assert file.read(10) == data[:10]
        file.seek(-7, io.SEEK_END)
        assert file.read() == data[-7:]
        file.seek(5_000_000)
        assert file.read(100_000) == data[5_000_000:5_100_000]
        file.seek(0)
        assert file.read() == data


def test_not_everything_at_a_store_is_looked_into(address, monkeypatch):
    monkeypatch.setattr("memboard.tb_plugin.index.search.sniffing.MAX_REMOTE", 3)
    for number in range(10):
        put(address, f"data{number}.pkl", b"\x80\x04N.")
    page = StorePage(address)
    found = page.until(lambda found: "More than 3 files" in whats(found))
    assert found["runs"] == []


def test_the_plugin_starts_without_fsspec_and_asks_nobody():
    code = """
import sys
from types import SimpleNamespace
from tensorboard.plugins.base_plugin import TBContext
from memboard.tb_plugin.loader import Loader
for logdir in ("s3://bucket/runs", "s3://[bad"):
    context = TBContext(logdir=logdir, flags=SimpleNamespace())
    assert Loader().load(context) is not None
heavy = {"fsspec", "s3fs", "boto3", "memboard.tb_plugin.storage.remote"}
print(sorted(heavy & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_file_is_no_logdir(address):
    put(address, "trace.pt.trace.json", json.dumps({"traceEvents": []}).encode())
    page = StorePage(f"{address}/trace.pt.trace.json")
    page.until(lambda found: "This is a file" in whats(found))


def test_merging_says_what_to_do_instead(tmp_path, address):
    fill(tmp_path / "logs")
    upload(tmp_path / "logs", address)
    page = StorePage(address)
    page.settled()
    answer = page.raw("/trace_merged", run=page.run_id("exp"))
    assert answer.status_code == 400
    assert f"memboard merge '{address}/exp'" in answer.get_data(as_text=True)
