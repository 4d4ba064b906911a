"""Requests that name another host: what a site sends whose name was made to lead here."""

from __future__ import annotations

import http.client
import json
import socket
import tempfile
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tensorboard import program
from tensorboard.plugins import base_plugin
from tensorboard.plugins.core import core_plugin
from werkzeug.test import Client

from memboard.tb_plugin.loader import Loader
from memboard.tb_plugin.plugin import MemBoardPlugin
from tests.builders import RunBuilder
from tests.tb_plugin.client import QUIET
from tests.tb_plugin.logdirs import SMALL, dropped_in

if TYPE_CHECKING:
    from collections.abc import Callable

EVIL = "evil.example"


@pytest.fixture
def launched(tmp_path, monkeypatch) -> Callable[..., Callable[..., tuple[int, bytes]]]:
    """Start TensorBoard; asks one of our routes of it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    RunBuilder(tmp_path / "runs" / "exp").simple(1, 3)

    def launch(*arguments: str) -> Callable[..., tuple[int, bytes]]:
        board = program.TensorBoard(plugins=[core_plugin.CorePluginLoader, Loader])
        arguments += ("--logdir", str(tmp_path / "runs"), "--load_fast", "false")
        board.configure([None, *arguments, *QUIET, "--port", "0"])
        port = urlsplit(board.launch()).port

        def ask(route: str, host: str, body: bytes | None = None, **headers: str):
            at = http.client.HTTPConnection("localhost", port, timeout=120)
            at.request(
                "GET" if body is None else "POST",
                f"/data/plugin/memboard{route}",
                body=body,
                headers={"Host": f"{host}:{port}", **headers},
            )
            with at.getresponse() as answer:
                return answer.status, answer.read()

        def drop(route: str, host: str, **headers: str):
            if route != "/drop":
                return ask(route, host, **headers)
            origin = {"Origin": f"http://{host}:{port}", "X-MemBoard-Drop": "1"}
            return ask(route, host, SMALL, **origin, **headers)

        return drop

    return launch


def test_tensorboard_answers_a_strange_name_nothing_and_takes_no_file(
    launched, tmp_path
):
    ask = launched()
    routes = MemBoardPlugin(None).get_plugin_apps()
    for route in routes:
        status, said = ask(route.replace("*", "x"), EVIL)
        if route == "/index.js":  # it leads to the page, which says why
            assert status == 200
            continue
        assert status == 403, route
        body = json.loads(said)
        assert EVIL in body["what"]
        assert f"--memboard_hosts={EVIL}" in body["remedy"]
    for headers in (
        {"Sec-Fetch-Site": "same-origin"},
        {"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"},
    ):
        assert ask("/drop", EVIL, **headers)[0] == 403
        assert ask("/runs", EVIL, **headers)[0] == 403
    assert dropped_in(tmp_path) == []
    status, said = ask("/app.html", EVIL, Accept="text/html,*/*")
    assert status == 403
    assert said.startswith(b"MemBoard does not answer to the host name evil.example.\n")
    for own in ("localhost", "127.0.0.1"):
        assert ask("/runs", own)[0] == 200
        assert ask("/drop", own)[0] == 200
    assert len(dropped_in(tmp_path)) == 2


def test_a_proxys_name_is_given_by_a_flag(launched):
    ask = launched("--memboard_hosts", "hub.example, https://Other.example:8443/a/b")
    for name in ("hub.example", "other.example", "OTHER.EXAMPLE"):
        assert ask("/runs", name)[0] == 200
        assert ask("/drop", name)[0] == 200
    for name in (EVIL, "a.hub.example", "hub.example.evil.example", "xhub.example"):
        assert ask("/runs", name)[0] == 403


def test_where_the_network_reaches_it_files_come_under_own_names_alone(
    launched, tmp_path
):
    ask = launched("--host", "0.0.0.0")
    assert ask("/runs", EVIL)[0] == 200
    status, said = ask("/drop", EVIL)
    assert status == 403
    assert f"--memboard_hosts={EVIL}" in json.loads(said)["remedy"]
    assert dropped_in(tmp_path) == []
    own = {"localhost", "10.1.2.3", socket.gethostname(), socket.getfqdn()}
    for name in own:
        assert ask("/drop", name)[0] == 200, name


@pytest.mark.parametrize(
    ("bound", "named", "is_answered"),
    [
        (None, "localhost", True),
        (None, "localhost.", True),
        (None, "[::1]:6006", True),
        (None, "127.8.9.10:80", True),
        (None, "10.0.0.1", False),
        (None, "0.0.0.0:6006", False),
        (None, "localhost.evil.example", False),
        (None, "evil.example@localhost", False),
        (None, "localhost, evil.example", False),
        (None, "localhost:6006:80", False),
        (None, "[localhost]", False),
        (None, "", False),
        ("::1", "[::1]", True),
        ("::1", EVIL, False),
        ("127.0.0.2", EVIL, False),
        ("LOCALHOST", EVIL, False),
        ("0.0.0.0", EVIL, True),
        ("10.0.0.1", EVIL, True),
        ("no-such-name.invalid", EVIL, True),
        ("--bind_all", EVIL, True),
    ],
)
def test_what_is_listened_on_decides_what_is_answered(bound, named, is_answered):
    flags = SimpleNamespace(host=bound, bind_all=False)
    if bound == "--bind_all":
        flags = SimpleNamespace(host=None, bind_all=True)
    plugin = MemBoardPlugin(base_plugin.TBContext(logdir="", flags=flags))
    client = Client(plugin.get_plugin_apps()["/assets/*"])
    answer = client.get("/assets/none.js", headers={"Host": named})
    assert answer.status_code == (404 if is_answered else 403)
    assert json.loads(answer.data)["remedy"]
