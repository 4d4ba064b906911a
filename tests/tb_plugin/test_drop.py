"""Files dropped onto the page: taken from the page itself alone, and kept in bounds."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import stat
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.plugins import base_plugin
from werkzeug.exceptions import ClientDisconnected
from werkzeug.test import Client

from memboard.tb_plugin.plugin import MemBoardPlugin
from memboard.tb_plugin.server import drop as drop_module
from memboard.tb_plugin.server.drop import shown_name
from tests.tb_plugin.client import (
    Page,
    decode,
    refresh,
)
from tests.tb_plugin.logdirs import SMALL, dropped_in

OURS = {
    "Origin": "http://localhost",
    "Sec-Fetch-Site": "same-origin",
    "X-MemBoard-Drop": "1",
}


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
    "headers",
    [
        {"Origin": "http://localhost", "X-MemBoard-Drop": "1"},
        {**OURS, "Origin": "https://notebooks.example", "Host": "localhost:6006"},
    ],
    ids=["a browser that does not name the site", "behind a proxy"],
)
def test_our_page_is_known_by_what_the_browser_says(page, headers):
    assert drop(page, headers=headers).status_code == 200


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
    assert dropped_in(temporary) == []

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(
        drop_module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 40)
    )
    monkeypatch.setattr(drop_module, "_copy", fail)
    response = drop(page)
    assert response.status_code == 507
    assert "No space left" in json.loads(response.data)["what"]
    assert dropped_in(temporary) == []


def test_what_is_no_snapshot_is_not_kept(page, temporary):
    for data in (b"\n", pickle.dumps({"a": 1}), b"<html>", SMALL[:-5]):
        response = drop(page, data)
        assert response.status_code == 422, data[:10]
    assert dropped_in(temporary) == []
    assert page.get("/runs")["runs"] == []


def test_a_file_that_breaks_off_is_not_kept(page, temporary, monkeypatch):
    class Broken:
        def read(self, _):
            raise ClientDisconnected

    request = SimpleNamespace(stream=Broken(), args={"name": "x"}, environ={})
    with pytest.raises(drop_module.BadRequestError, match="broke off after 0 of 9"):
        page.plugin.state().drops._received(request, 9)
    assert dropped_in(temporary) == []


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
    (path,) = dropped_in(temporary)
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


def test_dropping_is_by_post_alone_and_nothing_else_is(page):
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        response = page.raw("/drop", method=method, headers=OURS)
        assert response.status_code == 405
        assert response.headers["Allow"] == "POST"
    for route in page.routes:
        if route != "/drop":
            asked = route.replace("*", "x")
            for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                response = page.raw(asked, method=method, headers=OURS)
                assert response.status_code == 405
                assert "GET" in response.headers["Allow"]
                assert json.loads(response.data)["remedy"]


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
