"""The page without TensorBoard: the plugin's routes on a server of our own."""

from __future__ import annotations

import http.client
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from tb_plugin.alone import PAGE, PREFIX, Alone
from tb_plugin.given import Given
from tests.builders import RunBuilder
from tests.tb_plugin.client import decode_envelope


@pytest.fixture
def server(tmp_path):
    RunBuilder(tmp_path / "runs" / "exp").simple(2, 3)
    with Alone(Given(folders=(str(tmp_path / "runs"),)), "localhost", 0) as alone:
        yield alone


def ask(server: Alone, path: str, **headers: str) -> http.client.HTTPResponse:
    at = urlsplit(server.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def test_the_page_its_assets_and_its_data_are_served(server):
    page = ask(server, PAGE)
    assert page.status == 200
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
    runs = ask(server, f"{PREFIX}/runs")
    (run,) = decode_envelope(runs.read())["runs"]
    assert (run["name"], run["num_ranks"]) == ("runs/exp", 2)
    assert ask(server, f"{PREFIX}/assets/none.js").status == 404
    assert ask(server, "/favicon.ico").status == 204, "no error in the console"
    assert ask(server, f"{PREFIX}/drop").status == 405


def test_its_root_leads_to_the_page_and_all_else_to_nothing(server):
    root = ask(server, "/")
    assert (root.status, root.headers["Location"]) == (302, PAGE)
    for path in ("/data/plugins_listing", f"{PREFIX}/", "/../etc/passwd"):
        assert ask(server, path).status == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:6006", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:6006", 200),
        ("evil.example", 403),
        ("evil.example:6006", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_a_strangers_name_for_this_machine_is_refused(server, host, status):
    assert ask(server, f"{PREFIX}/runs", Host=host).status == status


def test_a_port_that_is_taken_is_told(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="taken"):
            Alone(Given(), "127.0.0.1", taken.getsockname()[1])


def test_after_the_block_nothing_listens(tmp_path):
    with Alone(Given(folders=(str(tmp_path),)), "localhost", 0) as alone:
        urllib.request.urlopen(alone.url, timeout=120).close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(alone.url, timeout=120)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no such signals")
def test_an_interruption_ends_the_wait_whichever_thread_it_reaches(server, monkeypatch):
    other = server._thread.ident
    assert other is not None
    waits, wait = threading.Event(), server._ended.wait
    monkeypatch.setattr(
        server._ended, "wait", lambda seconds: waits.set() or wait(seconds)
    )

    def interrupt() -> None:
        assert waits.wait(60)  # before that it would end the tests
        time.sleep(0.3)
        signal.pthread_kill(other, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    server.wait()
    assert server._thread.is_alive(), "the wait ended, and not the server"
