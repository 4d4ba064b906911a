"""Files dropped onto the page: taken from the page itself alone, and kept in bounds."""

from __future__ import annotations

import contextlib
import gc
import gzip
import http.client
import json
import os
import pickle
import re
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard import program
from tensorboard.plugins import base_plugin
from tensorboard.plugins.core import core_plugin
from werkzeug.exceptions import ClientDisconnected
from werkzeug.test import Client

from tb_plugin.cli.standalone import PREFIX, Standalone
from tb_plugin.index.logdirs import Given
from tb_plugin.loader import Loader
from tb_plugin.plugin import MemBoardPlugin
from tb_plugin.server import drop as drop_module
from tb_plugin.server import incoming
from tb_plugin.server.drop import shown_name
from tb_plugin.server.incoming import DropFolder
from tests.made_snapshots import long_history
from tests.tb_plugin.client import (
    QUIET,
    Page,
    answered,
    decode,
    decode_envelope,
    refresh,
)

SMALL = pickle.dumps(long_history(20))
OURS = {
    "Origin": "http://localhost",
    "Sec-Fetch-Site": "same-origin",
    "X-MemBoard-Drop": "1",
}


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    """Where temporary files go while a test runs."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def page(tmp_path, temporary) -> Page:
    logdir = tmp_path / "logdir"
    logdir.mkdir()
    return Page(logdir)


def drop(page, data=SMALL, name="memory_snapshot_rank2.pickle", headers=None):
    client = Client(page.routes["/drop"])
    return client.post(
        "/drop",
        query_string={"name": name},
        data=data,
        headers=OURS if headers is None else headers,
    )


def kept(temporary) -> list[Path]:
    return [p for p in temporary.rglob("*") if p.suffix == ".snapshot"]


def test_a_dropped_file_is_a_run_of_its_own(page, temporary):
    response = drop(page)
    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "no-store"
    answer = decode(response)
    assert answer["$response"] == "DropResponse"
    assert (answer["name"], answer["rank"]) == ("memory_snapshot_rank2.pickle", 2)
    (run,) = page.get("/runs")["runs"]
    assert (run["id"], run["name"]) == (answer["run"], "dropped files")
    assert run["made_of"] == "snapshots"
    page.get("/overview", run=run["id"])
    found = page.store.run(run["id"]).snapshots.by_id(answer["history"])
    assert found.rank == 2
    assert Path(found.path).read_bytes() == SMALL
    assert Path(found.path).parent.parent == temporary
    again = decode(drop(page, name="memory_snapshot_rank3.pickle"))
    assert again["run"] == answer["run"]
    assert again["history"] != answer["history"]
    refresh(page)
    (run,) = page.get("/runs")["runs"]
    assert run["num_ranks"] == 2


def test_the_file_is_known_when_the_answer_comes(page):
    drop(page)
    page.get("/runs")  # the walk over the logdir does not forget it
    answer = decode(drop(page, name="rank7_memory_snapshot.pickle"))
    page.get("/overview", run=answer["run"])
    assert page.store.run(answer["run"]).snapshots.by_id(answer["history"]).rank == 7


def test_json_and_packed_files_are_taken(page):
    plain = json.dumps({"segments": [], "device_traces": [[]]}).encode()
    for data, name in (
        (plain, "memory_snapshot.json"),
        (gzip.compress(plain), "memory_snapshot.json.gz"),
        (gzip.compress(SMALL), "snapshot.pickle.gz"),
    ):
        assert drop(page, data, name).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": None, "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": None, "Origin": "http://localhost:81"},
        {"Sec-Fetch-Site": None, "Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": None, "Origin": "null"},
        {"Sec-Fetch-Site": None, "Origin": "file://localhost"},
        {"Sec-Fetch-Site": None, "Origin": None},
        {"X-MemBoard-Drop": None},
        {"X-MemBoard-Drop": "0"},
    ],
)
def test_other_pages_are_refused(page, temporary, changes):
    merged = {**OURS, **changes}
    headers = {key: value for key, value in merged.items() if value is not None}
    response = drop(page, headers=headers)
    assert response.status_code == 403
    body = json.loads(response.data)
    assert body["what"]
    assert body["remedy"]
    assert list(temporary.iterdir()) == [], "nothing was written"
    assert page.get("/runs")["runs"] == []


def test_browsers_that_do_not_name_the_site_are_known_by_the_origin(page):
    headers = {"Origin": "http://localhost", "X-MemBoard-Drop": "1"}
    assert drop(page, headers=headers).status_code == 200


def test_behind_a_proxy_the_browser_is_believed(page):
    headers = {**OURS, "Origin": "https://notebooks.example", "Host": "localhost:6006"}
    assert drop(page, headers=headers).status_code == 200


def test_too_large_a_file_is_refused_before_it_is_read(page, temporary, monkeypatch):
    monkeypatch.setattr(drop_module, "MAX_BYTES", len(SMALL) - 1)
    response = drop(page)
    assert response.status_code == 413
    assert "memboard open" in json.loads(response.data)["remedy"]
    assert list(temporary.iterdir()) == []


def test_a_file_of_unknown_size_is_refused(page):
    client = Client(page.routes["/drop"])
    headers = {**OURS, "Transfer-Encoding": "chunked"}
    response = client.post("/drop", input_stream=BytesIO(SMALL), headers=headers)
    assert response.status_code == 411


def test_a_full_disk_is_said(page, temporary, monkeypatch):
    monkeypatch.setattr(
        drop_module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 30)
    )
    response = drop(page)
    assert response.status_code == 507
    assert kept(temporary) == []

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        drop_module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40)
    )
    monkeypatch.setattr(drop_module, "_copy", fail)
    response = drop(page)
    assert response.status_code == 507
    assert "No space left" in json.loads(response.data)["what"]
    assert kept(temporary) == []


def test_what_is_no_snapshot_is_not_kept(page, temporary):
    for data in (b"\n", pickle.dumps({"a": 1}), b"<html>", SMALL[:-5]):
        response = drop(page, data)
        assert response.status_code == 422, data[:10]
    assert kept(temporary) == []
    assert page.get("/runs")["runs"] == []


def test_a_file_that_breaks_off_is_not_kept(page, temporary, monkeypatch):
    class Broken:
        def read(self, _):
            raise ClientDisconnected

    request = SimpleNamespace(stream=Broken(), args={"name": "x"}, environ={})
    with pytest.raises(drop_module.BadRequestError, match="broke off after 0 of 9"):
        page.plugin.state().drops._received(request, 9)
    assert kept(temporary) == []


class Sender:
    """A connection, with the input read from it, and the clock by which bytes come."""

    def __init__(self, num_bytes: int, every_s: float) -> None:
        self.num_bytes, self.every_s, self.now, self.timeout = num_bytes, every_s, 0, 0
        self.stream = None
        self.environ = {"werkzeug.socket": self, "wsgi.input": self}

    def settimeout(self, seconds: float) -> None:
        self.timeout = seconds

    def read1(self, most: int) -> bytes:
        self.now += min(self.every_s, self.timeout)
        if self.every_s > self.timeout:
            raise TimeoutError
        return b"x" * min(self.num_bytes, most)


@pytest.mark.parametrize(
    ("num_bytes", "every_s", "seconds"),
    [
        (1 << 16, 50, 50 << 16),  # 4 GiB in 38 days
        (1 << 14, 14, 14 << 18),
        (1 << 14, 21, None),
        (1, 0.01, None),
        (1 << 20, 61, None),
    ],
)
def test_a_slow_file_comes_and_one_that_stalls_is_given_up(
    monkeypatch, num_bytes, every_s, seconds
):
    sender = Sender(num_bytes, every_s)
    monkeypatch.setattr(incoming.time, "monotonic", lambda: sender.now)
    pieces = incoming.pieces_of(sender, 4 << 30)
    if seconds is not None:
        assert sum(map(len, pieces)) == 4 << 30
        assert sender.now == seconds
        return
    with pytest.raises(incoming.StalledError):
        sum(map(len, pieces))
    assert sender.now <= 61


def test_half_sent_files_give_up_their_places(tmp_path, temporary, monkeypatch):
    monkeypatch.setattr(incoming, "STALL_SECONDS", 1.0)
    (tmp_path / "logdir").mkdir()
    given = Given(folders=(str(tmp_path / "logdir"),))
    seen: set[Path] = set()

    def arrived() -> int:
        seen.update(temporary.rglob("*.snapshot"))
        return len(seen)

    with (
        Standalone(given, "127.0.0.1", 0) as server,
        contextlib.ExitStack() as open_ones,
    ):
        at = urlsplit(server.link(""))
        origin = f"http://{at.netloc}"
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(server.link(""), timeout=120) as let_in:
            cookie = let_in.headers["Set-Cookie"].partition(";")[0]
        headers = {"Origin": origin, "X-MemBoard-Drop": "1", "Cookie": cookie}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        begin = (
            f"POST {PREFIX}/drop?name=x.pickle HTTP/1.1\r\nHost: {at.netloc}\r\n"
            f"Content-Length: {len(SMALL)}\r\n{lines}\r\n"
        ).encode()
        halves = []
        for sent in (b"", SMALL[:-1]):
            half = socket.create_connection((at.hostname, at.port), timeout=120)
            halves.append(open_ones.enter_context(half))
            half.sendall(begin + sent)
            answered(arrived, lambda number: number == len(halves))  # has its place

        def whole() -> int:
            connection = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
            connection.request("POST", f"{PREFIX}/drop", SMALL, headers)
            with connection.getresponse() as answer:
                return answer.status

        assert answered(whole, lambda status: status == 200)
        for half in halves:
            assert half.recv(100).startswith(b"HTTP/1.1 408 ")
        answered(lambda: kept(temporary), lambda files: len(files) == 1)


def test_only_so_many_files_are_taken(page, monkeypatch):
    monkeypatch.setattr(drop_module, "MAX_FILES", 2)
    assert [drop(page).status_code for _ in range(3)] == [200, 200, 413]
    monkeypatch.setattr(drop_module, "_MAX_AT_ONCE", 0)
    assert drop(page).status_code == 503


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/shadow", "shadow"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("a/", "unnamed"),
        ("<script>alert(1)</script>.pickle", "script>.pickle"),
        ("<b>rank3.pickle", "<b>rank3.pickle"),
        ("a\x00b\x1b[31m\u202e.pickle", "a?b?[31m?.pickle"),
        ("x" * 500 + ".pickle", "x" * 193 + ".pickle"),
    ],
)
def test_names_are_only_shown(page, temporary, name, shown):
    answer = decode(drop(page, name=name))
    assert answer["name"] == shown
    (path,) = kept(temporary)
    assert re.fullmatch(r"[0-9a-f]{32}\.snapshot", path.name)
    page.get("/overview", run=answer["run"])
    (file,) = page.store.run(answer["run"]).snapshots.files
    assert file.shown_path == shown


@given(st.text(max_size=300))
def test_no_name_is_a_path(name):
    shown = shown_name(name)
    assert shown
    assert not {"/", "\\", "\0"} & set(shown)
    assert shown not in (".", "..")
    assert shown.isprintable()


def test_what_is_kept_is_private(page, temporary):
    drop(page)
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_it_can_be_switched_off(tmp_path):
    flags = SimpleNamespace(memboard_drop="false", logdir=str(tmp_path))
    context = base_plugin.TBContext(logdir=str(tmp_path), flags=flags)
    plugin = MemBoardPlugin(context)
    routes = plugin.get_plugin_apps()
    response = Client(routes["/drop"]).post("/drop", data=SMALL, headers=OURS)
    assert response.status_code == 403
    body = json.loads(response.data)
    assert "switched off" in body["what"]
    assert "--memboard_drop" in body["where"]
    answer = decode(Client(routes["/runs"]).get("/runs"))
    assert answer["drop_limit_bytes"] == 0


def test_the_page_is_told_the_limit(page):
    assert page.get("/runs")["drop_limit_bytes"] == 4 << 30


def test_dropping_is_by_post_alone_and_nothing_else_is(page):
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        response = page.raw("/drop", method=method, headers=OURS)
        assert response.status_code == 405
        assert response.headers["Allow"] == "POST"
    for route in page.routes:
        if route != "/drop":
            asked = route.replace("*", "x")
            assert page.raw(asked, method="POST", headers=OURS).status_code == 405


def test_all_of_it_goes_at_the_end(temporary):
    folder = DropFolder()
    path = folder.path()
    (path / "x.pickle").touch()
    del folder
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_swept(temporary):
    code = (
        "import os, signal; from tb_plugin.server.incoming import DropFolder\n"
        "folder = DropFolder(); path = folder.path(); (path / 'x').touch()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    (left,) = temporary.iterdir()
    other = DropFolder()
    mine = other.path()
    assert list(temporary.iterdir()) == [mine]
    third = DropFolder()
    both = sorted([mine, third.path()])
    assert sorted(temporary.iterdir()) == both, "what is in use stays"
    assert left != mine


def test_who_tidies_up_leaves_what_is_being_made(temporary, monkeypatch):
    hold, others = incoming._hold, []

    def hold_later(file):
        if not others:
            others.append(DropFolder())
            others[0].path()  # which looks for what was left
        hold(file)

    monkeypatch.setattr(incoming, "_hold", hold_later)
    folder = DropFolder()
    mine = folder.path()
    assert sorted(temporary.iterdir()) == sorted([mine, others[0].path()])


def test_a_launched_tensorboard_takes_files_of_its_own_page(tmp_path, temporary):
    (tmp_path / "logdir").mkdir()
    board = program.TensorBoard(plugins=[core_plugin.CorePluginLoader, Loader])
    arguments = ["--logdir", str(tmp_path / "logdir"), "--load_fast", "false"]
    arguments += QUIET
    board.configure([None, *arguments, "--port", "0", "--host", "127.0.0.1"])
    url = f"{board.launch()}data/plugin/memboard"
    origin = url.split("/data/", maxsplit=1)[0]

    def send(origin):
        request = urllib.request.Request(
            f"{url}/drop?name=memory_snapshot_rank1.pickle",
            data=SMALL,
            headers={"Origin": origin, "X-MemBoard-Drop": "1"},
        )
        return urllib.request.urlopen(request, timeout=120)

    with send(origin) as answer:
        run = decode_envelope(answer.read())["run"]
    with urllib.request.urlopen(f"{url}/runs", timeout=120) as answer:
        (found,) = decode_envelope(answer.read())["runs"]
    assert (found["id"], found["num_ranks"]) == (run, 1)
    with pytest.raises(urllib.error.HTTPError) as refused:
        send("http://evil.example")
    assert refused.value.code == 403
    refused.value.close()


def test_a_dropped_trace_is_shown_on_its_page(page):
    trace = b'{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}'
    for data, name in (
        (trace, "odd name"),
        (gzip.compress(trace), "rank3.1.pt.trace.json.gz"),
    ):
        response = drop(page, data=data, name=name)
        assert response.status_code == 200, response.data
        answer = decode(response)
        assert (answer["view"], answer["history"]) == ("trace", "")
    (run,) = page.get("/runs")["runs"]
    assert run["made_of"] == "traces"
    files = page.get("/traces", run=run["id"])["files"]
    assert {(file["name"], file["rank"]) for file in files} == {
        ("odd name", None),
        ("rank3.1.pt.trace.json.gz", 3),
    }
    drop(page)
    refresh(page)
    (run,) = page.get("/runs")["runs"]
    assert run["made_of"] == "snapshots"
    assert page.get("/traces", run=run["id"])["num_files"] == 2
